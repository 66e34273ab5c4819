import { describe, expect, test } from "vitest";
import type { Country } from "../src/basemap";
import { readFileSync } from "node:fs";
import { Basemap } from "../src/basemap";
import { drawnRegion, parseConstraint } from "../src/constraints";
import { areaLines, borderLines } from "../src/outlines";
import { unwrapped } from "../src/rings";

const square = [[[[0, 0], [1, 0], [1, 1], [0, 0]]]];
const country = (name: string): Country => ({ name, coordinates: square, boxes: [[0, 0, 1, 1]] });
const countries = ["Portugal", "Côte d'Ivoire", "Guinea", "Guinea-Bissau", "United States of America", "Niger", "Nigeria"].map(country);
const parse = (text: string) => parseConstraint(text, countries, () => square);
const label = (text: string) => {
  const parsed = parse(text);
  return "constraint" in parsed ? parsed.constraint.label : `PROBLEM ${parsed.problem}`;
};

describe("constraints", () => {
  test("countries, by the names that people use", () => {
    expect(label(" portugal ")).toBe("Portugal");
    expect(label("Cote d’Ivoire")).toBe("Côte d'Ivoire");
    expect(label("ivory coast")).toBe("Côte d'Ivoire");
    expect(label("USA")).toBe("United States of America");
    expect(label("Port")).toBe("Portugal");
    expect(label("Niger")).toBe("Niger");
    expect(label("Guinea")).toBe("Guinea");
    expect(label("Gui")).toContain("Guinea, Guinea-Bissau");
    expect(label("Atlantis")).toContain("no country “Atlantis”");
    expect(label("land")).toBe("land");
    expect(label("  ")).toContain("LATITUDE,LONGITUDE,RADIUSkm");
  });

  test("circles and boxes, as the program reads them", () => {
    expect(parse("45.4, 12.3, 200km")).toMatchObject({ constraint: { area: { kind: "circle", latitude: 45.4, longitude: 12.3, radius_km: 200 } } });
    expect(parse("-10,170,20,-170")).toMatchObject({ constraint: { area: { kind: "box", south: -10, west: 170, north: 20, east: -170 } } });
    expect(label("45.4,12.3,200")).toContain("45.4,12.3,200km");
    expect(label("95,12,200km")).toContain("-90 and 90");
    expect(label("45,12,0km")).toContain("more than 0");
    expect(label("20,0,10,5")).toContain("south");
    expect(label("1,2")).toContain("neither");
    expect(label("1,2,x,4")).toContain("not a number");
  });

  test("drawings go the short way over the antimeridian", () => {
    expect(unwrapped([[170, 0], [-170, 5], [175, 10]])).toEqual([[170, 0], [190, 5], [175, 10]]);
    expect(drawnRegion([[0, 0], [1, 1]], 1)).toHaveProperty("problem");
    expect(drawnRegion([[0, 0], [1, 1], [0, 1]], 1)).toHaveProperty("constraint");
  });
});

describe("lines", () => {
  test("seams at the antimeridian and the poles are no borders", () => {
    const lines = borderLines({ type: "Polygon", coordinates: [[[170, 0], [180, 0], [180, 10], [170, 10], [170, 0]]] });
    expect(lines).toEqual([[[170, 0], [180, 0]], [[180, 10], [170, 10], [170, 0]]]);
    const cap = borderLines({ type: "Polygon", coordinates: [[[-180, 60], [180, 60], [180, 90], [-180, 90], [-180, 60]]] });
    expect(cap).toEqual([[[-180, 60], [180, 60]]]);
  });

  test("a circle's border is as far from its centre everywhere", () => {
    const [ring] = areaLines({ kind: "circle", latitude: 60, longitude: 179, radius_km: 500 }).geometry.coordinates;
    const radians = Math.PI / 180;
    for (const [longitude, latitude] of ring! as [number, number][]) {
      const cosine = Math.sin(60 * radians) * Math.sin(latitude * radians) + Math.cos(60 * radians) * Math.cos(latitude * radians) * Math.cos((longitude - 179) * radians);
      expect(6371.0088 * Math.acos(cosine)).toBeCloseTo(500, 3);
    }
  });
});

describe("Natural Earth", () => {
  const basemap = new Basemap(JSON.parse(readFileSync(new URL("../node_modules/world-atlas/countries-50m.json", import.meta.url), "utf8")));
  const rings = basemap.countries.flatMap(({ coordinates }) => coordinates).flat();

  test("no ring jumps over the antimeridian, each is closed and at most once round", () => {
    for (const ring of [...rings, ...basemap.land.geometry.coordinates.flat()]) {
      const longitudes = ring.map((point) => point[0]!);
      const steps = longitudes.slice(1).map((longitude, k) => Math.abs(longitude - longitudes[k]!));
      const alongPole = (k: number) => Math.abs(ring[k]![1]!) === 90 && Math.abs(ring[k + 1]![1]!) === 90;
      expect(steps.every((step, k) => step < 180 || alongPole(k))).toBe(true);
      expect(ring[0]).toEqual(ring.at(-1));
      expect(Math.max(...longitudes) - Math.min(...longitudes)).toBeLessThanOrEqual(360);
      expect(Math.max(...longitudes.map(Math.abs))).toBeLessThanOrEqual(540);
    }
  });

  test("places are in their countries, also beyond the antimeridian and at the pole", () => {
    const places: [number, number, string | null][] = [
      [-19, 46.6, "Madagascar"],
      [67, -175, "Russia"],
      [60, 100, "Russia"],
      [60, -100, "Canada"],
      [-85, 20, "Antarctica"],
      [-85, -170, "Antarctica"],
      [-16.8, -179.9, "Fiji"],
      [-16.6, 179.2, "Fiji"],
      [41.9, 12.8, "Italy"],
      [-29.5, 28.2, "Lesotho"],
      [0, -30, null],
    ];
    for (const [latitude, longitude, name] of places) expect([latitude, longitude, basemap.countryAt(latitude, longitude)]).toEqual([latitude, longitude, name]);
  });
});
