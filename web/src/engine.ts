// Asks the worker.

import type { MultiPolygon, Polygon } from "geojson";
import type { DensityRecord, Point } from "./api";
import type { Theme } from "./colours";
import type { AreaRecord } from "./constraints";
import type { Reply, Request } from "./engine.worker";
import type { Regions, Restricted, Scale, Summary } from "./wasm";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export interface TileRequest {
  number: number;
  zoom: number;
  x: number;
  y: number;
  size: number;
  top: number;
  theme: Theme;
}

interface Job {
  run(): Promise<unknown>;
  drop(): void;
}

/** One is computed while the other is on its way. */
const TILES_AT_A_TIME = 2;

export class Engine {
  readonly #worker = new Worker(new URL("./engine.worker.ts", import.meta.url), { type: "module" });
  readonly #waiting = new Map<number, Waiting>();
  readonly #jobs: Job[] = [];
  #running = 0;
  #last = 0;

  constructor() {
    this.#worker.onmessage = (event: MessageEvent<Reply>) => {
      const reply = event.data;
      const waiting = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ("error" in reply) waiting?.reject(new Error(reply.error));
      else waiting?.resolve(reply.value);
    };
    this.#worker.onerror = (event) => {
      const error = new Error(event.message || "The part that computes maps could not be loaded.");
      for (const waiting of this.#waiting.values()) waiting.reject(error);
      this.#waiting.clear();
    };
  }

  open(density: DensityRecord): Promise<number> {
    return this.#ask({ kind: "open", density }) as Promise<number>;
  }

  /** The density on the intersection of areas; without any, the same number. `coarsely`: at once, but maybe not final. */
  restrict(number: number, areas: AreaRecord[], coarsely: boolean): Promise<Restricted> {
    return this.#ask({ kind: "restrict", number, areas, coarsely }) as Promise<Restricted>;
  }

  summary(number: number, candidates: number): Promise<Summary> {
    return this.#ask({ kind: "summary", number, candidates }) as Promise<Summary>;
  }

  scale(number: number): Promise<Scale> {
    return this.#ask({ kind: "scale", number }) as Promise<Scale>;
  }

  regions(number: number): Promise<Regions> {
    return this.#ask({ kind: "regions", number }) as Promise<Regions>;
  }

  outline(corners: readonly Point[]): Promise<Polygon | MultiPolygon> {
    return this.#ask({ kind: "outline", corners }) as Promise<Polygon | MultiPolygon>;
  }

  /** Whether a place lies in the areas that a density was restricted to. */
  allows(number: number, place: Point): Promise<boolean> {
    return this.#ask({ kind: "allows", number, place }) as Promise<boolean>;
  }

  top(number: number): Promise<number> {
    return this.#ask({ kind: "top", number }) as Promise<number>;
  }

  release(numbers: number[]): Promise<unknown> {
    return this.#ask({ kind: "release", numbers });
  }

  values(number: number, zoom: number, x: number, y: number, size: number): Promise<Float32Array> {
    return this.#ask({ kind: "values", number, zoom, x, y, size }) as Promise<Float32Array>;
  }

  /**
   * Pixels of a tile. Few are with the worker at a time, so that what people ask for needn't wait for a whole map,
   * and those that nobody wants any more are never computed.
   */
  tile(tile: TileRequest, signal: AbortSignal): Promise<ImageBitmap> {
    return new Promise((resolve, reject) => {
      const job: Job = {
        run: () => (this.#ask({ kind: "tile", ...tile }) as Promise<ImageBitmap>).then(resolve, reject),
        drop: () => reject(new DOMException("not wanted any more", "AbortError")),
      };
      signal.addEventListener("abort", () => {
        const at = this.#jobs.indexOf(job);
        if (at >= 0) this.#jobs.splice(at, 1);
        job.drop();
      });
      this.#jobs.push(job);
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < TILES_AT_A_TIME) {
      const job = this.#jobs.shift();
      if (job === undefined) return;
      this.#running++;
      void job.run().finally(() => {
        this.#running--;
        this.#next();
      });
    }
  }

  #ask(request: Request): Promise<unknown> {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, request });
    });
  }
}
