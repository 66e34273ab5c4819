import type { Inference } from "./api";
// Numbers as people read them. Two digits are as many as a prediction deserves.

/** Between a number and its unit no line is broken. */
const GAP = "\u00a0";

function significant(value: number, digits: number): string {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(digits));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en-GB", { minimumFractionDigits: 0, maximumFractionDigits: Math.min(decimals, 3) });
}

export function km(value: number): string {
  return `${significant(value, 2)}${GAP}km`;
}

export function km2(value: number): string {
  if (value >= 1e6) return `${significant(value / 1e6, 2)}${GAP}million${GAP}km²`;
  return `${significant(value, 2)}${GAP}km²`;
}

/** 80 %, 2.4 %, < 0.1 %: never more certain than it is. */
export function percent(mass: number): string {
  const value = 100 * mass;
  if (value < 0.1) return `<${GAP}0.1${GAP}%`;
  // Also if it is 100: everything known may be wrong.
  if (value > 99.5) return `>${GAP}99${GAP}%`;
  return `${value < 10 ? significant(value, 2) : value.toFixed(0)}${GAP}%`;
}

export function coordinates(latitude: number, longitude: number, decimals = 2): string {
  const part = (value: number, positive: string, negative: string) =>
    `${Math.abs(value).toFixed(decimals)}° ${value < 0 ? negative : positive}`;
  return `${part(latitude, "N", "S")}, ${part(longitude, "E", "W")}`;
}

const COMPASS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];

/** 37° (NE) */
export function heading(degrees: number): string {
  return `${Math.round(degrees) % 360}° (${COMPASS[Math.round(degrees / 45) % 8]})`;
}

/** A width that was measured on a map: three digits. */
export function measuredKm(value: number): string {
  return `${significant(value, 3)}${GAP}km`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} bytes`;
  return count < 1e6 ? `${significant(count / 1e3, 3)} kB` : `${significant(count / 1e6, 3)} MB`;
}

/** How a model was asked, in words. */
export function asked(inference: Inference): string {
  const parts: string[] = [inference.sampler];
  if (inference.steps !== null) parts.push(`${inference.steps} steps`);
  if (inference.views > 1) parts.push(`${inference.views} views`);
  if (inference.samples > 1) parts.push(`${inference.samples} samples`);
  if (inference.guidance !== 1) parts.push(`guidance ${inference.guidance}`);
  if (!inference.registration) parts.push("without registration");
  if (inference.width_km !== null) parts.push(`${measuredKm(inference.width_km)} wide`);
  return `${parts.join(", ")}; seed ${inference.seed}; place by ${inference.decode}`;
}

/** a, b and c */
export function inWords(list: readonly string[]): string {
  return list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`;
}
