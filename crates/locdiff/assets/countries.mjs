// Makes countries.bin beside this script: the countries of Natural Earth 1:10m (public domain), as npm's
// `world-atlas` packs them, simplified. The name of a country is Natural Earth's label, as country-names.json writes it out; codes and other names
// (ISO 3166-1) are those of npm's `i18n-iso-countries` (MIT). Run once; the result is committed.
//
//   npm install --no-save world-atlas@2.0.2 topojson-client@3.1.0 topojson-simplify@3.0.3 i18n-iso-countries@7.14.0
//   node countries.mjs
//
// Format: numbers as unsigned LEB128, signed ones in zigzag; texts as their length in bytes and UTF-8. The
// number of countries; of each its two-letter code, three-letter code, name and other names (joined by `|`), the
// number of polygons, of each the number of rings (the exterior, then holes), of each the number of points, and of
// each point the steps in latitude and longitude from the point before (from 0, 0 at the start of each ring) in
// thousandths of a degree. Rings that cross the antimeridian go on beyond 180; the one that holds the south pole runs along
// latitude −90.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// Packages are found from where the script is called, so that none need lie beside it.
const require = createRequire(join(process.cwd(), "any.js"));
const { feature } = require("topojson-client");
const { presimplify, simplify, sphericalTriangleArea } = require("topojson-simplify");
const iso = require("i18n-iso-countries");

const UNITS_PER_DEGREE = 1000;
const EARTH_RADIUS_KM = 6371.0088;
// A point goes if the triangle with its neighbours is smaller than this.
const DETAIL_KM2 = 2;
const TURN = 360 * UNITS_PER_DEGREE;

// What Natural Earth draws as places of their own, and ISO doesn't list.
const UNLISTED = { Kosovo: ["XK", "XKX"] };
// Parts that belong, by ISO 3166-1, to a country that has an entry already.
const PART_OF = {
  Akrotiri: "CY", "Ashmore and Cartier Is.": "AU", Baikonur: "KZ", "Clipperton I.": "FR", "Coral Sea Is.": "AU", "Cyprus U.N. Buffer Zone": "CY", Dhekelia: "CY",
  "Indian Ocean Ter.": "AU", "N. Cyprus": "CY", Somaliland: "SO", "USNB Guantanamo Bay": "CU",
};
// Reefs and glaciers that several claim and nobody lives on.
const LEFT_OUT = ["Bajo Nuevo Bank", "Scarborough Reef", "Serranilla Bank", "Siachen Glacier", "Spratly Is."];

// Short names by labels, for those that are abbreviated, long or changed. The page reads the same file.
const shortNames = JSON.parse(readFileSync(join(dirname(fileURLToPath(import.meta.url)), "country-names.json")));

const detailed = JSON.parse(readFileSync(require.resolve("world-atlas/countries-10m.json")));
const atlas = simplify(presimplify(detailed, sphericalTriangleArea), DETAIL_KM2 / EARTH_RADIUS_KM ** 2);
const countries = new Map();
const entry = (alpha2, alpha3, name, others) => {
  if (!countries.has(alpha2)) countries.set(alpha2, { alpha2, alpha3, name, others, polygons: [] });
  return countries.get(alpha2);
};

// Longitudes without jumps: each step takes the short way round.
const unwrap = (ring) => {
  let points = ring.map(([longitude, latitude]) => [Math.round(latitude * UNITS_PER_DEGREE), Math.round(longitude * UNITS_PER_DEGREE)]);
  const around = (from, to) => from + ((((to - from + TURN / 2) % TURN) + TURN) % TURN) - TURN / 2;
  for (let i = 1; i < points.length; i++) points[i][1] = around(points[i - 1][1], points[i][1]);
  const turns = points.at(-1)[1] - points[0][1];
  if (Math.abs(turns) === TURN) {
    points.push([-90 * UNITS_PER_DEGREE, points.at(-1)[1]], [-90 * UNITS_PER_DEGREE, points[0][1]]);
  } else if (turns !== 0) throw new Error(`a ring that doesn't close: ${turns}`);
  else points.pop();
  points = points.filter((p, i) => {
    const q = points[(i + 1) % points.length];
    return p[0] !== q[0] || p[1] !== q[1];
  });
  return points;
};
// Twice the area in the plane; zero for what rounding has made a line.
const shoelace = (ring) => Math.abs(ring.reduce((sum, [y, x], i) => sum + x * ring[(i + 1) % ring.length][0] - ring[(i + 1) % ring.length][1] * y, 0));
const extent = (ring) => [Math.min(...ring.map((p) => p[1])), Math.max(...ring.map((p) => p[1]))];

for (const shape of feature(atlas, atlas.objects.countries).features) {
  const label = shape.properties.name;
  if (LEFT_OUT.includes(label)) continue;
  let country;
  if (PART_OF[label]) country = PART_OF[label];
  const alpha2 = country ?? (shape.id ? iso.numericToAlpha2(shape.id) : UNLISTED[label]?.[0]);
  if (!alpha2) throw new Error(`no code for ${label} (${shape.id})`);
  const alpha3 = UNLISTED[label]?.[1] ?? iso.alpha2ToAlpha3(alpha2);
  const names = iso.getName(alpha2, "en", { select: "all" }) ?? [label];
  const at = entry(alpha2, alpha3, null, names);
  // Parts don't name the whole.
  if (!country) {
    at.name = shortNames[label] ?? label;
    at.others.push(label);
  }
  const polygons = shape.geometry.type === "Polygon" ? [shape.geometry.coordinates] : shape.geometry.coordinates;
  for (const polygon of polygons) {
    const rings = polygon.map(unwrap).filter((ring, position) => ring.length >= 3 && shoelace(ring) > 0 && !(position > 0 && ring.every((p) => p[0] < -89.9 * UNITS_PER_DEGREE)));
    if (rings.length === 0) continue;
    // The turn that its middle lies on.
    const middle = (extent(rings[0])[0] + extent(rings[0])[1]) / 2;
    const turns = Math.floor((middle + TURN / 2) / TURN);
    rings[0].forEach((p) => (p[1] -= turns * TURN));
    const [west, east] = extent(rings[0]);
    // Holes on the same turn as their exterior.
    for (const hole of rings.slice(1)) {
      while (extent(hole)[0] < west) hole.forEach((p) => (p[1] += TURN));
      while (extent(hole)[1] > east) hole.forEach((p) => (p[1] -= TURN));
    }
    at.polygons.push(rings);
  }
}
// Countries that have a code and a name, but no polygon at this scale: known by name all the same.
for (const [alpha2, name] of Object.entries(iso.getNames("en", { select: "official" })))
  entry(alpha2, iso.alpha2ToAlpha3(alpha2), name, []);

const bytes = [];
const unsigned = (value) => {
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  bytes.push(value);
};
const signed = (value) => unsigned(value < 0 ? -2 * value - 1 : 2 * value);
const text = (value) => {
  const encoded = Buffer.from(value, "utf8");
  unsigned(encoded.length);
  bytes.push(...encoded);
};

const sorted = [...countries.values()].sort((a, b) => (a.alpha2 < b.alpha2 ? -1 : 1));
unsigned(sorted.length);
let points = 0;
for (const country of sorted) {
  if (!country.name) throw new Error(`no name for ${country.alpha2}`);
  [country.alpha2, country.alpha3, country.name, [...new Set(country.others)].filter((name) => name !== country.name).join("|")].forEach(text);
  unsigned(country.polygons.length);
  for (const rings of country.polygons) {
    unsigned(rings.length);
    for (const ring of rings) {
      unsigned(ring.length);
      let here = [0, 0];
      for (const point of ring) {
        signed(point[0] - here[0]);
        signed(point[1] - here[1]);
        here = point;
        points += 1;
      }
    }
  }
}
writeFileSync(join(dirname(fileURLToPath(import.meta.url)), "countries.bin"), Buffer.from(bytes));
const without = sorted.filter((country) => country.polygons.length === 0).map((country) => country.alpha2);
console.log(`${sorted.length} countries, ${points} points, ${bytes.length} bytes; without polygons: ${without.join(" ")}`);
