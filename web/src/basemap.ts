// Land, borders and names: Natural Earth 1:50m, from the package world-atlas, in the page itself.

import type { Feature, FeatureCollection, Geometry, MultiLineString, MultiPolygon, Point, Position } from "geojson";
import { feature, merge, mesh } from "topojson-client";
import type { GeometryCollection, Topology } from "topojson-specification";
import { unwrapped, unwrappedPolygon } from "./rings";
import atlasUrl from "world-atlas/countries-50m.json?url";
import shortNames from "../../crates/locdiff/assets/country-names.json";

/** By Natural Earth's labels, where they differ. */
const SHORT_NAMES: Readonly<Record<string, string>> = shortNames;

export interface Country {
  name: string;
  /** A GeoJSON MultiPolygon's coordinates. */
  coordinates: Position[][][];
  /** West, south, east, north of each polygon. */
  boxes: [number, number, number, number][];
}

type Atlas = Topology<{ countries: GeometryCollection<{ name: string }>; land: GeometryCollection }>;

export class Basemap {
  readonly countries: Country[];
  readonly land: Feature<MultiPolygon>;
  readonly coast: Geometry;
  readonly borders: Geometry;

  constructor(atlas: Atlas) {
    const collection = feature(atlas, atlas.objects.countries);
    // By the names that the program uses: some parts belong to one country there.
    const countries = new Map<string, Country>();
    for (const { properties, geometry } of collection.features) {
      const found = country(SHORT_NAMES[properties.name] ?? properties.name, geometry);
      const same = countries.get(found.name);
      same?.coordinates.push(...found.coordinates);
      same?.boxes.push(...found.boxes);
      if (same === undefined && found.coordinates.length > 0) countries.set(found.name, found);
    }
    this.countries = [...countries.values()].sort((a, b) => a.name.localeCompare(b.name, "en"));
    const geometries = atlas.objects.countries.geometries as never;
    const land = merge(atlas, geometries).coordinates.map(unwrappedPolygon).filter((rings) => rings.length > 0);
    this.land = { type: "Feature", properties: {}, geometry: { type: "MultiPolygon", coordinates: land } };
    const lines = (is: (a: object, b: object) => boolean): MultiLineString => ({ type: "MultiLineString", coordinates: mesh(atlas, atlas.objects.countries, is).coordinates.map(unwrapped).filter((line) => line.some((point) => Math.abs(point[1]!) < 89.9)) });
    this.coast = lines((a, b) => a === b);
    this.borders = lines((a, b) => a !== b);
  }

  /** What lies still on the map, by `kind`. */
  features(): FeatureCollection {
    const of = (kind: string, geometry: Geometry): Feature => ({ type: "Feature", properties: { kind }, geometry });
    return { type: "FeatureCollection", features: [of("land", this.land.geometry), of("coast", this.coast), of("borders", this.borders), of("graticule", graticule())] };
  }

  /** Where the name of each country is written: the middle of its largest polygon. */
  labels(): FeatureCollection<Point, { name: string; size: number }> {
    const features = this.countries.map(({ name, coordinates }, id): Feature<Point, { name: string; size: number }> => {
      const [largest] = coordinates.map((rings) => middle(rings[0]!)).sort((a, b) => b.area - a.area);
      return { type: "Feature", id, properties: { name, size: largest!.area }, geometry: { type: "Point", coordinates: largest!.at } };
    });
    return { type: "FeatureCollection", features };
  }

  static async load(): Promise<Basemap> {
    const response = await fetch(atlasUrl);
    return new Basemap((await response.json()) as Atlas);
  }

  countryAt(latitude: number, longitude: number): string | null {
    for (const { name, coordinates, boxes } of this.countries) {
      const inside = coordinates.some((rings, k) => {
        const [west, south, east, north] = boxes[k]!;
        if (latitude < south || latitude > north) return false;
        const turned = [-360, 0, 360].map((turn) => longitude + turn).filter((x) => west <= x && x <= east);
        return turned.some((x) => rings.filter((ring) => isInRing(ring, x, latitude)).length % 2 === 1);
      });
      if (inside) return name;
    }
    return null;
  }
}

function country(name: string, geometry: Geometry): Country {
  const polygons = geometry.type === "MultiPolygon" ? geometry.coordinates : geometry.type === "Polygon" ? [geometry.coordinates] : [];
  const coordinates = polygons.map(unwrappedPolygon).filter((rings) => rings.length > 0);
  const boxes = coordinates.map((rings): [number, number, number, number] => {
    const longitudes = rings[0]!.map((point) => point[0]!);
    const latitudes = rings[0]!.map((point) => point[1]!);
    return [Math.min(...longitudes), Math.min(...latitudes), Math.max(...longitudes), Math.max(...latitudes)];
  });
  return { name, coordinates, boxes };
}

/** The centre of gravity of a ring on the plane of longitudes, and its area in square degrees of the equator. */
function middle(ring: Position[]): { at: Position; area: number } {
  let [area, x, y] = [0, 0, 0];
  for (let k = 1; k < ring.length; k++) {
    const [x1, y1, x2, y2] = [ring[k - 1]![0]!, ring[k - 1]![1]!, ring[k]![0]!, ring[k]![1]!];
    const part = x1 * y2 - x2 * y1;
    [area, x, y] = [area + part, x + part * (x1 + x2), y + part * (y1 + y2)];
  }
  if (area === 0) return { at: ring[0]!, area: 0 };
  const latitude = y / (3 * area);
  return { at: [x / (3 * area), latitude], area: 0.5 * Math.abs(area) * Math.cos((latitude * Math.PI) / 180) };
}

function isInRing(ring: Position[], x: number, y: number): boolean {
  let inside = false;
  for (let k = 0, before = ring.length - 1; k < ring.length; before = k++) {
    const [x1, y1, x2, y2] = [ring[k]![0]!, ring[k]![1]!, ring[before]![0]!, ring[before]![1]!];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  }
  return inside;
}

/** Meridians and parallels every 30 degrees. */
function graticule(): MultiLineString {
  const steps = (from: number, to: number, by: number) =>
    Array.from({ length: Math.round((to - from) / by) + 1 }, (_, k) => from + k * by);
  const meridians = steps(-180, 150, 30).map((longitude) => steps(-90, 90, 2).map((latitude) => [longitude, latitude]));
  const parallels = steps(-60, 60, 30).map((latitude) => steps(-180, 180, 2).map((longitude) => [longitude, latitude]));
  return { type: "MultiLineString", coordinates: [...meridians, ...parallels] };
}
