// One picture's story: sent, answered, restricted, played. Everything lives in memory only.

import type { Answer } from "./api";
import type { Constraint } from "./constraints";
import type { Ground } from "./ground";
import type { Place } from "./names";
import type { ProblemWords } from "./problems";
import type { Regions, Summary } from "./wasm";

export interface Visit {
  id: number;
  file: Blob;
  name: string;
  /** An object URL of the file, for pictures on the page. */
  url: string;
  state: "waiting" | "answered" | "failed";
  problem: ProblemWords | null;
  answer: Answer | null;
  answeredAt: Date | null;
  /** The model that was asked for; null if the server chose. */
  model: string | null;
  /** SHA-256 as computed here, if the browser can. */
  localSha256: string | null;
  constraints: Constraint[];
  /** Whether what is shown is final: under a new constraint, a coarse answer comes first. */
  final: boolean;
  /** Numbers of densities in the engine: of the whole Earth, and under the constraints. */
  whole: number;
  current: number;
  summary: Summary | null;
  /** Comes a little later than the rest. */
  regions: Regions | null;
  places: Place[];
  /** The ground that the picture shows; null if the model found none. */
  ground: Ground | null;
  /** Whether the middle of that ground lies within the constraints. */
  groundAllowed: boolean;
  frames: { step: number; of: number; number: number; top: number }[] | null;
}

let last = 0;

export function newVisit(file: Blob, name: string, model: string | null): Visit {
  return {
    id: ++last,
    file,
    name,
    url: URL.createObjectURL(file),
    state: "waiting",
    problem: null,
    answer: null,
    answeredAt: null,
    model,
    localSha256: null,
    constraints: [],
    final: true,
    whole: 0,
    current: 0,
    summary: null,
    regions: null,
    places: [],
    ground: null,
    groundAllowed: true,
    frames: null,
  };
}

/** What changes with the constraints. */
export type Within = Pick<Visit, "constraints" | "final" | "current" | "summary" | "places" | "regions" | "groundAllowed">;

/** The ground to be shown, if there is any within the constraints. */
export function groundOf(visit: Pick<Visit, "ground" | "groundAllowed">): Ground | null {
  return visit.groundAllowed ? visit.ground : null;
}

/** What the numbers are called: a model that is not calibrated gives scores. */
export function nounOf(visit: Visit): "probability" | "score" {
  return visit.answer?.model.calibrated === true ? "probability" : "score";
}

/** SHA-256 in hexadecimal; null where the browser can't (plain http from another machine). */
export async function sha256(file: Blob): Promise<string | null> {
  if (!globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest("SHA-256", await file.arrayBuffer());
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
