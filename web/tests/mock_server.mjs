// A stand-in for `locdiff serve`, for the page's tests where no real server is at hand: the same interface and
// the same security policy, with answers computed from hand-made densities by the page's own WebAssembly.
// What it says of a picture is invented: the examples are known by their size, all else is Iceland.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("..", import.meta.url));
const MAX_DEGREE = 31;
const CSP =
  "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; img-src 'self' data: blob:; " +
  "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; font-src 'self'; object-src 'none'; base-uri 'none'; " +
  "frame-ancestors 'none'";
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".woff2": "font/woff2" };

const NAMES = [
  [-19.04, 46.62, "Soavinandriana", "Itasy", "Madagascar", "MG"],
  [10.91, 77.56, "Kangayam", "Tamil Nadu", "India", "IN"],
  [39.2, 12.7, null, null, null, null],
  [29.2, 34.0, "Dahab", "South Sinai", "Egypt", "EG"],
  [24.5, 39.6, "Medina", "Medina Region", "Saudi Arabia", "SA"],
  [64.9, -18.5, "Akureyri", "Northeast", "Iceland", "IS"],
  [-45.0, 169.6, "Alexandra", "Otago", "New Zealand", "NZ"],
];
const PEAKS = {
  madagascar: [[0, 1.0], [1, 0.86], [2, 0.74]],
  sinai: [[3, 1.0], [4, 0.83]],
  other: [[5, 0.8], [6, 0.77]],
};

/** Real orthonormal harmonics without Condon-Shortley phase, (l, m) at l² + l + m: what locdiff-sphere has. */
export function harmonics(latitude, longitude) {
  const [theta, phi] = [((90 - latitude) * Math.PI) / 180, (longitude * Math.PI) / 180];
  const [cos, sin] = [Math.cos(theta), Math.sin(theta)];
  const p = Array.from({ length: MAX_DEGREE + 1 }, () => new Float64Array(MAX_DEGREE + 1));
  p[0][0] = Math.sqrt(0.25 / Math.PI);
  for (let m = 1; m <= MAX_DEGREE; m++) p[m][m] = p[m - 1][m - 1] * sin * Math.sqrt((2 * m + 1) / (2 * m)) * (m === 1 ? Math.SQRT2 : 1);
  for (let m = 0; m < MAX_DEGREE; m++) {
    p[m + 1][m] = Math.sqrt(2 * m + 3) * cos * p[m][m];
    for (let l = m + 2; l <= MAX_DEGREE; l++) {
      const a = Math.sqrt((4 * l * l - 1) / (l * l - m * m));
      const b = Math.sqrt((2 * l + 1) / (2 * l - 3) * (((l - 1) ** 2 - m * m) / (l * l - m * m)));
      p[l][m] = a * cos * p[l - 1][m] - b * p[l - 2][m];
    }
  }
  const values = new Float64Array((MAX_DEGREE + 1) ** 2);
  for (let l = 0; l <= MAX_DEGREE; l++) {
    for (let m = -l; m <= l; m++) values[l * l + l + m] = p[l][Math.abs(m)] * (m < 0 ? Math.sin(-m * phi) : Math.cos(m * phi));
  }
  return values;
}

function coefficientsOf(picture) {
  const sum = new Float64Array((MAX_DEGREE + 1) ** 2);
  for (const [index, weight] of PEAKS[picture]) {
    const values = harmonics(NAMES[index][0], NAMES[index][1]);
    // Smoothed, so that a peak doesn't ring.
    for (let l = 0; l <= MAX_DEGREE; l++) {
      const smooth = Math.exp(-(l * (l + 1)) / 420);
      for (let k = l * l; k < (l + 1) ** 2; k++) sum[k] += 0.5 * weight * smooth * values[k];
    }
  }
  return sum;
}

/** A seeded generator, and normal numbers from it. */
function normals(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

function framesOf(coefficients, count) {
  const normal = normals(7);
  const noise = Array.from(coefficients, () => 0.35 * normal());
  return Array.from({ length: count }, (_, k) => {
    const share = k / (count - 1);
    const values = Array.from(coefficients, (value, i) => Math.sin((share * Math.PI) / 2) ** 2 * value + (1 - share) * noise[i]);
    return { step: Math.round(200 * share), of: 200, density: record(values) };
  });
}

const record = (coefficients) => ({ kind: "exponential", max_degree: MAX_DEGREE, coefficients: Array.from(coefficients) });

let engine = null;
async function wasm() {
  engine ??= (await WebAssembly.instantiate(await readFile(join(web, "src/generated/locdiff_wasm.wasm")), {})).instance.exports;
  return engine;
}

async function summaryOf(density, top) {
  const w = await wasm();
  const bytes = new TextEncoder().encode(JSON.stringify(density));
  const at = w.locdiff_allocate(bytes.length);
  new Uint8Array(w.memory.buffer, at, bytes.length).set(bytes);
  const number = w.locdiff_open(at, bytes.length);
  w.locdiff_deallocate(at, bytes.length);
  w.locdiff_summary(number, top);
  const text = new TextDecoder().decode(new Uint8Array(w.memory.buffer, w.locdiff_output(), w.locdiff_output_len()));
  w.locdiff_release(number);
  return JSON.parse(text);
}

function nameOf(candidate) {
  const near = NAMES.find(([latitude, longitude]) => Math.abs(latitude - candidate.latitude) < 3 && Math.abs(longitude - candidate.longitude) < 4);
  const [, , town = null, district = null, country = null, country_code = null] = near ?? [];
  return { ...candidate, town, district, country, country_code };
}

const INFERENCE = { sampler: "one-pass", steps: null, samples: 1, guidance: 1, views: 1, seed: 0, decode: "mode", kernel_km: null, registration: true, width_km: null };
const MODEL = { name: "earth-view", version: "mock000000000000", description: "a mock of LocDiff for views of the Earth from above", calibrated: true, prior: "a tenth of the picture or more is land" };

async function locate(body, query) {
  const problem = (status, title, detail) => ({ status, body: { type: "about:blank", title, status, detail } });
  const isImage = (body[0] === 0xff && body[1] === 0xd8) || body.subarray(1, 4).toString() === "PNG";
  if (!isImage) return problem(415, "Not an image", "The file begins like no image format that is known: send a JPEG, PNG, WebP, TIFF, GIF, BMP or HEIC file.");
  const hash = createHash("sha256").update(body).digest("hex");
  const examples = { madagascar: 25697, sinai: 48394 };
  const picture = Object.keys(examples).find((name) => examples[name] === body.length) ?? "other";
  const coefficients = coefficientsOf(picture);
  const summary = await summaryOf(record(coefficients), Number(query.get("top") ?? 5));
  const { candidates, radius_50_km, radius_90_km, area_50_km2, area_90_km2, kernel_km } = summary;
  const frames = Number(query.get("frames") ?? 0);
  const result = {
    image: { name: null, sha256: hash, bytes: body.length, width: 512, height: 512 },
    model: { ...MODEL, calibrated: query.get("model") !== "scores", chosen_because: "it accepted the picture as a view of the Earth from above" },
    inference: INFERENCE,
    warnings: [],
    within: [],
    candidates: candidates.map(nameOf),
    ...{ radius_50_km, radius_90_km, area_50_km2, area_90_km2, kernel_km, exif: null },
    ...(query.get("density") === "true" ? { density: record(coefficients) } : {}),
    ...(frames > 1 ? { frames: framesOf(coefficients, frames) } : {}),
  };
  return { status: 200, body: { prediction: true, results: [result] } };
}

const read = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
};

/** Passes a request on to a real server, and its answer back. */
async function forward(upstream, request, response, url) {
  const body = request.method === "POST" ? await read(request) : undefined;
  const type = request.headers["content-type"];
  const answer = await fetch(new URL(url.pathname + url.search, upstream), { method: request.method, ...(body ? { body } : {}), headers: type ? { "Content-Type": type } : {} });
  response.writeHead(answer.status, { "Content-Type": answer.headers.get("Content-Type") ?? "application/json" });
  response.end(Buffer.from(await answer.arrayBuffer()));
}

/**
 * Starts on a free port; `{ url, close }`. With `upstream`, only the page is ours: answers are that server's. `routes` may answer
 * first: asked with method, path and body, it returns a status and a body, or null.
 */
export async function startMock(upstream = null, routes = () => null) {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    const json = (status, value) => {
      response.writeHead(status, { "Content-Type": status < 400 ? "application/json" : "application/problem+json" });
      response.end(JSON.stringify(value));
    };
    try {
      if (upstream !== null && url.pathname.startsWith("/v1/")) return await forward(upstream, request, response, url);
      const own = routes(request.method, url.pathname, async () => JSON.parse((await read(request)).toString()));
      if (own !== null) {
        const { status, body, type } = await own;
        if (type === undefined) return json(status, body);
        response.writeHead(status, { "Content-Type": type });
        return response.end(body);
      }
      if (url.pathname === "/v1/models") {
        return json(200, { models: [{ ...MODEL, default: true, inference: INFERENCE, frames: true }, { ...MODEL, name: "scores", calibrated: false, default: false, inference: INFERENCE, frames: false }] });
      }
      if (url.pathname === "/v1/page") return json(200, { version: "0.1.0-mock", tiles: null, tiles_attribution: null, references: false, key_required: false, max_image_bytes: 1 << 26 });
      if (url.pathname === "/v1/locate") {
        const { status, body } = await locate(await read(request), url.searchParams);
        return json(status, body);
      }
      const path = normalize(url.pathname === "/" ? "/index.html" : decodeURIComponent(url.pathname));
      const content = await readFile(join(web, "dist", path));
      response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream", "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff" });
      response.end(content);
    } catch {
      json(404, { type: "about:blank", title: "Not found", status: 404, detail: `There is nothing at ${url.pathname}.` });
    }
  });
  await new Promise((resolve) => server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await startMock()).url);
