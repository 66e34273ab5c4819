// What else is known about where the picture was taken: text, or a drawing, to an area.

import type { Position } from "geojson";
import type { Country } from "./basemap";
import { coordinates, inWords, km, percent } from "./format";
import { unwrapped } from "./rings";

/** An area as crates/locdiff-wasm reads it. Polygons are those of a GeoJSON MultiPolygon. */
export type AreaRecord =
  | { kind: "circle"; latitude: number; longitude: number; radius_km: number }
  | { kind: "box"; south: number; west: number; north: number; east: number }
  | { kind: "polygons"; coordinates: Position[][][] };

export interface Constraint {
  /** As it is shown: “Portugal”, “300 km around …”. */
  label: string;
  area: AreaRecord;
}

export type Parsed = { constraint: Constraint } | { problem: string };

const HOW = "Write a country, “land”, a circle as LATITUDE,LONGITUDE,RADIUSkm, or a box as SOUTH,WEST,NORTH,EAST.";

/** Names that people use for countries that Natural Earth calls otherwise. */
const ALIASES: Record<string, string> = {
  usa: "united states of america",
  us: "united states of america",
  "united states": "united states of america",
  america: "united states of america",
  uk: "united kingdom",
  "great britain": "united kingdom",
  britain: "united kingdom",
  england: "united kingdom",
  uae: "united arab emirates",
  "czech republic": "czechia",
  "dr congo": "dem. rep. congo",
  "democratic republic of the congo": "dem. rep. congo",
  "republic of the congo": "congo",
  "ivory coast": "côte d'ivoire",
  "central african republic": "central african rep.",
  "dominican republic": "dominican rep.",
  "equatorial guinea": "eq. guinea",
  "bosnia and herzegovina": "bosnia and herz.",
  bosnia: "bosnia and herz.",
  "south sudan": "s. sudan",
  "western sahara": "w. sahara",
  "solomon islands": "solomon is.",
  "north macedonia": "macedonia",
  eswatini: "eswatini",
  swaziland: "eswatini",
  burma: "myanmar",
  "east timor": "timor-leste",
  holland: "netherlands",
  turkiye: "turkey",
};

/** Lower case, without accents: how names are compared. */
export function plain(name: string): string {
  return name
    .normalize("NFD")
    .replace(/\p{Diacritic}/gu, "")
    .replace(/’/g, "'")
    .toLowerCase()
    .trim();
}

export function parseConstraint(text: string, countries: readonly Country[], land: () => Position[][][]): Parsed {
  const trimmed = text.trim();
  if (trimmed === "") return { problem: HOW };
  if (plain(trimmed) === "land") {
    return { constraint: { label: "land", area: { kind: "polygons", coordinates: land() } } };
  }
  if (/^[-+\d.]/.test(trimmed)) return parseNumbers(trimmed);
  return parseCountry(trimmed, countries);
}

function parseNumbers(text: string): Parsed {
  const isCircle = /km\s*$/i.test(text);
  const parts = text.replace(/km\s*$/i, "").split(/[,;\s]+/).filter((part) => part !== "");
  const numbers = parts.map(Number);
  if (numbers.some((number) => !Number.isFinite(number))) return { problem: `“${text}” contains something that is not a number. ${HOW}` };
  if (numbers.length === 3) {
    const [latitude, longitude, radius_km] = numbers as [number, number, number];
    if (!isCircle) return { problem: `A circle needs its unit: ${parts.join(",")}km.` };
    return circle(latitude, longitude, radius_km);
  }
  if (numbers.length === 4 && !isCircle) {
    const [south, west, north, east] = numbers as [number, number, number, number];
    const inRange = Math.abs(south) <= 90 && Math.abs(north) <= 90 && Math.abs(west) <= 180 && Math.abs(east) <= 180;
    if (!inRange) return { problem: "Latitudes lie between -90 and 90, longitudes between -180 and 180." };
    if (south >= north) return { problem: "The box's south is not south of its north: SOUTH,WEST,NORTH,EAST." };
    if (west === east) return { problem: "The box has no width: SOUTH,WEST,NORTH,EAST." };
    return { constraint: { label: `box ${parts.join(",")}`, area: { kind: "box", south, west, north, east } } };
  }
  return { problem: `“${text}” is neither a circle nor a box. ${HOW}` };
}

export function circle(latitude: number, longitude: number, radius_km: number): Parsed {
  if (Math.abs(latitude) > 90 || Math.abs(longitude) > 180) {
    return { problem: "Latitudes lie between -90 and 90, longitudes between -180 and 180." };
  }
  if (!(radius_km > 0)) return { problem: "The circle's radius must be more than 0 km." };
  const label = `${km(radius_km)} around ${coordinates(latitude, longitude)}`;
  return { constraint: { label, area: { kind: "circle", latitude, longitude, radius_km } } };
}

function parseCountry(text: string, countries: readonly Country[]): Parsed {
  const wanted = plain(ALIASES[plain(text)] ?? text);
  const exact = countries.find((country) => plain(country.name) === wanted);
  const beginning = countries.filter((country) => plain(country.name).startsWith(wanted));
  const found = exact ?? (beginning.length === 1 ? beginning[0] : undefined);
  if (found) {
    return { constraint: { label: found.name, area: { kind: "polygons", coordinates: found.coordinates } } };
  }
  if (beginning.length > 1) {
    const names = beginning.slice(0, 4).map((country) => country.name).join(", ");
    return { problem: `“${text}” can be ${names}: use one of these names.` };
  }
  return { problem: `There is no country “${text}” on this map. ${HOW}` };
}

export function drawnRegion(points: readonly Position[], number: number): Parsed {
  if (points.length < 3) return { problem: "A region needs at least three corners." };
  const label = `drawn region ${number} (${points.length} corners)`;
  return { constraint: { label, area: { kind: "polygons", coordinates: [[unwrapped(points)]] } } };
}

/** The corners of an area that has few of them: what a reader needs to draw it again. Named countries need none. */
export function cornersOf({ area }: Constraint): string {
  if (area.kind !== "polygons") return "";
  const corners = area.coordinates.flat(2);
  if (corners.length > 100) return "";
  return corners.map(([longitude, latitude]) => `${latitude!.toFixed(4)},${longitude!.toFixed(4)}`).join(" ");
}

/**
 * Below this share, nothing of the answer is left: what the density has there is a floor, which is the same everywhere and says
 * nothing about the picture.
 */
export const NOTHING_KEPT = 1e-6;
/** Below this share, the constraint and the picture contradict each other. */
const LEAST_KEPT = 0.01;

/** How much of the unconstrained answer lies in some areas; with a warning if that is so little that something must be wrong. */
export function keptWords(kept: number, areas: readonly string[] = []): { text: string; warning: string } {
  const keeps = `keeps ${percent(kept)} of the unconstrained answer.`;
  const text = areas.length > 0 ? `Within ${inWords(areas)}: ${keeps}` : `The constraint ${keeps}`;
  const warning = kept < LEAST_KEPT ? "Warning: less than 1\u00a0% of the unconstrained answer lies there. Check the constraint: the picture may have been taken elsewhere." : "";
  return { text, warning };
}
