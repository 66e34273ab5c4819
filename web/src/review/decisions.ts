// Decisions: made at once, taken back one after the other, and sent until the server has stored them.

import { isDecidable, type Decision, type LatLon, type Picture } from "./archive";

interface State {
  decision: Decision | null;
  pin: LatLon | null;
}

/** As POST /v1/archive/decisions reads it: with the place that was moved to, or that was shown and accepted. */
export interface DecisionRecord {
  id: string;
  decision: Decision | null;
  latitude?: number;
  longitude?: number;
}

export class Decisions {
  readonly #pictures: readonly Picture[];
  readonly #send: (records: DecisionRecord[]) => void;
  readonly #done: { index: number; before: State }[][] = [];

  constructor(pictures: readonly Picture[], send: (records: DecisionRecord[]) => void) {
    this.#pictures = pictures;
    this.#send = send;
  }

  /**
   * Accepts or rejects estimates, or takes decisions back (`null`). Pictures without an estimate and those that are decided so
   * already are left out, and accepting leaves those in place that a person moved. Returns what has changed.
   */
  decide(indices: readonly number[], decision: "accepted" | "rejected" | null): number[] {
    const concerned = indices.filter((index) => {
      const picture = this.#pictures[index]!;
      if (picture.decision === decision) return false;
      if (decision === null) return true;
      return isDecidable(picture) && !(decision === "accepted" && picture.decision === "moved");
    });
    return this.#apply(concerned, { decision, pin: null });
  }

  move(index: number, pin: LatLon): void {
    this.#apply([index], { decision: "moved", pin });
  }

  get undoable(): number {
    return this.#done.length;
  }

  /** Takes the last decision back, with all its pictures; returns these. */
  undo(): number[] {
    const last = this.#done.pop() ?? [];
    for (const { index, before } of last) Object.assign(this.#pictures[index]!, before);
    const indices = last.map(({ index }) => index);
    this.#report(indices);
    return indices;
  }

  /** These were not stored, because a scan has replaced the estimates: they are undecided. Returns their indices. */
  withdraw(ids: readonly string[]): number[] {
    const withdrawn = new Set(ids);
    const indices = this.#pictures.flatMap(({ id }, index) => (withdrawn.has(id) ? [index] : []));
    for (const index of indices) Object.assign(this.#pictures[index]!, { decision: null, pin: null });
    return indices;
  }

  #apply(indices: number[], after: State): number[] {
    if (indices.length === 0) return indices;
    this.#done.push(indices.map((index) => ({ index, before: { decision: this.#pictures[index]!.decision, pin: this.#pictures[index]!.pin } })));
    for (const index of indices) Object.assign(this.#pictures[index]!, after);
    this.#report(indices);
    return indices;
  }

  #report(indices: readonly number[]): void {
    const records = indices.map((index): DecisionRecord => {
      const { id, decision, pin, place } = this.#pictures[index]!;
      const shown = decision === "moved" ? pin : decision === "accepted" ? place : null;
      return { id, decision, ...(shown !== null && { latitude: shown[0], longitude: shown[1] }) };
    });
    if (records.length > 0) this.#send(records);
  }
}

export interface OutboxState {
  /** Decisions that the server has not stored yet. */
  waiting: number;
  /** Why, if a request failed. */
  problem: string | null;
}

/** Of one request. */
const MOST = 1000;
const [FIRST_WAIT_MS, LONGEST_WAIT_MS] = [1000, 30_000];

/** Sends one request at a time, the last decision of each picture; after a failure again, and less and less often. */
export class Outbox {
  readonly #post: (records: DecisionRecord[]) => Promise<unknown>;
  readonly #hear: (state: OutboxState) => void;
  readonly #waiting = new Map<string, DecisionRecord>();
  #sending = false;
  #problem: string | null = null;
  #wait = FIRST_WAIT_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(post: (records: DecisionRecord[]) => Promise<unknown>, hear: (state: OutboxState) => void) {
    this.#post = post;
    this.#hear = hear;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  put(records: readonly DecisionRecord[]): void {
    for (const record of records) this.#waiting.set(record.id, record);
    this.retry();
  }

  /** Sends now what waits. */
  retry(): void {
    clearTimeout(this.#timer);
    void this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.#waiting.size > 0) {
        const records = [...this.#waiting.values()].slice(0, MOST);
        await this.#post(records);
        // Those decided anew meanwhile are sent again.
        for (const record of records) if (this.#waiting.get(record.id) === record) this.#waiting.delete(record.id);
        [this.#problem, this.#wait] = [null, FIRST_WAIT_MS];
      }
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
      this.#timer = setTimeout(() => void this.#flush(), this.#wait);
      this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT_MS);
    }
    this.#sending = false;
    this.#hear({ waiting: this.#waiting.size, problem: this.#problem });
  }
}
