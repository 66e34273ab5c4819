// The pictures on the Earth. Drawing the Earth is slow where no graphics processor helps, so nothing here draws it at once:
// changes are collected, and `settle` shows them when nobody is pressing keys.

import type { Feature, FeatureCollection, Point } from "geojson";
import { Marker, type ExpressionSpecification, type GeoJSONSource } from "maplibre-gl";
import type { Basemap } from "../basemap";
import type { Theme } from "../colours";
import type { Globe } from "../globe";
import { h } from "../html";
import { named, type Place } from "../names";
import { placeOf, statusOf, type LatLon, type Picture, type Status } from "./archive";

const PICTURES = "pictures";

/** Also in review.css. */
export const STATUS_COLORS: Record<Theme, Record<Exclude<Status, "none">, string>> = {
  dark: { estimate: "#58c4ff", accepted: "#5fdc94", rejected: "#ff8a75", gps: "#f0cf62" },
  day: { estimate: "#006bb8", accepted: "#157a43", rejected: "#b93a22", gps: "#8f6a00" },
};

/** Circles smaller than this are not looked at from nearer. */
const NEAREST_KM = 260;
/** Drawings that take longer are not made one after the other. */
export const SLOW_FRAME_MS = 40;
/** After so long without input the map is drawn: a few times as long as one drawing takes, or longer if that is long. */
const [LEAST_REST_MS, FRAMES_OF_REST, LONG_REST_MS, SLOWEST_FRAME_MS] = [120, 3, 1000, 1000];
/** The map rests for long if its drawings, the middle one of so many, come on the screen later than this. Once late is no reason. */
const [LATE_MS, LAST_DRAWINGS] = [100, 9];
/** Pixels that a key moves the pin. */
const [STEP_PX, LEAP_PX] = [10, 60];

export interface MapActions {
  choose(index: number): void;
  candidate(index: number): void;
  /** A pin was put somewhere. */
  move(place: LatLon): void;
  /** The pin was left where it was. */
  stay(): void;
}

export class ArchiveMap {
  readonly #globe: Globe;
  readonly #basemap: Basemap;
  readonly #pictures: readonly Picture[];
  readonly #noun: string;
  readonly #actions: MapActions;
  readonly #pin: Marker;
  /** What the map shows of each picture. */
  readonly #drawn: { status: Status; isShown: boolean; place: LatLon | null }[];
  readonly #changed = new Set<number>();
  #allChanged = false;
  #isShown: (index: number) => boolean = () => true;
  #current: number | null = null;
  #settled: number | null = null;
  /** No drawing begins before: a drawing that has begun holds up everything else on the screen. */
  #quietUntil = 0;
  /** How long the last drawings took: what is seen decides about it. */
  readonly #took: number[] = [];
  /** The middle one. */
  #frameMs: number;
  /** Until somebody moves the map: then it keeps its scale. */
  #fits = true;

  constructor(globe: Globe, basemap: Basemap, pictures: readonly Picture[], noun: string, frameMs: number, actions: MapActions) {
    [this.#globe, this.#basemap, this.#pictures, this.#noun, this.#actions] = [globe, basemap, pictures, noun, actions];
    const element = h("button", { type: "button", class: "pin hand", "aria-label": "Pin of this picture. Arrow keys move it, Enter stores the place, Escape cancels.", title: "Drag it to the place, or press m" }, h("span"));
    this.#pin = new Marker({ element, anchor: "bottom", draggable: true, opacityWhenCovered: "0.25" });
    this.#pin.on("dragend", () => this.#put());
    element.addEventListener("keydown", (event) => this.#onKey(event));
    element.addEventListener("blur", () => this.#cancel());
    this.#drawn = pictures.map((picture) => ({ status: statusOf(picture), isShown: true, place: placeOf(picture) }));
    const { map } = globe;
    this.#frameMs = Math.min(frameMs, SLOWEST_FRAME_MS);
    this.#pace();
    // The air around the ball takes a third of the time of a drawing.
    map.setSky({ "atmosphere-blend": 0 });
    map.addSource(PICTURES, { type: "geojson", data: this.#all(), maxzoom: 6, buffer: 8 });
    const status: ExpressionSpecification = ["coalesce", ["feature-state", "status"], ["get", "status"]];
    const ifShown = (opacity: ExpressionSpecification | number): ExpressionSpecification => ["case", ["boolean", ["feature-state", "hidden"], false], 0, opacity];
    map.addLayer(
      {
        id: PICTURES,
        type: "circle",
        source: PICTURES,
        paint: {
          "circle-radius": ["interpolate", ["linear"], ["zoom"], 0, 2, 3, 3.2, 8, 6],
          "circle-color": this.#color(status),
          // Rejected ones are rings.
          "circle-opacity": ifShown(["match", status, "rejected", 0, 0.8]),
          "circle-stroke-color": this.#color(status),
          "circle-stroke-width": 1,
          "circle-stroke-opacity": ifShown(0.9),
          "circle-pitch-alignment": "viewport",
        },
      },
      "region-halo",
    );
    map.on("click", ({ point }) => {
      const near = map.queryRenderedFeatures([[point.x - 7, point.y - 7], [point.x + 7, point.y + 7]], { layers: [PICTURES] });
      const found = near.map(({ id }) => Number(id)).find((index) => this.#isShown(index));
      if (found !== undefined) actions.choose(found);
    });
    map.on("movestart", (event) => {
      if ("originalEvent" in event && event.originalEvent) this.#fits = false;
    });
  }

  /** Begins no drawing until there was no input for so long, which it returns. */
  rest(): number {
    const least = this.#frameMs > LATE_MS ? LONG_REST_MS : LEAST_REST_MS;
    const ms = Math.max(least, FRAMES_OF_REST * this.#frameMs);
    this.#quietUntil = performance.now() + ms;
    return ms;
  }

  /** Between two drawings there is time for others, and what has changed meanwhile is drawn at once. */
  #pace(): void {
    const { map } = this.#globe;
    const draw = map.triggerRepaint.bind(map);
    let timer: ReturnType<typeof setTimeout> | undefined;
    map.triggerRepaint = () => {
      if (timer !== undefined) return;
      const wait = this.#quietUntil - performance.now();
      if (wait <= 0) return draw();
      timer = setTimeout(() => {
        timer = undefined;
        map.triggerRepaint();
      }, wait);
    };
    map.on("render", () => {
      const began = performance.now();
      // The second frame from now comes when this one is on the screen.
      requestAnimationFrame(() => requestAnimationFrame(() => this.#isOnScreen(performance.now() - began)));
    });
  }

  #isOnScreen(ms: number): void {
    this.#took.push(Math.min(ms, SLOWEST_FRAME_MS));
    if (this.#took.length > LAST_DRAWINGS) this.#took.shift();
    this.#frameMs = this.#took.toSorted((a, b) => a - b)[this.#took.length >> 1]!;
    // Two thirds of the time are for others, unless somebody moves the map.
    const pause = this.#frameMs > LATE_MS && !this.#globe.map.isMoving() ? 2 * this.#frameMs : 0;
    this.#quietUntil = Math.max(this.#quietUntil, performance.now() + pause);
  }

  #color(status: ExpressionSpecification): ExpressionSpecification {
    const { estimate, accepted, rejected, gps } = STATUS_COLORS[this.#globe.theme];
    return ["match", status, "accepted", accepted, "rejected", rejected, "gps", gps, estimate];
  }

  setTheme(theme: Theme): void {
    this.#globe.setTheme(theme);
    this.#globe.map.setSky({ "atmosphere-blend": 0 });
    const color = this.#color(["coalesce", ["feature-state", "status"], ["get", "status"]]);
    for (const property of ["circle-color", "circle-stroke-color"] as const) this.#globe.map.setPaintProperty(PICTURES, property, color);
  }

  #all(): FeatureCollection<Point> {
    const features = this.#pictures.flatMap((picture, index) => feature(index, picture) ?? []);
    return { type: "FeatureCollection", features };
  }

  /** Other pictures are shown: compared when the map settles. */
  filter(isShown: (index: number) => boolean): void {
    this.#isShown = isShown;
    this.#allChanged = true;
  }

  /** These were decided. */
  touch(indices: readonly number[]): void {
    for (const index of indices) this.#changed.add(index);
    if (this.#current !== null && indices.includes(this.#current)) this.#settled = null;
    this.look(this.#current);
  }

  /** Puts the pin on a picture. Its candidates and circles follow when the map settles. */
  look(index: number | null): void {
    this.#current = index;
    const picture = index === null ? undefined : this.#pictures[index];
    const place = picture === undefined ? null : placeOf(picture);
    const element = this.#pin.getElement();
    element.hidden = place === null;
    if (picture !== undefined && place !== null) {
      element.dataset["status"] = statusOf(picture);
      this.#pin.setLngLat([place[1], place[0]]);
      if (!element.isConnected) this.#pin.addTo(this.#globe.map);
    }
    document.body.classList.toggle("unsettled", index !== this.#settled);
  }

  /** Draws what has changed: the one step that costs a frame of the Earth. */
  settle(): void {
    this.#update();
    const index = this.#current;
    if (index === this.#settled) return;
    this.#settled = index;
    document.body.classList.remove("unsettled");
    const picture = index === null ? undefined : this.#pictures[index];
    const { place = null, radius_68_km = null, radius_90_km = null } = picture ?? {};
    const circle = (level: number, radius_km: number | null) => (place === null || radius_km === null ? [] : [{ level, latitude: place[0], longitude: place[1], radius_km }]);
    this.#globe.showCircles([...circle(0.9, radius_90_km), ...circle(0.68, radius_68_km)]);
    const places = picture === undefined ? [] : candidatePlaces(picture, this.#basemap);
    // One candidate is the pin itself.
    this.#globe.showCandidates(places.length > 1 ? places : [], this.#noun, this.#actions.candidate);
    const at = picture === undefined ? null : placeOf(picture);
    if (at === null) return;
    if (this.#fits) this.fit();
    else this.#globe.map.jumpTo({ center: [at[1], at[0]] });
  }

  /** From as near as the 90 % circle allows. */
  fit(): void {
    const picture = this.#current === null ? undefined : this.#pictures[this.#current];
    const place = picture === undefined ? null : placeOf(picture);
    if (place === null) return;
    this.#fits = true;
    this.#globe.turnTo({ latitude: place[0], longitude: place[1] }, Math.max(NEAREST_KM, 1.1 * (picture!.radius_90_km ?? 0)), 0);
  }

  /** Focuses the pin, so that keys move it; a picture without a place gets one in the middle of the map. */
  takePin(): void {
    if (this.#current === null) return;
    const element = this.#pin.getElement();
    if (element.hidden) {
      element.hidden = false;
      element.dataset["status"] = "none";
      this.#pin.setLngLat(this.#globe.map.getCenter());
      if (!element.isConnected) this.#pin.addTo(this.#globe.map);
    }
    element.focus({ preventScroll: true });
  }

  #put(): void {
    const { lat, lng } = this.#pin.getLngLat().wrap();
    this.#actions.move([lat, lng]);
  }

  #cancel(): void {
    if (!document.body.classList.contains("moving")) return;
    document.body.classList.remove("moving");
    this.look(this.#current);
  }

  #onKey(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (step === undefined && event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    this.rest();
    if (step !== undefined) {
      const { map } = this.#globe;
      document.body.classList.add("moving");
      const pixels = event.shiftKey ? LEAP_PX : STEP_PX;
      const { x, y } = map.project(this.#pin.getLngLat());
      const [width, height] = [map.getCanvas().clientWidth, map.getCanvas().clientHeight];
      const at = map.unproject([x + pixels * step[0], y + pixels * step[1]]);
      this.#pin.setLngLat(at);
      if (x < 40 || y < 60 || x > width - 40 || y > height - 40) map.jumpTo({ center: at });
      return;
    }
    if (event.key === "Enter") {
      document.body.classList.remove("moving");
      this.#put();
    } else this.#cancel();
    this.#actions.stay();
  }

  /** Points that look otherwise get another state, one by one; only places that changed are sent to the map's index. */
  #update(): void {
    const { map } = this.#globe;
    const [add, remove, update]: [Feature<Point>[], number[], { id: number; newGeometry: Point }[]] = [[], [], []];
    for (const index of this.#allChanged ? this.#pictures.keys() : this.#changed) {
      const [drawn, picture] = [this.#drawn[index]!, this.#pictures[index]!];
      const [status, isShown, place] = [statusOf(picture), this.#isShown(index), placeOf(picture)];
      if (place !== null && (drawn.status !== status || drawn.isShown !== isShown)) map.setFeatureState({ source: PICTURES, id: index }, { status, hidden: !isShown });
      if (drawn.place !== place) {
        if (place === null) remove.push(index);
        else if (drawn.place === null) add.push(feature(index, picture)!);
        else update.push({ id: index, newGeometry: point(place) });
      }
      Object.assign(drawn, { status, isShown, place });
    }
    this.#changed.clear();
    this.#allChanged = false;
    if (add.length + remove.length + update.length > 0) map.getSource<GeoJSONSource>(PICTURES)?.updateData({ add, remove, update });
  }
}

/** Candidates with a number key, and their names. */
export function candidatePlaces({ candidates, place_name }: Picture, basemap: Basemap): Place[] {
  return candidates.slice(0, 9).map((candidate, index) => {
    const place = named(candidate, [], (latitude, longitude) => basemap.countryAt(latitude, longitude));
    const name = (index === 0 ? place_name : null) ?? place.country ?? "At sea";
    return { ...place, name, around: "" };
  });
}

const point = ([latitude, longitude]: LatLon): Point => ({ type: "Point", coordinates: [longitude, latitude] });

function feature(index: number, picture: Picture): Feature<Point> | null {
  const place = placeOf(picture);
  return place === null ? null : { type: "Feature", id: index, properties: { status: statusOf(picture) }, geometry: point(place) };
}
