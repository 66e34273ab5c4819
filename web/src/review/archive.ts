// The pictures of a library as the review page has them: their state, their order, and which of them are shown.

import type { Candidate } from "../api";

export type Decision = "accepted" | "rejected" | "moved";
/** Latitude and longitude in degrees. */
export type LatLon = [number, number];

export interface Picture {
  id: string;
  path: string;
  name: string;
  /** ISO 8601, as the camera wrote it. */
  time: string | null;
  kind: "photo" | "graphic";
  gps: LatLon | null;
  /** The place that the model predicts, before any decision. */
  place: LatLon | null;
  place_name: string | null;
  /** 0 to 1: a probability if the model is calibrated, else a score. */
  confidence: number | null;
  radius_68_km: number | null;
  radius_90_km: number | null;
  candidates: Candidate[];
  /** Whether other pictures, tracks or statements changed the estimate. */
  fused: boolean;
  influences: string[];
  error: string | null;
  decision: Decision | null;
  /** Where a person put the picture. */
  pin: LatLon | null;
}

export interface Archive {
  library: string;
  model: { name: string; version: string; calibrated: boolean } | null;
  pictures: Picture[];
}

export type Status = "gps" | "accepted" | "rejected" | "estimate" | "none";

export function statusOf({ decision, gps, place }: Picture): Status {
  if (decision !== null) return decision === "rejected" ? "rejected" : "accepted";
  if (gps !== null) return "gps";
  return place === null ? "none" : "estimate";
}

/** Where a picture is on the map. */
export function placeOf({ decision, pin, gps, place }: Picture): LatLon | null {
  return (decision === "moved" ? pin : null) ?? gps ?? place;
}

/** Only an estimate can be accepted or rejected; GPS data of the file stands. */
export function isDecidable({ gps, place }: Picture): boolean {
  return gps === null && place !== null;
}

/** What the confidence is called. */
export function nounOf({ model }: Pick<Archive, "model">): "probability" | "score" {
  return model?.calibrated === true ? "probability" : "score";
}

/** Milliseconds of a time; NaN without one. Times without a zone are compared as if all were of one zone. */
export function instantOf(time: string | null): number {
  if (time === null) return Number.NaN;
  return Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(time) || !time.includes("T") ? time : `${time}Z`);
}

export const FILTERS = { all: "All", undecided: "Undecided", accepted: "Accepted", rejected: "Rejected", gps: "With GPS", graphics: "Graphics", errors: "Errors" } as const;
export type Filter = keyof typeof FILTERS;

export function passes(filter: Filter, picture: Picture): boolean {
  switch (filter) {
    case "all":
      return true;
    case "undecided":
      return statusOf(picture) === "estimate";
    case "accepted":
    case "rejected":
      return statusOf(picture) === filter;
    case "gps":
      return picture.gps !== null;
    case "graphics":
      return picture.kind === "graphic";
    case "errors":
      return picture.error !== null;
  }
}

export const SORTS = { confident: "Most confident first", unsure: "Least confident first", time: "By time", name: "By name" } as const;
export type Sort = keyof typeof SORTS;

/** IMG_9 comes before IMG_10. A collator does the same, in ten times the time. */
const nameKey = (name: string) => name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));

/** Indices of pictures in order; what has no such number comes last, and equals by name. */
export function sorted(pictures: readonly Picture[], sort: Sort): number[] {
  const names = pictures.map(({ name }) => nameKey(name));
  const byName = (a: number, b: number) => (names[a]! < names[b]! ? -1 : names[a]! > names[b]! ? 1 : a - b);
  const order = pictures.map((_, index) => index);
  if (sort === "name") return order.sort(byName);
  const sign = sort === "confident" ? -1 : 1;
  const keys = pictures.map(({ confidence, time }) => {
    const key = sort === "time" ? instantOf(time) : sign * (confidence ?? Number.NaN);
    return Number.isNaN(key) ? Infinity : key;
  });
  return order.sort((a, b) => (keys[a]! === keys[b]! ? byName(a, b) : keys[a]! - keys[b]!));
}

/** Which pictures are shown in which order, which of them is looked at, and which are selected for the next decision. */
export class View {
  readonly times: Float64Array;
  filter: Filter = "all";
  sort: Sort = "confident";
  /** Milliseconds: from, and up to but without. */
  range: [number, number] | null = null;
  shown: number[] = [];
  readonly selected = new Set<number>();
  /** The picture that is looked at. */
  current: number | null = null;
  readonly #pictures: readonly Picture[];
  readonly #orders = new Map<Sort, number[]>();
  /** Where in `shown` a picture is; −1 if it is not. */
  readonly #positions: Int32Array;
  /** Where the range of a selection begins. */
  #anchor: number | null = null;

  constructor(pictures: readonly Picture[]) {
    this.#pictures = pictures;
    this.times = Float64Array.from(pictures, ({ time }) => instantOf(time));
    this.#positions = new Int32Array(pictures.length).fill(-1);
    if (this.count("undecided") > 0) this.filter = "undecided";
    this.refresh();
    this.current = this.shown[0] ?? null;
  }

  count(filter: Filter): number {
    return this.#pictures.reduce((sum, picture) => sum + Number(passes(filter, picture)), 0);
  }

  position(index: number | null): number {
    return index === null ? -1 : (this.#positions[index] ?? -1);
  }

  /**
   * Filters and sorts again. `keep` stays, whatever the filter: a picture that was just decided does not vanish while it is
   * looked at. What is not shown any more is not selected either.
   */
  refresh(keep: number | null = null): void {
    let order = this.#orders.get(this.sort);
    if (order === undefined) this.#orders.set(this.sort, (order = sorted(this.#pictures, this.sort)));
    const [from, to] = this.range ?? [0, 0];
    const isInRange = (index: number) => this.range === null || (this.times[index]! >= from && this.times[index]! < to);
    this.shown = order.filter((index) => index === keep || (passes(this.filter, this.#pictures[index]!) && isInRange(index)));
    this.#positions.fill(-1);
    this.shown.forEach((index, position) => (this.#positions[index] = position));
    for (const index of this.selected) if (this.#positions[index] === -1) this.selected.delete(index);
    if (this.#anchor !== null && this.#positions[this.#anchor] === -1) this.#anchor = null;
  }

  /** The picture so many rows further. */
  neighbor(step: number): number | null {
    const position = this.position(this.current) + step;
    return this.shown[Math.min(this.shown.length - 1, Math.max(0, position))] ?? null;
  }

  toggle(index: number): void {
    if (!this.selected.delete(index)) this.selected.add(index);
    this.#anchor = index;
  }

  /** Selects everything between the last selected picture (or the current one) and this one. */
  extend(index: number): void {
    this.#anchor ??= this.current ?? index;
    const [a, b] = [this.position(this.#anchor), this.position(index)];
    for (const between of this.shown.slice(Math.min(a, b), Math.max(a, b) + 1)) this.selected.add(between);
  }

  /** All that is shown; nothing if all of it is selected already. */
  selectAll(): void {
    if (this.selected.size === this.shown.length) return this.unselect();
    for (const index of this.shown) this.selected.add(index);
  }

  unselect(): void {
    this.selected.clear();
    this.#anchor = null;
  }

  /** What the next decision is about: the selection, or the current picture. */
  get subjects(): number[] {
    if (this.selected.size > 0) return [...this.selected];
    return this.current === null ? [] : [this.current];
  }
}
