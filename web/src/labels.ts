// Names on the map stay clear of what lies over the map: the title, the print, buttons.

import type { Map as MapLibreMap } from "maplibre-gl";

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Label {
  id: number;
  name: string;
  /** Of the country, in square degrees of the equator. */
  size: number;
  longitude: number;
  latitude: number;
}

/** Large countries have larger letters. */
export const LARGE = 250;
/** Zoom and pixels, between which letters grow. */
export const LETTERS = { zooms: [1, 6], small: [10, 16], large: [13, 24] } as const;
/** Letters in a line, in widths of an m. */
export const LINE_EM = 7;
/** Of one letter with the space after it. Rather too wide than too narrow. */
const LETTER_EM = 0.6;
const LINE_HEIGHT_EM = 1.2;
/** Around panels, pixels. */
const CLEARANCE = 12;

/** About the pixels that a name takes on the map, around its middle. */
export function labelSize({ name, size }: Pick<Label, "name" | "size">, zoom: number): { width: number; height: number } {
  const [near, far] = size > LARGE ? LETTERS.large : LETTERS.small;
  const [first, last] = LETTERS.zooms;
  const em = near + (far - near) * Math.min(1, Math.max(0, (zoom - first) / (last - first)));
  const words = name.split(" ").map((word) => LETTER_EM * word.length);
  const whole = LETTER_EM * name.length;
  // A line may be a word longer than it should, and a word is never broken.
  const width = Math.min(whole, Math.max(LINE_EM + 1, ...words));
  const lines = Math.ceil(whole / LINE_EM);
  return { width: em * width, height: em * LINE_HEIGHT_EM * lines };
}

export function overlaps(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** Whether a name in the middle of the box would lie under one of the panels. */
export function isCovered({ x, y }: { x: number; y: number }, { width, height }: { width: number; height: number }, panels: readonly Box[]): boolean {
  const box = { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
  return panels.some((panel) => overlaps(box, panel));
}

/** Hides names under panels, by the feature state `covered` of their source, whenever the map moves or a panel changes. */
export class ClearLabels {
  readonly #map: MapLibreMap;
  readonly #source: string;
  readonly #labels: readonly Label[];
  readonly #panels: readonly Element[];
  readonly #covered = new Set<number>();

  constructor(map: MapLibreMap, source: string, labels: readonly Label[], panels: readonly Element[]) {
    [this.#map, this.#source, this.#labels, this.#panels] = [map, source, labels, panels];
    map.on("move", () => this.update());
    map.on("resize", () => this.update());
    // Also tells when a panel appears or vanishes.
    const observer = new ResizeObserver(() => this.update());
    for (const panel of panels) observer.observe(panel);
    this.update();
  }

  update(): void {
    const map = this.#map;
    const stage = map.getContainer().getBoundingClientRect();
    const boxes = this.#panels.map((panel) => panel.getBoundingClientRect()).filter(({ width, height }) => width > 0 && height > 0);
    const panels = boxes.map(({ left, top, right, bottom }): Box => ({ left: left - stage.left - CLEARANCE, right: right - stage.left + CLEARANCE, top: top - stage.top - CLEARANCE, bottom: bottom - stage.top + CLEARANCE }));
    const zoom = map.getZoom();
    for (const label of this.#labels) {
      const covered = isCovered(map.project([label.longitude, label.latitude]), labelSize(label, zoom), panels);
      if (covered === this.#covered.has(label.id)) continue;
      if (covered) this.#covered.add(label.id);
      else this.#covered.delete(label.id);
      map.setFeatureState({ source: this.#source, id: label.id }, { covered });
    }
  }
}
