// The mathematics, away from the thread that draws. Requests are answered one after the other.

import { paint, type Theme } from "./colours";
import type { AreaRecord } from "./constraints";
import type { DensityRecord, Point } from "./api";
import { Maps, type Restricted } from "./wasm";

export type Request =
  | { kind: "open"; density: DensityRecord }
  | { kind: "restrict"; number: number; areas: AreaRecord[]; coarsely: boolean }
  | { kind: "summary"; number: number; candidates: number }
  | { kind: "scale"; number: number }
  | { kind: "regions"; number: number }
  | { kind: "outline"; corners: readonly Point[] }
  | { kind: "allows"; number: number; place: Point }
  | { kind: "top"; number: number }
  | { kind: "release"; numbers: number[] }
  | { kind: "values"; number: number; zoom: number; x: number; y: number; size: number }
  | { kind: "tile"; number: number; zoom: number; x: number; y: number; size: number; top: number; theme: Theme };

export type Reply = { id: number; value: unknown } | { id: number; error: string };

let maps: Promise<Maps> | null = null;
/** How often the instance was replaced; a density's number tells which one made it, so that none is taken for another. */
let generation = 0;
const GENERATION = 1_000_000;

const outer = (inner: number) => generation * GENERATION + inner;

function inner(number: number): number {
  if (Math.floor(number / GENERATION) !== generation) throw new Error("the browser ran out of memory for this map; drop the picture again");
  return number % GENERATION;
}

async function load(): Promise<Maps> {
  const response = await fetch(new URL("./generated/locdiff_wasm.wasm", import.meta.url));
  return Maps.load(await response.arrayBuffer());
}

async function answer(request: Request): Promise<{ value: unknown; transfer: Transferable[] }> {
  maps ??= load();
  const engine = await maps;
  switch (request.kind) {
    case "open":
      return { value: outer(engine.open(request.density)), transfer: [] };
    case "restrict": {
      const whole = inner(request.number);
      let [number, final] = [whole, true];
      for (const area of request.areas) {
        const next = request.coarsely ? engine.restrictCoarsely(number, area) : { number: engine.restrict(number, area), final: true };
        // Restricted densities share what they restrict: the steps between aren't needed by number.
        if (number !== whole) engine.release(number);
        number = next.number;
        final &&= next.final;
      }
      return { value: { number: outer(number), final } satisfies Restricted, transfer: [] };
    }
    case "summary":
      return { value: engine.summary(inner(request.number), request.candidates), transfer: [] };
    case "scale":
      return { value: engine.scale(inner(request.number)), transfer: [] };
    case "regions":
      return { value: engine.regions(inner(request.number)), transfer: [] };
    case "outline":
      return { value: engine.outline(request.corners), transfer: [] };
    case "allows":
      return { value: engine.allows(inner(request.number), request.place), transfer: [] };
    case "top":
      // A coarse look at the whole Earth: for pictures that come by quickly.
      return { value: engine.tile(inner(request.number), 0, 0, 0, 128).reduce((a, b) => Math.max(a, b)), transfer: [] };
    case "release":
      // Those of an instance that is gone went with it.
      request.numbers.filter((number) => Math.floor(number / GENERATION) === generation).forEach((number) => engine.release(inner(number)));
      return { value: null, transfer: [] };
    case "values": {
      const values = engine.tile(inner(request.number), request.zoom, request.x, request.y, request.size);
      return { value: values, transfer: [values.buffer] };
    }
    case "tile": {
      const { number, zoom, x, y, size, top, theme } = request;
      const pixels = paint(engine.tile(inner(number), zoom, x, y, size), top, theme);
      const bitmap = await createImageBitmap(new ImageData(pixels, size, size));
      return { value: bitmap, transfer: [bitmap] };
    }
  }
}

self.onmessage = (event: MessageEvent<{ id: number; request: Request }>) => {
  const { id, request } = event.data;
  answer(request).then(
    ({ value, transfer }) => self.postMessage({ id, value } satisfies Reply, { transfer }),
    (error: unknown) => {
      // A trap leaves the instance in an unknown state: the next request gets a fresh one.
      if (error instanceof WebAssembly.RuntimeError) {
        maps = null;
        generation++;
      }
      const message = error instanceof Error ? error.message : String(error);
      self.postMessage({ id, error: message } satisfies Reply);
    },
  );
};
