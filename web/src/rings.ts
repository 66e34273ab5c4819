// Lines and rings on a round Earth, written on the plane of longitude and latitude.
//
// Natural Earth's rings, put together again over the antimeridian, jump from 180 to −180. Here they go on instead, to 181,
// 182 and so on, as RFC 7946's straight edges, MapLibre and locdiff-sphere need it.

import type { Position } from "geojson";

/** Each point the short way from the one before. */
export function unwrapped(points: readonly Position[]): Position[] {
  const line: Position[] = [];
  for (const point of points) {
    const [longitude, latitude] = [point[0]!, point[1]!];
    const before = line.at(-1)?.[0] ?? longitude;
    line.push([longitude - 360 * Math.round((longitude - before) / 360), latitude]);
  }
  return line;
}

/** A polygon whose rings don't jump; one around a pole runs along it. */
export function unwrappedPolygon(rings: readonly Position[][]): Position[][] {
  // A ring at the pole itself stands for the seam there, which is added where it is needed.
  const real = rings.filter((ring) => !ring.every((point) => Math.abs(point[1]!) > 89.9));
  const [exterior, ...holes] = real.map((ring) => closedOverPole(unwrapped(ring)));
  if (exterior === undefined) return [];
  const turned = toMiddle(exterior, 0);
  const [west, east] = extent(turned);
  return [turned, ...holes.map((hole) => toMiddle(hole, (west + east) / 2))];
}

function extent(ring: readonly Position[]): [number, number] {
  let [west, east] = [Infinity, -Infinity];
  for (const point of ring) [west, east] = [Math.min(west, point[0]!), Math.max(east, point[0]!)];
  return [west, east];
}

/** Turned by full turns until its middle is nearest to a longitude. */
function toMiddle(ring: Position[], longitude: number): Position[] {
  const [west, east] = extent(ring);
  const turns = Math.round(((west + east) / 2 - longitude) / 360);
  return turns === 0 ? ring : ring.map(([x, y]) => [x! - 360 * turns, y!]);
}

function closedOverPole(ring: Position[]): Position[] {
  const [first, last] = [ring[0]!, ring.at(-1)!];
  if (Math.abs(last[0]! - first[0]!) < 180) return ring;
  // Once round the Earth: begin at the antimeridian, so that the way along the pole begins and ends there.
  const turn = (x: number) => Math.floor((x + 180) / 360);
  const crossing = ring.findIndex((point, k) => k > 0 && turn(point[0]!) !== turn(ring[k - 1]![0]!));
  const start = Math.max(crossing, 0);
  const open = unwrapped([...ring.slice(start, -1), ...ring.slice(0, start)]);
  const eastward = last[0]! > first[0]!;
  const shift = 360 * turn(open[0]![0]!);
  const points = open.map(([x, y]): Position => [Math.min(180, Math.max(-180, x! - shift)), y!]);
  const latitude = points[0]![1]!;
  const pole = points.reduce((sum, point) => sum + point[1]!, 0) < 0 ? -90 : 90;
  const [from, to] = eastward ? [-180, 180] : [180, -180];
  return [[from, latitude], ...points, [to, latitude], [to, pole], [from, pole], [from, latitude]];
}
