// Areas as lines on the map.

import type { Feature, MultiLineString, MultiPolygon, Polygon, Position } from "geojson";
import type { AreaRecord } from "./constraints";
import { EARTH_RADIUS_KM } from "./names";

/**
 * The border of polygons without the seams where they were cut for the plane: along the antimeridian and
 * at the poles there is no border.
 */
export function borderLines(geometry: Polygon | MultiPolygon): Position[][] {
  const polygons = geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates;
  const lines: Position[][] = [];
  for (const ring of polygons.flat()) {
    let line: Position[] = [];
    for (let k = 0; k < ring.length; k++) {
      const [here, before] = [ring[k]!, ring[k - 1]];
      if (before !== undefined && isSeam(before, here)) {
        if (line.length > 1) lines.push(line);
        line = [];
      }
      line.push(here);
    }
    if (line.length > 1) lines.push(line);
  }
  return lines;
}

function isSeam(a: Position, b: Position): boolean {
  const near = (x: number, y: number) => Math.abs(x - y) < 1e-6;
  const onAntimeridian = (x: number) => near(Math.abs(x), 180);
  return (onAntimeridian(a[0]!) && near(a[0]!, b[0]!)) || (near(Math.abs(a[1]!), 90) && near(Math.abs(b[1]!), 90));
}

/** More points along edges that are straight in longitude and latitude: a map bends them otherwise. */
function densified(ring: readonly Position[]): Position[] {
  const points: Position[] = [];
  for (let k = 0; k < ring.length; k++) {
    const [a, b] = [ring[k]!, ring[(k + 1) % ring.length]!];
    const steps = Math.max(1, Math.ceil(Math.max(Math.abs(b[0]! - a[0]!), Math.abs(b[1]! - a[1]!)) / 2));
    for (let step = 0; step < steps; step++) {
      const share = step / steps;
      points.push([a[0]! + share * (b[0]! - a[0]!), a[1]! + share * (b[1]! - a[1]!)]);
    }
  }
  points.push(points[0]!);
  return points;
}

function circleRing(latitude: number, longitude: number, radiusKm: number): Position[] {
  const radians = Math.PI / 180;
  const angle = radiusKm / EARTH_RADIUS_KM;
  const [sin, cos] = [Math.sin(latitude * radians), Math.cos(latitude * radians)];
  return Array.from({ length: 145 }, (_, k) => {
    const bearing = (k / 144) * 2 * Math.PI;
    const north = Math.asin(sin * Math.cos(angle) + cos * Math.sin(angle) * Math.cos(bearing));
    const east = Math.atan2(Math.sin(bearing) * Math.sin(angle) * cos, Math.cos(angle) - sin * Math.sin(north));
    return [longitude + east / radians, north / radians];
  });
}

/** The border of an area, for the map. */
export function areaLines(area: AreaRecord): Feature<MultiLineString> {
  let coordinates: Position[][];
  if (area.kind === "circle") {
    // Around more than half of the Earth, or over a pole, the ring isn't closed in the plane: split its jumps.
    coordinates = splitJumps(circleRing(area.latitude, area.longitude, area.radius_km));
  } else if (area.kind === "box") {
    const { south, west, north } = area;
    const east = area.east < west ? area.east + 360 : area.east;
    const ring = densified([[west, south], [east, south], [east, north], [west, north]]);
    coordinates = east - west >= 360 ? borderLines({ type: "Polygon", coordinates: [ring] }) : [ring];
  } else {
    coordinates = area.coordinates.flatMap((rings) =>
      rings.length === 1 && rings[0]!.length < 60
        ? [densified(rings[0]!)]
        : borderLines({ type: "Polygon", coordinates: rings }),
    );
  }
  return { type: "Feature", properties: {}, geometry: { type: "MultiLineString", coordinates } };
}

function splitJumps(ring: Position[]): Position[][] {
  const lines: Position[][] = [[]];
  for (const point of ring) {
    const before = lines.at(-1)!.at(-1);
    if (before !== undefined && Math.abs(point[0]! - before[0]!) > 180) lines.push([]);
    lines.at(-1)!.push(point);
  }
  return lines.filter((line) => line.length > 1);
}
