import type { MultiPolygon, Polygon, Position } from "geojson";
import { describe, expect, test } from "vitest";
import type { Footprint, Point } from "../src/api";
import { heading, measuredKm } from "../src/format";
import { extentOf, sizeOf, View, warped } from "../src/ground";
import { EARTH_RADIUS_KM } from "../src/names";
import { geojsonOf } from "../src/save/geojson";
import { groundOf } from "../src/visit";

const RADIANS = Math.PI / 180;

function destination({ latitude, longitude }: Point, bearing: number, km: number): Point {
  const [angle, turn, from] = [km / EARTH_RADIUS_KM, bearing * RADIANS, latitude * RADIANS];
  const to = Math.asin(Math.sin(from) * Math.cos(angle) + Math.cos(from) * Math.sin(angle) * Math.cos(turn));
  const east = Math.atan2(Math.sin(turn) * Math.sin(angle) * Math.cos(from), Math.cos(angle) - Math.sin(from) * Math.sin(to));
  return { latitude: to / RADIANS, longitude: longitude + east / RADIANS };
}

/** A square from straight above. */
function footprintAt(latitude: number, longitude: number, heading_degrees: number, width_km: number): Footprint {
  const middle = { latitude, longitude };
  // Half of the diagonal of a square on the plane that touches the Earth, as seen on the Earth.
  const away = EARTH_RADIUS_KM * Math.atan((width_km * Math.SQRT1_2) / EARTH_RADIUS_KM);
  const corners = [-45, 45, 135, 225].map((corner) => destination(middle, heading_degrees + corner, away)) as Footprint["corners"];
  return { corners, middle, heading_degrees, width_km, likeness: 0.7 };
}

const ringOf = ({ corners }: Footprint): Position[] => [...corners, corners[0]].map(({ latitude, longitude }) => [longitude, latitude]);
const outlineOf = (footprint: Footprint): Polygon => ({ type: "Polygon", coordinates: [ringOf(footprint)] });

describe("where in the picture a place is seen", () => {
  test("corners are corners, and the middle of the ground is the middle of the picture", () => {
    for (const [latitude, longitude] of [[0, 0], [52, 13], [-17, 179.9], [89.8, -40]] as const) {
      const footprint = footprintAt(latitude, longitude, 37, 900);
      const view = new View(footprint);
      const close = (place: Point, right: number, down: number) => {
        const [u, v] = view.at(place.latitude, place.longitude)!;
        expect(u).toBeCloseTo(right, 9);
        expect(v).toBeCloseTo(down, 9);
      };
      [[0, 0], [1, 0], [1, 1], [0, 1]].forEach(([right, down], k) => close(footprint.corners[k]!, right!, down!));
      close(footprint.middle, 0.5, 0.5);
      // Upwards is where the heading points to.
      const above = destination(footprint.middle, 37, EARTH_RADIUS_KM * Math.atan(225 / EARTH_RADIUS_KM));
      close(above, 0.5, 0.25);
    }
  });

  test("the other side of the Earth is not in the picture", () => {
    const view = new View(footprintAt(10, 20, 0, 500));
    expect(view.at(-10, -160)).toBeNull();
    expect(view.at(10, 120)).toBeNull();
  });

  test("what lies behind an oblique camera is not in the picture", () => {
    const { middle } = footprintAt(0, 0, 0, 1000);
    // Far away, the picture shows three times as much ground.
    const corners = [[5, -6], [5, 6], [-3, 2], [-3, -2]].map(([latitude, longitude]) => ({ latitude: latitude!, longitude: longitude! })) as Footprint["corners"];
    const view = new View({ corners, middle });
    expect(view.at(0, 0)![0]).toBeCloseTo(0.5, 9);
    expect(view.at(-20, 0)).toBeNull();
  });
});

describe("the rectangle of the map", () => {
  test("lies around the outline, with its middle on the map", () => {
    expect(extentOf(outlineOf(footprintAt(0, 10, 0, 200)), { longitude: 10 }).west).toBeCloseTo(10 - 100 / 111.195, 2);
    for (const longitude of [179.9, -179.9, 180, -180]) {
      const { west, east } = extentOf(outlineOf(footprintAt(40, longitude, 20, 600)), { longitude });
      expect(east - west).toBeGreaterThan(6);
      expect(east - west).toBeLessThan(14);
      // MapLibre rejects others.
      expect((west + east) / 2).toBeGreaterThanOrEqual(-180);
      expect((west + east) / 2).toBeLessThan(180);
    }
  });

  test("of an outline in two pieces is one", () => {
    const box = (west: number, east: number): Position[] => [[west, 0], [east, 0], [east, 5], [west, 5], [west, 0]];
    const outline: MultiPolygon = { type: "MultiPolygon", coordinates: [[box(177, 180)], [box(-180, -176)]] };
    expect(extentOf(outline, { longitude: 179 })).toEqual({ west: -183, south: 0, east: -176, north: 5 });
  });

  test("goes around the Earth at a pole, and ends where the map does", () => {
    const ring: Position[] = [[-180, 80], [0, 84], [180, 80], [180, 90], [-180, 90], [-180, 80]];
    expect(extentOf({ type: "Polygon", coordinates: [ring] }, { longitude: 33 })).toEqual({ west: -180, south: 80, east: 180, north: 85.0511 });
  });

  test("has the pixels of the picture, but not too many", () => {
    const footprint = footprintAt(0, 0, 0, 400);
    const { width, height } = sizeOf(extentOf(outlineOf(footprint), footprint.middle), footprint, 640);
    expect(width).toBeGreaterThan(630);
    expect(width).toBeLessThan(650);
    expect(Math.abs(width - height)).toBeLessThan(4);
    const polar = sizeOf({ west: -180, south: 80, east: 180, north: 85 }, footprintAt(90, 0, 0, 900), 1024);
    expect(polar.width).toBe(1536);
  });
});

test("a picture lies on the map as it is turned, transparent beside it", () => {
  // Four quarters, red, green, blue and white from the upper left clockwise.
  const side = 64;
  const square = new Uint8ClampedArray(4 * side * side);
  const colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]] as const;
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const quarter = y < side / 2 ? (x < side / 2 ? 0 : 1) : x < side / 2 ? 3 : 2;
      square.set([...colours[quarter]!, 255], 4 * (y * side + x));
    }
  }
  // The top of the picture points to the east: its upper left corner is the one in the north-east.
  const footprint = footprintAt(20, 179.5, 90, 300);
  const extent = extentOf(outlineOf(footprint), footprint.middle);
  const size = { width: 100, height: 100 };
  const pixels = warped(square, side, new View(footprint), extent, size);
  const at = (x: number, y: number) => [...pixels.subarray(4 * (100 * y + x), 4 * (100 * y + x) + 4)];
  expect([at(75, 25), at(75, 75), at(25, 75), at(25, 25)]).toEqual(colours.map((colour) => [...colour, 255]));
  // A square that is turned by half of a right angle leaves the corners of the rectangle free.
  const turned = footprintAt(20, 179.5, 45, 300);
  const rectangle = extentOf(outlineOf(turned), turned.middle);
  const free = warped(square, side, new View(turned), rectangle, size);
  for (const corner of [0, 99, 9900, 9999]) expect(free[4 * corner + 3]).toBe(0);
  expect(free[4 * 5050 + 3]).toBe(255);
});

test("widths and headings have few digits", () => {
  expect([heading(37.2), heading(359.8), heading(0), heading(200)]).toEqual(["37° (NE)", "0° (N)", "0° (N)", "200° (S)"]);
  expect([measuredKm(412.34), measuredKm(1589.78), measuredKm(35.62)].map((text) => text.replaceAll("\u00a0", " "))).toEqual(["412 km", "1,590 km", "35.6 km"]);
});

test("GeoJSON has the footprint, unless a constraint excludes its middle", () => {
  const footprint = footprintAt(48, 2, 37, 400);
  const ground = { footprint, outline: outlineOf(footprint), drape: null };
  const answer = { model: { name: "m", version: "1", calibrated: true }, image: { sha256: "ab" } } as never;
  const visit = { answer, regions: { type: "FeatureCollection" as const, features: [] }, places: [], name: "a.jpg", constraints: [], ground, groundAllowed: true };
  const [feature] = geojsonOf(visit).features;
  expect(feature!.geometry).toEqual(ground.outline);
  expect(feature!.properties).toMatchObject({ kind: "footprint", latitude: 48, longitude: 2, heading_degrees: 37, width_km: 400, likeness: 0.7, prediction: true, model: "m" });
  expect(geojsonOf({ ...visit, groundAllowed: false }).features).toEqual([]);
  expect(groundOf({ ground, groundAllowed: false })).toBeNull();
});
