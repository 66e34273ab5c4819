// When the pictures were taken: a histogram, of which a range can be chosen by pointer or by keys.

import { h } from "../html";
import type { View } from "./archive";

/** Bars across the timeline. */
const BINS = 160;
const DAY_MS = 86_400_000;

export type Range = [number, number];

/** From the first time to just after the last; null without any time. */
export function extentOf(times: ArrayLike<number>): Range | null {
  let [from, to] = [Infinity, -Infinity];
  for (let k = 0; k < times.length; k++) {
    const time = times[k]!;
    if (Number.isNaN(time)) continue;
    if (time < from) from = time;
    if (time > to) to = time;
  }
  if (from > to) return null;
  // A minute at least, and the last picture within.
  return [from, Math.max(to + 1, from + 60_000)];
}

/** How many pictures fall into each of `count` equal parts of an extent. */
export function histogram(times: ArrayLike<number>, [from, to]: Range, count: number, isCounted: (index: number) => boolean): number[] {
  const bins = new Array<number>(count).fill(0);
  for (let index = 0; index < times.length; index++) {
    const bin = Math.floor(((times[index]! - from) / (to - from)) * count);
    if (bin >= 0 && bin < count && isCounted(index)) bins[bin]!++;
  }
  return bins;
}

/** Round times within an extent, and their names: years, months, days or hours, six or so. */
export function timeTicks([from, to]: Range): { at: number; text: string }[] {
  const days = (to - from) / DAY_MS;
  const iso = (at: number) => new Date(at).toISOString();
  const found: { at: number; text: string }[] = [];
  const add = (at: number, text: string) => at >= from && at < to - 0.09 * (to - from) && found.push({ at: (at - from) / (to - from), text });
  if (days > 60) {
    const months = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((step) => days / (30.4 * step) <= 8) ?? 2400;
    const year = new Date(from).getUTCFullYear();
    for (let month = -(year % 100) * 12; ; month += months) {
      const at = Date.UTC(year, month, 1);
      if (!(at < to)) break;
      add(at, months >= 12 ? iso(at).slice(0, 4) : iso(at).slice(0, 7));
    }
  } else {
    const step = [1 / 1440, 1 / 288, 1 / 48, 1 / 24, 1 / 8, 1 / 4, 1, 2, 7, 14].find((part) => days / part <= 7)! * DAY_MS;
    for (let at = Math.ceil(from / step) * step; at < to; at += step) add(at, step >= DAY_MS ? iso(at).slice(0, 10) : iso(at).slice(5, 16).replace("T", " "));
  }
  return found;
}

export class Timeline {
  readonly #view: View;
  readonly #choose: (range: Range | null) => void;
  readonly #whole: Range | null;
  #domain: Range | null;
  readonly #canvas = h("canvas", { "aria-hidden": "true" });
  readonly #ticks = h("div", { class: "time-ticks", "aria-hidden": "true" });
  readonly #words = h("p", { class: "note", id: "time-words" });
  readonly #brush = h("div", { class: "brush", hidden: true });
  readonly #plot = h("div", { class: "plot" }, this.#canvas, this.#brush);
  readonly #handles: [HTMLElement, HTMLElement];
  readonly #buttons: [HTMLElement, HTMLElement];
  #passes: (index: number) => boolean = () => true;

  constructor(box: HTMLElement, view: View, choose: (range: Range | null) => void) {
    [this.#view, this.#choose] = [view, choose];
    this.#whole = this.#domain = extentOf(view.times);
    const handle = (side: 0 | 1, label: string) => {
      const element = h("div", { class: "handle", role: "slider", tabindex: 0, "aria-label": label, "aria-valuemin": 0, "aria-valuemax": BINS });
      element.addEventListener("keydown", (event) => this.#nudge(event, side));
      return element;
    };
    this.#handles = [handle(0, "Shown from"), handle(1, "Shown until")];
    const button = (text: string, run: () => void) => h("button", { type: "button", class: "quiet small", onclick: run, hidden: true }, text);
    this.#buttons = [button("Zoom to range", () => this.#zoom(this.#view.range)), button("All times", () => this.clear())];
    this.#plot.append(...this.#handles);
    box.replaceChildren(h("div", { class: "timeline-head" }, this.#words, ...this.#buttons), this.#plot, this.#ticks);
    if (this.#whole === null) {
      this.#words.textContent = "No picture has a time.";
      this.#plot.hidden = true;
      return;
    }
    this.#plot.addEventListener("pointerdown", (event) => this.#drag(event));
    new ResizeObserver(() => this.draw()).observe(this.#plot);
    this.#zoom(null);
  }

  /** Shows the times of the pictures that pass, whatever range is chosen. */
  refresh(passes: (index: number) => boolean): void {
    this.#passes = passes;
    this.draw();
    this.#mark();
  }

  clear(): void {
    this.#zoom(null);
    this.#set(null);
  }

  #zoom(domain: Range | null): void {
    this.#domain = domain ?? this.#whole;
    if (this.#domain === null) return;
    this.#ticks.replaceChildren(...timeTicks(this.#domain).map(({ at, text }) => h("span", { style: `left:${(100 * at).toFixed(2)}%` }, text)));
    this.draw();
    this.#mark();
  }

  #set(range: Range | null): void {
    this.#choose(range);
    this.#mark();
  }

  draw(): void {
    const [canvas, { clientWidth: width, clientHeight: height }] = [this.#canvas, this.#plot];
    // Drawn once and looked at often: without the graphics processor.
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    if (this.#domain === null || pen === null || width === 0) return;
    const ratio = devicePixelRatio;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const bins = histogram(this.#view.times, this.#domain, BINS, this.#passes);
    const most = Math.max(1, ...bins);
    pen.fillStyle = getComputedStyle(canvas).color;
    bins.forEach((count, k) => {
      // Of square roots: one picture beside a thousand is still seen.
      const tall = count === 0 ? 0 : Math.max(2 * ratio, Math.sqrt(count / most) * canvas.height);
      pen.fillRect((k / BINS) * canvas.width, canvas.height - tall, canvas.width / BINS - 0.6 * ratio, tall);
    });
  }

  /** Where the chosen range is, in words and on the plot. */
  #mark(): void {
    const [range, domain] = [this.#view.range, this.#domain];
    if (domain === null) return;
    const share = (at: number) => Math.min(1, Math.max(0, (at - domain[0]) / (domain[1] - domain[0])));
    const [from, to] = (range ?? domain).map(share) as Range;
    this.#brush.hidden = range === null;
    this.#brush.style.left = `${100 * from}%`;
    this.#brush.style.width = `${100 * (to - from)}%`;
    [from, to].forEach((at, side) => {
      const handle = this.#handles[side]!;
      handle.style.left = `${100 * at}%`;
      handle.setAttribute("aria-valuenow", String(Math.round(at * BINS)));
      handle.setAttribute("aria-valuetext", this.#day((range ?? domain)[side]!));
    });
    this.#words.textContent = range === null ? `Taken ${this.#day(domain[0])} to ${this.#day(domain[1])}` : `Only ${this.#day(range[0])} to ${this.#day(range[1])}`;
    for (const button of this.#buttons) button.hidden = range === null;
    if (range === null) this.#buttons[1].hidden = domain === this.#whole;
  }

  #day(at: number): string {
    const iso = new Date(at).toISOString();
    return this.#domain![1] - this.#domain![0] < 3 * DAY_MS ? iso.slice(0, 16).replace("T", " ") : iso.slice(0, 10);
  }

  #drag(down: PointerEvent): void {
    const [domain, { left, width }] = [this.#domain!, this.#plot.getBoundingClientRect()];
    const edge = (x: number, round: (value: number) => number) => {
      const bin = Math.min(BINS, Math.max(0, round(((x - left) / width) * BINS)));
      return domain[0] + (bin / BINS) * (domain[1] - domain[0]);
    };
    down.preventDefault();
    const side = this.#handles.indexOf(down.target as HTMLElement);
    const fixed = side === -1 ? down.clientX : null;
    const other = side === -1 ? 0 : (this.#view.range ?? domain)[1 - side]!;
    const to = (x: number) => {
      if (fixed !== null) return this.#set([edge(Math.min(fixed, x), Math.floor), edge(Math.max(fixed, x), Math.ceil)]);
      const at = edge(x, Math.round);
      if (at !== other) this.#set([Math.min(at, other), Math.max(at, other)]);
    };
    this.#plot.setPointerCapture(down.pointerId);
    // Several moves between two frames are one.
    let [frame, last] = [0, down.clientX];
    const move = (event: PointerEvent) => {
      last = event.clientX;
      if (frame === 0) frame = requestAnimationFrame(() => {
        frame = 0;
        to(last);
      });
    };
    const end = () => {
      this.#plot.removeEventListener("pointermove", move);
      cancelAnimationFrame(frame);
      to(last);
    };
    this.#plot.addEventListener("pointermove", move);
    this.#plot.addEventListener("lostpointercapture", end, { once: true });
    (side === -1 ? this.#handles[1] : this.#handles[side]!).focus({ preventScroll: true });
  }

  #nudge(event: KeyboardEvent, side: 0 | 1): void {
    const domain = this.#domain!;
    const bin = (domain[1] - domain[0]) / BINS;
    const range: Range = [...(this.#view.range ?? domain)];
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -BINS, End: BINS };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const [least, most] = side === 0 ? [domain[0], range[1] - bin] : [range[0] + bin, domain[1]];
    range[side] = Math.min(most, Math.max(least, range[side] + step * bin));
    this.#set(range);
  }
}
