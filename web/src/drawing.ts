// Drawing a region: a click is a corner. Those without a mouse type a circle or a box instead.

import type { Position } from "geojson";
import type { MapMouseEvent } from "maplibre-gl";
import type { Globe } from "./globe";
import { h } from "./html";
import { unwrapped } from "./rings";

export class Drawing {
  readonly #globe: Globe;
  readonly #bar: HTMLElement;
  #points: Position[] = [];
  #stop: (() => void) | null = null;

  constructor(globe: Globe, bar: HTMLElement) {
    this.#globe = globe;
    this.#bar = bar;
  }

  get active(): boolean {
    return this.#stop !== null;
  }

  /** Starts; `done` gets the corners, at least three. */
  start(done: (points: Position[]) => void): void {
    this.cancel();
    const map = this.#globe.map;
    this.#globe.stopTurning();
    this.#points = [];
    const text = h("p", {}, "Click corners on the map, then finish.");
    const finishButton = h("button", { type: "button", class: "primary", disabled: true, onclick: () => finish() }, "Finish");
    const cancelButton = h("button", { type: "button", class: "quiet", onclick: () => this.cancel() }, "Cancel");
    this.#bar.replaceChildren(text, finishButton, cancelButton);
    this.#bar.hidden = false;
    cancelButton.focus();
    const show = (pointer: Position | null) => {
      const line = unwrapped(pointer === null ? this.#points : [...this.#points, pointer]);
      const tip = pointer === null ? null : line.at(-1)!;
      this.#globe.showSketch(pointer === null ? line : line.slice(0, -1), tip);
      finishButton.disabled = this.#points.length < 3;
      text.textContent = this.#points.length === 0 ? "Click corners on the map, then finish." : `${this.#points.length} corner${this.#points.length === 1 ? "" : "s"}`;
    };
    const finish = () => {
      if (this.#points.length < 3) return;
      const points = unwrapped(this.#points);
      this.cancel();
      done(points);
    };
    const click = (event: MapMouseEvent) => {
      this.#points.push([event.lngLat.lng, event.lngLat.lat]);
      show(null);
    };
    const move = (event: MapMouseEvent) => {
      if (this.#points.length > 0) show([event.lngLat.lng, event.lngLat.lat]);
    };
    const double = (event: MapMouseEvent) => {
      event.preventDefault();
      // The second click of the two was a corner already.
      if (this.#points.length > 3) this.#points.pop();
      finish();
    };
    const key = (event: KeyboardEvent) => {
      if (event.key === "Escape") this.cancel();
      else if (event.key === "Enter" && event.target === map.getCanvas()) finish();
      else if (event.key === "Backspace" && this.#points.length > 0) {
        this.#points.pop();
        show(null);
      }
    };
    const heard = [map.on("click", click), map.on("mousemove", move), map.on("dblclick", double)];
    document.addEventListener("keydown", key);
    map.getCanvas().style.cursor = "crosshair";
    document.body.classList.add("sketching");
    this.#stop = () => {
      heard.forEach((subscription) => subscription.unsubscribe());
      document.removeEventListener("keydown", key);
      map.getCanvas().style.cursor = "";
      document.body.classList.remove("sketching");
    };
  }

  cancel(): void {
    this.#stop?.();
    this.#stop = null;
    this.#points = [];
    this.#bar.hidden = true;
    this.#globe.showSketch([], null);
  }
}
