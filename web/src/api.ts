// The server's interface (docs/serve.md), as far as the pages use it.

import type { Archive } from "./review/archive";
import type { DecisionRecord } from "./review/decisions";

/** A density, as docs/density-record.md describes it. */
export type DensityRecord =
  | { kind: "exponential"; max_degree: number; coefficients: number[] }
  | { kind: "linear"; max_degree: number; coefficients: number[] }
  | { kind: "points"; kernel_km: number; latitudes: number[]; longitudes: number[]; masses: number[] }
  | { kind: "cells"; cells: string[]; masses: number[] }
  | { kind: "mixture"; parts: { weight: number; density: DensityRecord }[] }
  | { kind: "product"; factors: { exponent: number; density: DensityRecord }[] };

export interface Candidate {
  latitude: number;
  longitude: number;
  mass: number;
  radius_km: number;
}

/** A photograph of a gallery that resembles the picture. */
export interface Reference {
  /** Its path or address, as the gallery stores it. */
  id: string;
  latitude: number;
  longitude: number;
  /** The cosine between embeddings: not a probability. */
  similarity: number;
  distance_km: number;
}

export interface PlaceName {
  /** The whole name, such as “at sea, 40 km off Egypt”; missing if the parts are the name. */
  name?: string | null;
  town: string | null;
  district: string | null;
  country: string | null;
  country_code: string | null;
}

/** The place that the camera recorded with the picture; not predicted. */
export interface RecordedPlace extends PlaceName {
  latitude: number;
  longitude: number;
  recorded_by: "camera";
  distance_km: number;
}

export interface NamedCandidate extends Candidate, PlaceName {
  /** The most similar ones near this place; missing without a gallery. */
  references?: Reference[];
}

/** Views of the Earth from above, or photographs from the ground. */
export type Scene = "orbit" | "ground";

export interface ModelIdentity {
  name: string;
  version: string;
  description: string;
  calibrated: boolean;
  prior: string | null;
  chosen_because?: string | null;
}

export interface ModelEntry extends ModelIdentity {
  /** Which pictures it locates; older servers do not return it. */
  scene?: Scene | null;
  default: boolean;
  inference: Inference;
  /** Whether its denoising can be watched. */
  frames: boolean;
}

export interface ImageIdentity {
  name: string | null;
  sha256: string;
  bytes: number;
  width: number;
  height: number;
}

export interface DenoisingFrame {
  step: number;
  of: number;
  density: DensityRecord;
}

/** How an answer was computed; the names are those of the options. */
export interface Inference {
  sampler: "one-pass" | "ddim" | "ddpm" | "flow" | "exact";
  steps: number | null;
  samples: number;
  guidance: number;
  views: number;
  seed: number;
  decode: "mode" | "mean" | "kl" | "geoscore" | "distance";
  kernel_km: number | null;
  registration: boolean;
  width_km: number | null;
}

export interface Point {
  latitude: number;
  longitude: number;
}

/** The ground of the central square of the upright picture, as wide as its shorter side. */
export interface Footprint {
  /** Upper left, upper right, lower right, lower left. */
  corners: [Point, Point, Point, Point];
  middle: Point;
  /** Where the picture's upward direction points: degrees, clockwise from north. */
  heading_degrees: number;
  width_km: number;
  likeness: number;
}

export interface Answer {
  image: ImageIdentity;
  model: ModelIdentity;
  inference: Inference;
  warnings: string[];
  within: string[];
  /** The share of the unconstrained answer that lies there, 0 to 1; missing if the server restricted nothing. */
  kept?: number;
  candidates: NamedCandidate[];
  radius_50_km: number;
  radius_90_km: number;
  area_50_km2: number;
  area_90_km2: number;
  kernel_km: number | null;
  /** Missing if the model did not register the picture against a map. */
  footprint?: Footprint;
  exif: RecordedPlace | null;
  density?: DensityRecord;
  frames?: DenoisingFrame[];
}

export interface PageSettings {
  version: string;
  tiles: string | null;
  tiles_attribution: string | null;
  /** Whether pictures of references can be had. */
  references: boolean;
  key_required: boolean;
  max_image_bytes: number;
}

interface ProblemRecord {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
}

/** Why there is no answer, as the server or the connection reports it; problems.ts has the words for people. */
export class ServerProblem extends Error {
  constructor(
    readonly status: number,
    /** Of the server's documentation, such as `no-answer`; null if the server sent none. */
    readonly kind: string | null,
    readonly detail: string,
    /** The standard phrase of the status. */
    readonly title = "",
    readonly retryAfterS: number | null = null,
  ) {
    super(detail || title);
  }
}

function problemFrom({ type, title, status, detail }: ProblemRecord, response: Response): ServerProblem {
  const kind = /#problem-([a-z-]+)$/.exec(type ?? "")?.[1] ?? null;
  const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const found = response.ok ? 422 : response.status;
  return new ServerProblem(status ?? found, kind, detail ?? "", title ?? response.statusText, Number.isFinite(seconds) && seconds > 0 ? Math.ceil(seconds) : null);
}

async function problemOf(response: Response): Promise<ServerProblem> {
  let record: ProblemRecord = {};
  try {
    record = (await response.json()) as ProblemRecord;
  } catch {
    // Not every proxy on the way sends problem+json.
  }
  return problemFrom(record, response);
}

export interface LocateOptions {
  model: string | null;
  top: number;
  density: boolean;
  frames: number;
}

/** The server that the page came from. The key stays in this object: nothing is stored. */
export class Server {
  key = "";
  readonly #program: string;

  constructor(program = "locdiff serve") {
    this.#program = program;
  }

  async settings(): Promise<PageSettings> {
    return (await this.#get("v1/page")) as PageSettings;
  }

  async models(): Promise<ModelEntry[]> {
    return ((await this.#get("v1/models")) as { models: ModelEntry[] }).models;
  }

  async locate(picture: Blob, options: LocateOptions, signal?: AbortSignal): Promise<Answer> {
    const query = new URLSearchParams({ top: String(options.top) });
    if (options.model !== null) query.set("model", options.model);
    if (options.density) query.set("density", "true");
    if (options.frames > 0) query.set("frames", String(options.frames));
    const type = picture.type.startsWith("image/") ? picture.type : "application/octet-stream";
    const response = await this.#fetch(`v1/locate?${query}`, {
      method: "POST",
      body: picture,
      headers: { "Content-Type": type },
      ...(signal ? { signal } : {}),
    });
    const { results } = (await response.json()) as { results: (Answer & { problem?: ProblemRecord })[] };
    const result = results[0];
    if (result === undefined) throw new ServerProblem(response.status, "no-result", "The server sent no result for this picture.");
    if (result.problem) throw problemFrom(result.problem, response);
    return result;
  }

  /** A reference as a small picture, as an object URL. */
  async thumbnail(id: string): Promise<string> {
    const response = await this.#fetch(`v1/thumbnail?${new URLSearchParams({ id })}`, {});
    return URL.createObjectURL(await response.blob());
  }

  async archive(): Promise<Archive> {
    return (await this.#get("v1/archive")) as Archive;
  }

  /** Resolves once the server has stored the decisions; to those that it has not, because their estimates are others by now. */
  async decide(decisions: readonly DecisionRecord[]): Promise<string[]> {
    const response = await this.#fetch("v1/archive/decisions", { method: "POST", body: JSON.stringify({ decisions }), headers: { "Content-Type": "application/json" } });
    return ((await response.json()) as { changed: string[] }).changed;
  }

  async #get(path: string): Promise<unknown> {
    return (await this.#fetch(path, {})).json();
  }

  async #fetch(path: string, request: RequestInit): Promise<Response> {
    const headers = new Headers(request.headers);
    if (this.key !== "") headers.set("Authorization", `Bearer ${this.key}`);
    let response: Response;
    try {
      response = await fetch(new URL(path, document.baseURI), { ...request, headers, cache: "no-store" });
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ServerProblem(0, "no-connection", `The connection to \`${this.#program}\` failed.`);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}
