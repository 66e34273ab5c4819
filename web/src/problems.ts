// Why there is no answer, in words for people: what failed, on what, and what to do next.

import { ServerProblem, type ModelEntry } from "./api";
import { offerOf } from "./offer";

/** May contain `code`. */
export interface ProblemWords {
  title: string;
  detail: string;
  advice: string;
  status: number;
  /** The server's status in the standard words, such as “415 Unsupported Media Type”; empty if the server sent none. */
  standard: string;
  /** Whether the same picture may be answered the next time. */
  canRetry: boolean;
}

type Kind = { title: string; advice: string; canRetry?: boolean };

const WAIT = "Wait a moment, then try again.";
const OTHER_FILE = "Choose another file: a JPEG, PNG, WebP, TIFF, GIF, BMP or HEIC picture.";
const SMALLER = "Use a smaller copy of the picture. A smaller copy changes the answer only a little.";
const LOG = "Try again. If the error repeats, look at the log of the server.";

/** By the name that the server's documentation gives to a problem. */
const KINDS: Record<string, Kind> = {
  "not-an-image": { title: "This file can't be read as a picture", advice: OTHER_FILE, canRetry: false },
  "too-large": { title: "The picture is too large", advice: SMALLER, canRetry: false },
  "too-costly": { title: "This request takes too much computing", advice: SMALLER, canRetry: false },
  "no-key": { title: "This server needs a key", advice: "Enter the key of this server under “Settings”, then try again." },
  "too-slow": { title: "Sending the picture took too long", advice: "Try again, or use a smaller copy of the picture." },
  busy: { title: "The server is busy", advice: WAIT },
  "not-ready": { title: "The server is still starting", advice: WAIT },
  "timed-out": { title: "The server needed too much time", advice: "Try again when the server is less busy." },
  broken: { title: "Internal error of the server", advice: LOG },
  "no-connection": { title: "The server does not answer", advice: "Check that the program is running. Start it again if it is not, then try again." },
  "no-result": { title: "The server returned no result", advice: LOG },
  "no-density": { title: "The answer has no map", advice: "Update the server, then try again." },
  "no-candidate": { title: "The model returned no place", advice: "" },
};

const BY_STATUS: Record<number, string> = { 401: "no-key", 408: "too-slow", 413: "too-large", 415: "not-an-image", 429: "busy", 500: "broken", 503: "not-ready", 504: "timed-out" };

export function problemWords(error: unknown, models: readonly ModelEntry[]): ProblemWords {
  if (!(error instanceof ServerProblem)) {
    const detail = error instanceof Error ? error.message : String(error);
    return { title: "The answer could not be shown", detail, advice: "Try again, or choose another picture.", status: 0, standard: "", canRetry: true };
  }
  const { status, detail, retryAfterS } = error;
  const standard = status === 0 || error.title === "" ? "" : `${status} ${error.title}`;
  const known = KINDS[error.kind ?? ""] ?? (error.kind === "no-answer" ? undefined : KINDS[BY_STATUS[status] ?? ""]);
  if (known === undefined || known.advice === "") {
    const title = known?.title ?? (status === 422 ? rejectionTitle(detail) : "The server rejected the request");
    return { title, detail, advice: otherChoices(detail, models), status, standard, canRetry: true };
  }
  const wait = retryAfterS === null ? "" : ` The server asks for a pause of ${retryAfterS} s.`;
  return { title: known.title, detail, advice: known.advice + wait, status, standard, canRetry: known.canRetry ?? true };
}

function rejectionTitle(detail: string): string {
  if (/^no suitable model/i.test(detail)) return "No model on this server fits this picture";
  if (/^not a picture for this model/i.test(detail)) return "The model rejected this picture";
  if (/^within /i.test(detail)) return "No part of the answer lies in this area";
  return "There is no location for this picture";
}

/** What else can be tried with these models. The server's own advice is not repeated. */
function otherChoices(detail: string, models: readonly ModelEntry[]): string {
  const { can, missing } = offerOf(models, "unreachable");
  const others = models.length > 1 ? "Choose another picture below, or another model under “Settings”." : "Choose another picture below.";
  if (models.length === 0) return others;
  const isSaid = missing === "" || detail.includes("locdiff model fetch");
  return [others, can, ...(isSaid ? [] : [missing])].join(" ");
}

/** Why there is no answer within areas. Without a reason, nothing is left of it there. */
export class CannotConstrain extends Error {
  constructor(
    readonly labels: readonly string[],
    reason: string | null = null,
  ) {
    super(reason ?? "nothing is left");
  }

  get words(): string {
    const areas = this.labels.map((label) => `“${label}”`).join(" and ");
    if (!/nothing is left/.test(this.message)) return `The answer within ${areas} could not be computed: ${this.message}. The map still shows the answer from before.`;
    const next = this.labels.length > 1 ? "Remove one of the other constraints above, or try a larger area." : "Try a larger area, or check the name or the numbers.";
    return `Practically no part of the answer lies within ${areas} (less than 0.0001\u00a0%). The map still shows the answer from before. ${next}`;
  }
}
