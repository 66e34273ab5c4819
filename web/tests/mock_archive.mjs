// A stand-in for `locdiff review`: a generated library. Places, times and names are invented.
//
//   node tests/mock_archive.mjs [PICTURES]

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startMock } from "./mock_server.mjs";

const TRIPS = [
  [-13.2, -72.0, "Cusco, Peru"], [64.1, -21.9, "Reykjavík, Iceland"], [38.7, -9.1, "Lisbon, Portugal"], [35.0, 135.8, "Kyoto, Japan"], [-33.9, 18.4, "Cape Town, South Africa"],
  [47.4, 8.5, "Zürich, Switzerland"], [-45.0, 168.7, "Queenstown, New Zealand"], [40.7, -74.0, "New York, United States"], [27.7, 85.3, "Kathmandu, Nepal"], [-17.7, 179.9, "Labasa, Fiji"],
];
const pictures_of = ["madagascar", "sinai", "tibet"].map((name) => readFileSync(new URL(`../../examples/${name}.jpg`, import.meta.url)));

/** A seeded generator of numbers from 0 to 1. */
function uniforms(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function generatedArchive(count, { calibrated = true, seed = 31 } = {}) {
  const uniform = uniforms(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  const round = (value, digits) => Number(value.toFixed(digits));
  const near = ([latitude, longitude], degrees) => [round(Math.max(-85, Math.min(85, latitude + degrees * normal())), 5), round(((longitude + degrees * normal() + 540) % 360) - 180, 5)];
  const pictures = Array.from({ length: count }, (_, k) => {
    const trip = TRIPS[Math.floor((k / count) * 30) % TRIPS.length];
    const name = `IMG_${String(1000 + k)}.${k % 11 === 0 ? "HEIC" : "jpg"}`;
    const kind = uniform() < 0.06 ? "graphic" : "photo";
    const error = uniform() < 0.01 ? "the JPEG data ends early" : null;
    const gps = kind === "photo" && error === null && uniform() < 0.22 ? near(trip, 0.6) : null;
    const isLocated = kind === "photo" && error === null && gps === null;
    const confidence = isLocated ? round(uniform() ** 0.7, 4) : null;
    const radius = isLocated ? round(15 + 900 * (1 - confidence) ** 2 * (0.5 + uniform()), 1) : null;
    const place = isLocated ? near(trip, 0.3 + radius / 300) : null;
    const fused = isLocated && uniform() < 0.5;
    const time = uniform() < 0.93 ? new Date(Date.UTC(2009, 5, 1) + (Math.floor((k / count) * 30) * 190 + 100 * uniform() ** 3) * 86_400_000).toISOString().slice(0, 19) : null;
    const rest = isLocated ? 1 - confidence : 0;
    const others = isLocated ? [0.55, 0.25, 0.12].map((share, j) => ({ place: near(TRIPS[(k + 3 * j + 1) % TRIPS.length], 2), mass: rest * share })) : [];
    const candidates = isLocated ? [{ place, mass: confidence }, ...others].map(({ place: [latitude, longitude], mass }) => ({ latitude, longitude, mass: round(mass, 4), radius_km: radius })) : [];
    return {
      id: (k * 2654435761 % 2 ** 32).toString(16).padStart(8, "0").repeat(8),
      path: `/photos/${time?.slice(0, 4) ?? "undated"}/${trip[2].split(",")[0]}/${name}`,
      ...{ name, time, kind, gps, place },
      place_name: place === null && gps === null ? null : trip[2],
      confidence,
      radius_68_km: radius,
      radius_90_km: radius === null ? null : round(2.3 * radius, 1),
      ...{ candidates, fused },
      influences: fused ? [`IMG_${1000 + Math.max(0, k - 3)}.jpg has GPS and was taken 12 minutes before: moved the estimate by ${Math.round(radius)} km`, "You stated “this trip: " + trip[2].split(", ")[1] + "”: removed 18 % of the density"] : [],
      ...{ error, decision: null, pin: null },
    };
  });
  return { library: "holidays.sqlite", model: { name: "earth-view", version: "2026.11", calibrated }, pictures };
}

/** Starts the server; `{ url, close, archive, posts }`. */
export async function startArchive(count, options = {}) {
  const archive = generatedArchive(count, options);
  const byId = new Map(archive.pictures.map((picture) => [picture.id, picture]));
  const posts = [];
  const routes = (method, path, json) => {
    if (path === "/v1/archive") return { status: 200, body: archive };
    if (path.startsWith("/v1/archive/thumbnail/")) return { status: 200, type: "image/jpeg", body: pictures_of[parseInt(path.slice(22, 28), 16) % pictures_of.length] };
    if (path !== "/v1/archive/decisions" || method !== "POST") return null;
    return json().then(({ decisions }) => {
      posts.push(decisions.length);
      for (const { id, decision, latitude, longitude } of decisions) Object.assign(byId.get(id), { decision, pin: decision === "moved" ? [latitude, longitude] : null });
      return { status: 200, body: { stored: decisions.length, changed: [] } };
    });
  };
  const { url, close } = await startMock(null, routes);
  return { url: `${url}/review.html`, close, archive, posts };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await startArchive(Number(process.argv[2] ?? 5000))).url);
