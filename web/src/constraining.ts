// Constraints of a picture's answer, one change after the other: each gets a coarse answer at once, and the final one after that was drawn.

import type { Constraint } from "./constraints";

export interface Steps<Visit, Answer extends { final: boolean }> {
  /** The answer within constraints; `coarsely` within a small budget, which may be enough for the final one. May fail once it isn't wanted any more. */
  compute(visit: Visit, constraints: Constraint[], coarsely: boolean, isWanted: () => boolean): Promise<Answer>;
  /** Shows an answer from here on. Resolves once it is drawn. */
  show(visit: Visit, answer: Answer): Promise<void>;
  /** An answer that is never shown. */
  drop(answer: Answer): void;
  /** There is no coarse answer, or no final one: what was shown stays. */
  fail(visit: Visit, error: unknown, coarsely: boolean): void;
}

export class Constraining<Visit extends { constraints: Constraint[]; final: boolean }, Answer extends { final: boolean }> {
  readonly #steps: Steps<Visit, Answer>;
  /** Coarse answers wait for each other: each change begins with what the last one left. */
  #coarse: Promise<unknown> = Promise.resolve();
  /** The newest change of each, and its final answer: work on an earlier change is over. */
  readonly #newest = new WeakMap<Visit, Promise<void>>();

  constructor(steps: Steps<Visit, Answer>) {
    this.#steps = steps;
  }

  /** Resolves once the final answer is shown, or a newer change has taken over. */
  change(visit: Visit, change: (known: Constraint[]) => Constraint[]): Promise<void> {
    const coarse = this.#coarse.then(() => this.#showCoarse(visit, change(visit.constraints)));
    this.#coarse = coarse;
    const work: Promise<void> = coarse.then(async (drawn) => {
      await drawn();
      await this.#showFinal(visit, () => this.#newest.get(visit) === work);
    });
    this.#newest.set(visit, work);
    return work;
  }

  /** Resolves once nothing is to be refined any more. */
  async finished(visit: Visit): Promise<void> {
    let work;
    while (work !== (work = this.#newest.get(visit))) await work;
  }

  /** A function, because a promise of a promise would wait for both: the next change need not wait until this one is drawn. */
  async #showCoarse(visit: Visit, constraints: Constraint[]): Promise<() => Promise<void>> {
    try {
      const answer = await this.#steps.compute(visit, constraints, true, () => true);
      const drawn = this.#steps.show(visit, answer);
      return () => drawn;
    } catch (error) {
      this.#steps.fail(visit, error, true);
      return () => Promise.resolve();
    }
  }

  async #showFinal(visit: Visit, isNewest: () => boolean): Promise<void> {
    // Also after a change that failed: the one before it may not have got this far.
    if (visit.final || !isNewest()) return;
    try {
      const answer = await this.#steps.compute(visit, visit.constraints, false, isNewest);
      if (isNewest()) void this.#steps.show(visit, answer);
      else this.#steps.drop(answer);
    } catch (error) {
      if (isNewest()) this.#steps.fail(visit, error, false);
    }
  }
}
