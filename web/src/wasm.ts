// crates/locdiff-wasm's functions, with TypeScript's types.

import type { Candidate, DensityRecord, Point } from "./api";
import type { AreaRecord } from "./constraints";
import type { FeatureCollection, MultiPolygon, Polygon } from "geojson";

interface Exports {
  memory: WebAssembly.Memory;
  locdiff_allocate(length: number): number;
  locdiff_deallocate(memory: number, length: number): void;
  locdiff_output(): number;
  locdiff_output_len(): number;
  locdiff_open(json: number, length: number): number;
  locdiff_restrict(number: number, json: number, length: number): number;
  locdiff_restrict_coarsely(number: number, json: number, length: number): number;
  locdiff_release(number: number): void;
  locdiff_summary(number: number, candidates: number): number;
  locdiff_scale(number: number): number;
  locdiff_regions(number: number): number;
  locdiff_outline(json: number, length: number): number;
  locdiff_allows(number: number, latitude: number, longitude: number): number;
  locdiff_tile(number: number, zoom: number, x: number, y: number, size: number): number;
}

/** A density on a part of the Earth. It is coarse unless it is final. */
export interface Restricted {
  number: number;
  final: boolean;
}

/** What it takes to draw a density. */
export interface Scale {
  top_log_density: number;
  share: number;
  normaliser_error: number;
}

export interface Summary extends Scale {
  candidates: Candidate[];
  radius_50_km: number;
  radius_90_km: number;
  area_50_km2: number;
  area_90_km2: number;
  kernel_km: number | null;
}

export type Regions = FeatureCollection<Polygon | MultiPolygon, { kind: "region"; level: number; area_km2: number }>;

/** Densities under numbers, in WebAssembly. Every method throws an `Error` with the library's words. */
export class Maps {
  readonly #exports: Exports;

  constructor(instance: WebAssembly.Instance) {
    this.#exports = instance.exports as unknown as Exports;
  }

  static async load(bytes: BufferSource): Promise<Maps> {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Maps(instance);
  }

  open(density: DensityRecord): number {
    return this.#checked(this.#withText(density, (at, length) => this.#exports.locdiff_open(at, length)));
  }

  restrict(number: number, area: AreaRecord): number {
    return this.#checked(
      this.#withText(area, (at, length) => this.#exports.locdiff_restrict(number, at, length)),
    );
  }

  /** Within a small budget; the result states whether that was enough for what `restrict` gives. */
  restrictCoarsely(number: number, area: AreaRecord): Restricted {
    const restricted = this.#checked(
      this.#withText(area, (at, length) => this.#exports.locdiff_restrict_coarsely(number, at, length)),
    );
    return { number: restricted, final: JSON.parse(this.#text()) as boolean };
  }

  release(number: number): void {
    this.#exports.locdiff_release(number);
  }

  summary(number: number, candidates: number): Summary {
    this.#checked(this.#exports.locdiff_summary(number, candidates));
    return JSON.parse(this.#text()) as Summary;
  }

  scale(number: number): Scale {
    this.#checked(this.#exports.locdiff_scale(number));
    return JSON.parse(this.#text()) as Scale;
  }

  regions(number: number): Regions {
    this.#checked(this.#exports.locdiff_regions(number));
    return JSON.parse(this.#text()) as Regions;
  }

  /** The polygon between corners, cut at the antimeridian. */
  outline(corners: readonly Point[]): Polygon | MultiPolygon {
    this.#checked(this.#withText(corners, (at, length) => this.#exports.locdiff_outline(at, length)));
    return JSON.parse(this.#text()) as Polygon | MultiPolygon;
  }

  /** Whether a place lies in the areas that a density was restricted to. */
  allows(number: number, { latitude, longitude }: Point): boolean {
    this.#checked(this.#exports.locdiff_allows(number, latitude, longitude));
    return JSON.parse(this.#text()) as boolean;
  }

  /** Log-densities, row by row from the north. */
  tile(number: number, zoom: number, x: number, y: number, size: number): Float32Array {
    this.#checked(this.#exports.locdiff_tile(number, zoom, x, y, size));
    return new Float32Array(this.#output().slice().buffer);
  }

  #output(): Uint8Array {
    const { memory, locdiff_output, locdiff_output_len } = this.#exports;
    return new Uint8Array(memory.buffer, locdiff_output(), locdiff_output_len());
  }

  #text(): string {
    return new TextDecoder().decode(this.#output());
  }

  #checked(number: number): number {
    if (number === 0) throw new Error(this.#text());
    return number;
  }

  #withText(value: unknown, use: (at: number, length: number) => number): number {
    const bytes = new TextEncoder().encode(JSON.stringify(value));
    const at = this.#exports.locdiff_allocate(bytes.length);
    new Uint8Array(this.#exports.memory.buffer, at, bytes.length).set(bytes);
    try {
      return use(at, bytes.length);
    } finally {
      this.#exports.locdiff_deallocate(at, bytes.length);
    }
  }
}
