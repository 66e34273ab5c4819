import { describe, expect, test } from "vitest";
import type { NamedCandidate } from "../src/api";
import { coordinates, km, km2, percent } from "../src/format";
import { escaped } from "../src/html";
import { distanceKm, named } from "../src/names";
import { fileName } from "../src/save/files";
import { geojsonOf } from "../src/save/geojson";
import { reportOf } from "../src/save/report";
import type { Visit } from "../src/visit";

const candidate = (latitude: number, longitude: number, mass = 0.5, radius_km = 200) => ({ latitude, longitude, mass, radius_km });
const itasy: NamedCandidate = { ...candidate(-19.04, 46.62), town: "Soavinandriana", district: "Itasy", country: "Madagascar", country_code: "MG" };
const sea: NamedCandidate = { ...candidate(39.2, 12.7), town: null, district: null, country: null, country_code: null };

describe("names", () => {
  const nowhere = () => null;
  test("of the nearest named candidate within the radius", () => {
    expect(named(candidate(-19.5, 46.2), [sea, itasy], nowhere)).toMatchObject({ name: "Soavinandriana", around: "Itasy, Madagascar" });
    expect(named(candidate(39.2, 12.7), [itasy, sea], nowhere)).toMatchObject({ name: "At sea", around: "" });
  });

  test("otherwise of the country, otherwise coordinates", () => {
    expect(named(candidate(-25, 46), [itasy], () => "Madagascar")).toMatchObject({ name: "Madagascar", around: "25.00° S, 46.00° E" });
    expect(named(candidate(-25, 60), [itasy], nowhere)).toMatchObject({ name: "25.00° S, 60.00° E", around: "" });
  });

  test("not across a border that cut the peak off", () => {
    expect(named(candidate(-19.5, 46.2), [itasy], () => "Mozambique").name).toBe("Mozambique");
    expect(named(candidate(39.5, 13.4), [sea], () => "Italy").name).toBe("Italy");
    expect(named(candidate(-19.5, 49, 0.5, 4000), [itasy], nowhere).name).toBe("19.50° S, 49.00° E");
    const congo = { ...itasy, country: "Democratic Republic of the Congo" };
    expect(named(candidate(-19.5, 46.2), [congo], () => "Dem. Rep. Congo").name).toBe("Soavinandriana");
  });

  test("the server's own name is shown as it is, and only at its own place", () => {
    const off: NamedCandidate = { ...sea, name: "at sea, 40 km off Egypt" };
    expect(named(candidate(39.2, 12.7), [off], nowhere)).toMatchObject({ name: "at sea, 40 km off Egypt", around: "" });
    // The page's coarse coastline does not overrule the server.
    expect(named(candidate(39.2, 12.7), [off], () => "Egypt").name).toBe("at sea, 40 km off Egypt");
    expect(named(candidate(39.9, 12.7), [off], nowhere).name).toBe("39.90° N, 12.70° E");
    // Also if the server sends it in place of the town.
    const asTown: NamedCandidate = { ...sea, town: "at sea, 40 km off Egypt" };
    expect(named(candidate(39.2, 12.7), [asTown], nowhere)).toMatchObject({ name: "at sea, 40 km off Egypt", around: "" });
    // On land the town is the headline.
    const land: NamedCandidate = { ...itasy, name: "Soavinandriana, Itasy, Madagascar" };
    expect(named(candidate(-19.04, 46.62), [land], nowhere)).toEqual(named(candidate(-19.04, 46.62), [itasy], nowhere));
  });

  test("distances, also over the antimeridian", () => {
    expect(distanceKm({ latitude: 0, longitude: 179 }, { latitude: 0, longitude: -179 })).toBeCloseTo(222.39, 1);
  });
});

test("numbers claim no more than they know", () => {
  const spaced = (texts: string[]) => texts.map((text) => text.replaceAll("\u00a0", " "));
  expect(spaced([percent(0.8), percent(0.0241), percent(0.0004), percent(0.9999), percent(1)])).toEqual(["80 %", "2.4 %", "< 0.1 %", "> 99 %", "> 99 %"]);
  expect(spaced([km(287.3), km(4812), km(3.46)])).toEqual(["290 km", "4,800 km", "3.5 km"]);
  expect(spaced([km2(1_234_567), km2(54_321)])).toEqual(["1.2 million km²", "54,000 km²"]);
  expect(coordinates(-19.0418, 46.6203, 3)).toBe("19.042° S, 46.620° E");
});

const evil = `"><img src=x onerror=alert(1)>`;
function visit(): Visit {
  return {
    id: 1,
    file: new Blob([]),
    name: `${evil}.jpg`,
    url: "",
    state: "answered",
    problem: null,
    answer: {
      image: { name: null, sha256: "ab".repeat(32), bytes: 5, width: 1, height: 1 },
      model: { name: `m${evil}`, version: evil, description: `</style><script>alert(2)</script>`, calibrated: false, prior: evil, chosen_because: evil },
      inference: { sampler: "one-pass", steps: null, samples: 1, guidance: 1, views: 1, seed: 0, decode: "mode", kernel_km: null, registration: true, width_km: null },
      warnings: [evil],
      within: [],
      candidates: [],
      radius_50_km: 1,
      radius_90_km: 2,
      area_50_km2: 3,
      area_90_km2: 4,
      kernel_km: null,
      exif: null,
    },
    answeredAt: new Date(0),
    model: null,
    localSha256: "cd".repeat(32),
    final: true,
    constraints: [{ label: `in ${evil}`, area: { kind: "circle", latitude: 0, longitude: 0, radius_km: 1 } }],
    whole: 1,
    current: 2,
    summary: { candidates: [], radius_50_km: 1, radius_90_km: 2, area_50_km2: 3, area_90_km2: 4, kernel_km: 25, top_log_density: 0, share: 0.25, normaliser_error: 0 },
    regions: { type: "FeatureCollection", features: [{ type: "Feature", geometry: { type: "Polygon", coordinates: [] }, properties: { kind: "region", level: 0.5, area_km2: 3 } }] },
    places: [{ ...candidate(1.23456789, 2), name: `town${evil}`, around: "</title><script>alert(3)</script>", country: null }],
    ground: null,
    groundAllowed: true,
    frames: null,
  };
}

describe("what is saved", () => {
  test("GeoJSON says that it is a prediction, of what and by what", () => {
    const { features } = geojsonOf(visit());
    expect(features.map((feature) => feature.properties!["kind"])).toEqual(["region", "candidate", "constraint"]);
    for (const { properties } of features) expect(properties).toMatchObject({ prediction: true, calibrated: false, sha256: "ab".repeat(32), within: [`in ${evil}`] });
    expect(features[1]!.geometry).toEqual({ type: "Point", coordinates: [2, 1.234568] });
  });

  test("the report escapes what it was given, and asks nobody", () => {
    const report = reportOf({ visit: visit(), map: `data:image/png;base64,AA`, picture: `data:image/jpeg;base64,AA"x`, pictureNote: evil, pageVersion: evil, date: new Date(0) });
    expect(report).not.toContain("<script");
    expect(report).not.toContain("<img src=x");
    expect(report).not.toContain(`AA"x`);
    expect(report.match(/<img /g)).toHaveLength(2);
    expect(report).not.toMatch(/(?:src|href)="(?!data:)/);
    expect(report).not.toMatch(/https?:/);
    expect(report).toContain("default-src 'none'");
  });

  test("the report says score where no probability was shown to be one", () => {
    const report = reportOf({ visit: visit(), map: "data:,", picture: null, pictureNote: "", pageVersion: "0", date: new Date(0) }).replaceAll("\u00a0", " ");
    expect(report).toContain("50 % score");
    expect(report).not.toMatch(/\d % probability/);
    expect(report).toContain("the browser computes cdcd");
    expect(report).toContain("25 % of the unconstrained answer");
  });

  test("the report has the server's constraint, and no raw backticks", () => {
    const constrained = visit();
    Object.assign(constrained.answer!, { within: ["Egypt"], kept: 0.031 });
    constrained.answer!.model.description = "made with `locdiff train`";
    const report = reportOf({ visit: constrained, map: "data:,", picture: null, pictureNote: "", pageVersion: "0", date: new Date(0) }).replaceAll("\u00a0", " ");
    expect(report).toContain("Within Egypt: keeps 3.1 % of the unconstrained answer.");
    expect(report).toContain("made with <code>locdiff train</code>");
  });

  test("files are named after the picture, without what names can't have", () => {
    expect(fileName("../IMG 001.jpg", "map.png")).toBe("IMG-001-map.png");
    expect(fileName("…", "map.png")).toBe("picture-map.png");
    expect(escaped(`<a href='x'>&`)).toBe("&lt;a href=&#39;x&#39;&gt;&amp;");
  });
});
