// Names for candidates. The server names those of its answer; restricted ones are matched with them.

import type { Candidate, NamedCandidate, PlaceName, Reference } from "./api";
import { coordinates } from "./format";

export interface Place extends Candidate {
  /** The largest part of the name: a town, a country, or coordinates. */
  name: string;
  /** What it lies in; empty if there is none. */
  around: string;
  country: string | null;
  /** Photographs of a gallery that the candidate of the server rests on. */
  references?: Reference[];
}

export const EARTH_RADIUS_KM = 6371.0088;

export function distanceKm(a: { latitude: number; longitude: number }, b: { latitude: number; longitude: number }): number {
  const radians = Math.PI / 180;
  const half = (x: number) => Math.sin((x * radians) / 2) ** 2;
  const across = Math.cos(a.latitude * radians) * Math.cos(b.latitude * radians) * half(a.longitude - b.longitude);
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.min(1, Math.sqrt(half(a.latitude - b.latitude) + across)));
}

/** A candidate that is spread this far is no place: the server names it “anywhere else on Earth”. */
const ANYWHERE_KM = 9000;
export const isAnywhere = ({ radius_km }: Candidate): boolean => radius_km > ANYWHERE_KM;

/** A candidate closer than this to a named one is the same, however sharp its peak. */
const SAME_KM = 5;
/** However wide a peak is, a name from farther away does not describe its top. */
const FARTHEST_KM = 150;

export function named(
  candidate: Candidate,
  known: readonly NamedCandidate[],
  countryAt: (latitude: number, longitude: number) => string | null,
): Place {
  let nearest: NamedCandidate | null = null;
  let least = Math.min(Math.max(candidate.radius_km, SAME_KM), FARTHEST_KM);
  for (const other of known) {
    const distance = distanceKm(candidate, other);
    if (distance <= least) [nearest, least] = [other, distance];
  }
  const country = countryAt(candidate.latitude, candidate.longitude);
  // A peak that a border cut off may lie on the other side of it than the named one.
  if (nearest !== null && (least <= SAME_KM || isNameOf(nearest, country))) {
    const parts = nameParts(nearest);
    const [name, ...around] = parts.length > 0 ? parts : ["At sea"];
    const { references } = nearest;
    return { ...candidate, name: name!, around: around.join(", "), country: nearest.country, ...(references && { references }) };
  }
  const where = coordinates(candidate.latitude, candidate.longitude);
  if (country !== null) return { ...candidate, name: country, around: where, country };
  return { ...candidate, name: where, around: "", country: null };
}

/** Whether a name from some distance away is also right here, in this country or at sea. */
function isNameOf(other: NamedCandidate, country: string | null): boolean {
  // “at sea, 40 km off Egypt” is true of one place only.
  if (/\d\s*km\b/.test(nameParts(other)[0] ?? "")) return false;
  return country === null || similar(other.country, country);
}

/** From the town to the country; at sea the server's name as it is. */
export function nameParts({ name, town, district, country }: PlaceName): string[] {
  if (country === null && name) return [name];
  return [...new Set([town, district, country].filter((part): part is string => part !== null))];
}

/** Two sources name one country differently: “Dem. Rep. Congo”, “Democratic Republic of the Congo”. */
function similar(a: string | null, b: string): boolean {
  if (a === null) return false;
  const words = (text: string) => text.toLowerCase().split(/[^\p{L}]+/u).filter((word) => word.length > 2);
  const others = words(b);
  return words(a).some((word) => others.some((other) => word.startsWith(other) || other.startsWith(word)));
}
