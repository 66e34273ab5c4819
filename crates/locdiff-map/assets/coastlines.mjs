// Makes coastlines.bin beside this script: the land of Natural Earth 1:50m (public domain), as npm's
// `world-atlas` packs it, simplified. Run once; the result is committed.
//
//   npm install --no-save world-atlas@2.0.2 topojson-client@3.1.0 topojson-simplify@3.0.3
//   node coastlines.mjs
//
// Format: numbers as unsigned LEB128, signed ones in zigzag. The number of rings; then for each ring
// the number of its points, and for each point the steps in latitude and longitude from the point
// before (from 0, 0 at the start of the file) in hundredths of a degree. Longitude steps take the short
// way round. Rings are closed without repeating their first point, and have the land on their left.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// Packages are found from where the script is called, so that none need lie beside it.
const require = createRequire(join(process.cwd(), "any.js"));
const { feature } = require("topojson-client");
const { presimplify, simplify, sphericalRingArea, sphericalTriangleArea } = require("topojson-simplify");

const EARTH_RADIUS_KM = 6371.0088;
// A point goes if the triangle with its neighbours is smaller than this.
const DETAIL_KM2 = 20;
const UNITS_PER_DEGREE = 100;

const atlas = JSON.parse(readFileSync(require.resolve("world-atlas/land-50m.json")));
const detailed = presimplify(atlas, sphericalTriangleArea);
const simple = simplify(detailed, DETAIL_KM2 / EARTH_RADIUS_KM ** 2);
const polygons = feature(simple, simple.objects.land).features.flatMap((f) => f.geometry.coordinates);

const wrap = (units) => ((((units + 180 * UNITS_PER_DEGREE) % (360 * UNITS_PER_DEGREE)) + 360 * UNITS_PER_DEGREE) %
  (360 * UNITS_PER_DEGREE)) - 180 * UNITS_PER_DEGREE;

const rings = [];
for (const polygon of polygons) {
  polygon.forEach((ring, position) => {
    // A scar of Natural Earth's cut along the antimeridian, not a lake at the south pole.
    if (ring.every(([, latitude]) => latitude < -89.9)) return;
    // `world-atlas` has the land on the right; the area of an outer ring tells if that should change.
    const landOnRight = sphericalRingArea(ring, position > 0) < 2 * Math.PI;
    if (!landOnRight) throw new Error(`ring at ${ring[0]} is wound the other way`);
    let points = ring.slice(1).reverse().map(([longitude, latitude]) => [
      Math.round(latitude * UNITS_PER_DEGREE),
      wrap(Math.round(longitude * UNITS_PER_DEGREE)),
    ]);
    points = points.filter((p, i) => {
      const q = points[(i + 1) % points.length];
      return p[0] !== q[0] || p[1] !== q[1];
    });
    if (points.length >= 3) rings.push(points);
  });
}

const bytes = [];
const unsigned = (value) => {
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  bytes.push(value);
};
const signed = (value) => unsigned(value < 0 ? -2 * value - 1 : 2 * value);

let here = [0, 0];
unsigned(rings.length);
for (const ring of rings) {
  unsigned(ring.length);
  for (const point of ring) {
    signed(point[0] - here[0]);
    signed(wrap(point[1] - here[1]));
    here = point;
  }
}
writeFileSync(join(dirname(fileURLToPath(import.meta.url)), "coastlines.bin"), Buffer.from(bytes));
console.log(`${rings.length} rings, ${rings.flat().length} points, ${bytes.length} bytes`);
