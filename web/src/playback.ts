// The denoising, played: from pure noise to an answer.

import type { Server } from "./api";
import { playbackBlock, type Actions, type Playback } from "./column";
import type { Engine } from "./engine";
import type { Globe } from "./globe";
import { byId, h } from "./html";
import type { Visit } from "./visit";

/** So many pictures are enough for the eye, and not much to send. */
const FRAMES = 41;
/** No frame is shown for less than this, in ms. */
const SHORTEST_MS = 110;

export class Player {
  readonly #parts: { server: Server; engine: Engine; globe: Globe };
  #visit: Visit | null = null;
  #state: Playback = { available: false, loading: false, playing: false, frame: 0, count: 0 };
  #actions: Actions | null = null;
  /** Counts starts and stops, so that an earlier loop can tell that it is over. */
  #turn = 0;

  constructor(parts: { server: Server; engine: Engine; globe: Globe }) {
    this.#parts = parts;
  }

  get state(): Readonly<Playback> {
    return this.#state;
  }

  /** Another visit, or the same again after its column was made anew. */
  attach(visit: Visit, available: boolean, actions: Actions): void {
    if (visit !== this.#visit) this.#turn++;
    this.#visit = visit;
    this.#actions = actions;
    const frames = visit.frames?.length ?? 0;
    this.#state = { available, loading: false, playing: false, frame: Math.max(0, frames - 1), count: frames };
    this.render();
  }

  detach(): void {
    this.#turn++;
    this.#visit = null;
  }

  /** Ends playing; the caller shows the answer again. */
  stop(): void {
    this.#turn++;
    this.#state = { ...this.#state, playing: false };
    this.render();
  }

  async toggle(failed: (error: unknown) => void): Promise<void> {
    const visit = this.#visit;
    if (visit === null || this.#state.loading) return;
    if (this.#state.playing) return this.stop();
    try {
      if (visit.frames === null) await this.#load(visit);
    } catch (error) {
      this.#state = { ...this.#state, loading: false };
      this.render();
      return failed(error);
    }
    if (visit !== this.#visit || visit.frames === null) return;
    await this.#play(visit, this.#state.frame >= visit.frames.length - 1 ? 0 : this.#state.frame);
  }

  seek(frame: number): void {
    this.#turn++;
    if (this.#state.playing) {
      this.#state = { ...this.#state, playing: false };
      this.render();
    }
    this.#show(frame, false);
  }

  render(): void {
    const block = document.getElementById("playback");
    if (block === null || this.#actions === null) return;
    const focused = document.activeElement?.id;
    block.replaceChildren(...playbackBlock(this.#state, this.#actions));
    if (focused === "play" || focused === "frame") document.getElementById(focused)?.focus();
    this.#label();
  }

  async #load(visit: Visit): Promise<void> {
    const { server, engine } = this.#parts;
    this.#state = { ...this.#state, loading: true };
    this.render();
    const answer = await server.locate(visit.file, { model: visit.answer!.model.name, top: 1, density: false, frames: FRAMES });
    const frames = [];
    for (const { step, of, density } of answer.frames ?? []) {
      const number = await engine.open(density);
      frames.push({ step, of, number, top: await engine.top(number) });
    }
    visit.frames = frames;
    if (visit !== this.#visit) return;
    this.#state = { ...this.#state, loading: false, available: frames.length > 0, count: frames.length, frame: 0 };
    this.render();
  }

  async #play(visit: Visit, from: number): Promise<void> {
    const turn = ++this.#turn;
    this.#state = { ...this.#state, playing: true };
    this.render();
    for (let frame = from; frame < visit.frames!.length; frame++) {
      const shortest = new Promise((resolve) => setTimeout(resolve, SHORTEST_MS));
      this.#show(frame, true);
      await Promise.all([shortest, this.#parts.globe.settled()]);
      if (turn !== this.#turn) return;
    }
    this.#state = { ...this.#state, playing: false };
    this.render();
  }

  #show(frame: number, quick: boolean): void {
    const found = this.#visit?.frames?.[frame];
    if (found === undefined) return;
    this.#state = { ...this.#state, frame };
    document.body.classList.add("denoising");
    this.#parts.globe.showDensity(found, quick);
    this.#parts.globe.showRegions(null);
    this.#parts.globe.showGround(null, 0);
    const slider = document.getElementById("frame") as HTMLInputElement | null;
    if (slider !== null && slider.value !== String(frame)) slider.value = String(frame);
    this.#label();
  }

  #label(): void {
    const frame = this.#visit?.frames?.[this.#state.frame];
    const label = document.getElementById("frame-label");
    if (frame === undefined) return;
    const text = `step ${frame.step} of ${frame.of}`;
    if (label !== null) label.textContent = text;
    document.getElementById("frame")?.setAttribute("aria-valuetext", text);
    const bar = byId("step");
    bar.hidden = !document.body.classList.contains("denoising");
    if (bar.childElementCount === 0 && this.#actions !== null) {
      bar.append(h("span"), h("button", { type: "button", class: "quiet", onclick: () => this.#actions?.backToAnswer() }, "Back to the answer"));
    }
    bar.firstElementChild!.textContent = `Denoising, ${text}`;
  }
}
