// The stage: the Earth with its density, regions, candidates and constraints, and the picture on its ground.

import type { FeatureCollection, Position } from "geojson";
import * as maplibre from "maplibre-gl";
import "maplibre-gl/dist/maplibre-gl.css";
import type { Basemap } from "./basemap";
import type { Theme } from "./colours";
import type { Constraint } from "./constraints";
import type { Engine } from "./engine";
import { isAnywhere, type Place } from "./names";
import { areaLines, borderLines } from "./outlines";
import { percent } from "./format";
import { h } from "./html";
import { DENSITY, globeStyle, NAMES, paintOf, PICTURE, sky } from "./globe_style";
import { ClearLabels } from "./labels";
import type { Drape, Ground } from "./ground";
import type { Regions } from "./wasm";

const TILE = 512;
/** While frames come by quickly, fewer pixels will do. */
const QUICK_TILE = 256;
/** About 2 km across a desktop. */
const NEAREST_ZOOM = 15;
const EMPTY: FeatureCollection = { type: "FeatureCollection", features: [] };

export interface Shown {
  number: number;
  top: number;
}

export class Globe {
  readonly map: maplibre.Map;
  readonly #stage: HTMLElement;
  readonly #basemap: Basemap;
  #theme: Theme;
  #shown: Shown | null = null;
  #quick = false;
  #markers: maplibre.Marker[] = [];
  #gps: maplibre.Marker | null = null;
  #drape: Drape | null = null;
  #turning = 0;
  readonly #ready: Promise<void>;

  constructor(stage: HTMLElement, engine: Pick<Engine, "tile"> | null, basemap: Basemap, theme: Theme, tiles: { url: string; attribution: string } | null) {
    this.#stage = stage;
    this.#basemap = basemap;
    this.#theme = theme;
    if (engine !== null) maplibre.addProtocol("density", async ({ url }, abort) => {
      // density://NUMBER/TOP/THEME/SIZE/Z/X/Y
      const [number, top, colours, size, zoom, x, y] = url.slice("density://".length).split("/");
      const [n, t, s, z, i, j] = [number, top, size, zoom, x, y].map(Number) as [number, number, number, number, number, number];
      try {
        return { data: await engine.tile({ number: n, top: t, size: s, zoom: z, x: i, y: j, theme: colours as Theme }, abort.signal) };
      } catch (error) {
        // A density that isn't shown any more may be gone from the engine: nobody will see its tile.
        if (n === this.#shown?.number && !abort.signal.aborted) throw error;
        return { data: await createImageBitmap(new ImageData(1, 1)) };
      }
    });
    this.map = new maplibre.Map({
      container: stage,
      style: globeStyle(basemap, theme, tiles),
      center: [12, 18],
      zoom: 1.4,
      minZoom: 0.3,
      maxZoom: 16,
      maxPitch: 0,
      dragRotate: false,
      pitchWithRotate: false,
      attributionControl: false,
      // The whole Earth in one piece; the style's projection makes it a ball.
      renderWorldCopies: false,
      fadeDuration: 0,
      locale: { "Map.Title": "Map of the Earth" },
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new maplibre.NavigationControl({ showCompass: false, visualizePitch: false }), "bottom-right");
    // Close up, nothing else on the map tells how near one is.
    this.map.addControl(new maplibre.ScaleControl({ maxWidth: 90, unit: "metric" }), "bottom-right");
    if (tiles !== null && tiles.attribution !== "") {
      this.map.addControl(new maplibre.AttributionControl({ compact: true }), "bottom-right");
    }
    this.#ready = new Promise((resolve) => this.map.once("load", () => resolve()));
    const stop = () => this.stopTurning();
    for (const event of ["mousedown", "touchstart", "wheel"] as const) this.map.on(event, stop);
    this.map.getCanvas().addEventListener("keydown", stop);
  }

  get ready(): Promise<void> {
    return this.#ready;
  }

  get theme(): Theme {
    return this.#theme;
  }

  /** From here on no name lies under these elements. */
  keepNamesClearOf(panels: readonly Element[]): void {
    const labels = this.#basemap.labels().features.map(({ id, properties, geometry }) => ({ id: id as number, ...properties, longitude: geometry.coordinates[0]!, latitude: geometry.coordinates[1]! }));
    const controls = this.map.getContainer().querySelectorAll(".maplibregl-ctrl");
    new ClearLabels(this.map, NAMES, labels, [...panels, ...controls]);
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    for (const { layer, property, value } of paintOf(theme)) {
      if (this.map.getLayer(layer)) this.map.setPaintProperty(layer, property, value);
    }
    this.map.setSky(sky(theme));
    if (this.#shown) this.showDensity(this.#shown, this.#quick);
  }

  /** Shows a density, or none. `quick` draws it with fewer pixels. */
  showDensity(shown: Shown | null, quick = false): void {
    this.#shown = shown;
    this.#quick = quick;
    if (shown === null) {
      if (this.map.getLayer(DENSITY)) this.map.setLayoutProperty(DENSITY, "visibility", "none");
      return;
    }
    const size = quick ? QUICK_TILE : TILE;
    const tiles = [`density://${shown.number}/${shown.top}/${this.#theme}/${size}/{z}/{x}/{y}`];
    const source = this.map.getSource<maplibre.RasterTileSource>(DENSITY);
    if (source) {
      source.setTiles(tiles);
    } else {
      this.map.addSource(DENSITY, { type: "raster", tiles, tileSize: TILE, maxzoom: 12 });
      this.map.addLayer(
        {
          id: DENSITY,
          type: "raster",
          source: DENSITY,
          paint: {
            "raster-fade-duration": 0,
            // Streets must stay readable under it.
            "raster-opacity": ["interpolate", ["linear"], ["zoom"], 7, 1, 11, this.map.getLayer("tiles") ? 0.5 : 1],
          },
        },
        "graticule",
      );
    }
    this.map.setLayoutProperty(DENSITY, "visibility", "visible");
  }

  showRegions(regions: Regions | null): void {
    const features = (regions?.features ?? []).map(({ geometry, properties }) => ({
      type: "Feature" as const,
      properties,
      geometry: { type: "MultiLineString" as const, coordinates: borderLines(geometry) },
    }));
    this.#set("regions", { type: "FeatureCollection", features });
  }

  /** Circles in place of regions: of radii that hold so much of an estimate. */
  showCircles(circles: readonly { level: number; latitude: number; longitude: number; radius_km: number }[]): void {
    const features = circles.map(({ level, ...circle }) => ({ ...areaLines({ kind: "circle", ...circle }), properties: { level } }));
    this.#set("regions", { type: "FeatureCollection", features });
  }

  showConstraints(constraints: readonly Constraint[]): void {
    // All land has a border already.
    const features = constraints.filter(({ label }) => label !== "land").map(({ area }) => areaLines(area));
    this.#set("constraints", { type: "FeatureCollection", features });
  }

  /** Lays the picture on its ground, or takes it away. Coasts, borders and regions stay above it. */
  showGround(ground: Ground | null, opacity: number): void {
    const coordinates = ground === null ? [] : borderLines(ground.outline);
    const features = ground === null ? [] : [{ type: "Feature" as const, properties: {}, geometry: { type: "MultiLineString" as const, coordinates } }];
    this.#set("footprint", { type: "FeatureCollection", features });
    const drape = ground?.drape ?? null;
    if (drape !== this.#drape) {
      if (this.map.getLayer(PICTURE)) this.map.removeLayer(PICTURE);
      if (this.map.getSource(PICTURE)) this.map.removeSource(PICTURE);
      this.#drape = drape;
      if (drape === null) return;
      const source: maplibre.CanvasSourceSpecification = { type: "canvas", canvas: drape.canvas, coordinates: drape.corners, animate: false };
      this.map.addSource(PICTURE, source);
      this.map.addLayer({ id: PICTURE, type: "raster", source: PICTURE, paint: { "raster-fade-duration": 0 } }, "graticule");
    }
    this.fadeGround(opacity);
  }

  /** How much of the picture on its ground is seen, 0 to 1. */
  fadeGround(opacity: number): void {
    if (this.map.getLayer(PICTURE)) this.map.setPaintProperty(PICTURE, "raster-opacity", opacity);
  }

  showSketch(points: readonly Position[], pointer: Position | null): void {
    const line = pointer === null ? [...points] : [...points, pointer];
    const closed = line.length > 2 ? [...line, line[0]!] : line;
    const corners = points.map((point) => ({ type: "Feature" as const, properties: {}, geometry: { type: "Point" as const, coordinates: point } }));
    const features = [
      ...corners,
      ...(closed.length > 1 ? [{ type: "Feature" as const, properties: {}, geometry: { type: "LineString" as const, coordinates: closed } }] : []),
    ];
    this.#set("sketch", points.length === 0 ? EMPTY : { type: "FeatureCollection", features });
  }

  showCandidates(places: readonly Place[], noun: string, choose: (index: number) => void): void {
    for (const marker of this.#markers) marker.remove();
    this.#markers = places.flatMap((place, index) => {
      if (isAnywhere(place)) return [];
      const label = `Candidate ${index + 1}: ${place.name}, ${noun} ${percent(place.mass)}`;
      const element = h("button", { type: "button", class: "pin", "data-index": index, "aria-label": label, title: label, style: `z-index:${places.length - index}`, onclick: () => choose(index) }, h("span", {}, String(index + 1)));
      return [new maplibre.Marker({ element, anchor: "bottom", opacityWhenCovered: "0" }).setLngLat([place.longitude, place.latitude]).addTo(this.map)];
    });
  }

  showGps(place: { latitude: number; longitude: number } | null): void {
    this.#gps?.remove();
    this.#gps = null;
    if (place === null) return;
    const element = h("div", { class: "gps", role: "img", "aria-label": "The place in the picture's GPS data", title: "GPS in the file" }, "×");
    this.#gps = new maplibre.Marker({ element, opacityWhenCovered: "0" }).setLngLat([place.longitude, place.latitude]).addTo(this.map);
  }

  highlight(index: number | null): void {
    for (const element of this.#markers.map((marker) => marker.getElement())) element.classList.toggle("chosen", element.dataset["index"] === String(index));
  }

  /** How large the stage is, 1 being a desktop's: what must not be too small to see is scaled by it. */
  get scale(): number {
    return Math.min(1, Math.max(0.65, Math.min(this.#stage.clientWidth, this.#stage.clientHeight) / 900));
  }

  /** Turns the Earth until a place is in the middle, as near as a circle around it allows. */
  turnTo(place: { latitude: number; longitude: number }, radiusKm: number, duration = 2600): void {
    this.stopTurning();
    const zoom = Math.min(NEAREST_ZOOM, Math.max(this.#wholeZoom(place.latitude), this.#zoomFor(place.latitude, radiusKm)));
    this.map.flyTo({ center: [place.longitude, place.latitude], zoom, bearing: 0, duration, curve: 1.2 });
  }

  /** Away from where the map is, until the whole Earth is seen. */
  goBack(duration = 1200): void {
    this.stopTurning();
    const { lat, lng } = this.map.getCenter();
    // From over a pole the Earth looks strange.
    const latitude = Math.max(-40, Math.min(40, lat));
    this.map.easeTo({ center: [lng, latitude], zoom: this.#wholeZoom(latitude), duration });
  }

  /** The whole Earth turns slowly, until somebody touches it. */
  startTurning(): void {
    if (this.#turning !== 0 || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    let before = performance.now();
    const step = (now: number) => {
      const seconds = Math.min(0.2, (now - before) / 1000);
      before = now;
      const { lng, lat } = this.map.getCenter();
      this.map.jumpTo({ center: [lng + 2.2 * seconds, lat] });
      this.#turning = requestAnimationFrame(step);
    };
    this.#turning = requestAnimationFrame(step);
  }

  stopTurning(): void {
    cancelAnimationFrame(this.#turning);
    this.#turning = 0;
  }

  /** Zoom at which the whole ball just fits the stage. */
  showWhole(): void {
    const { lat } = this.map.getCenter();
    this.map.jumpTo({ zoom: this.#wholeZoom(lat) });
  }

  /** Resolves once everything that is to be seen is drawn. */
  async settled(): Promise<void> {
    if (this.map.loaded() && !this.map.isMoving() && this.map.areTilesLoaded()) return;
    await new Promise<void>((resolve) => this.map.once("idle", () => resolve()));
  }

  /** How long the map takes to be drawn once; without a graphics processor that is long. */
  frameMs(): number {
    const began = performance.now();
    this.map.redraw();
    const canvas = this.map.getCanvas();
    const gl = canvas.getContext("webgl2") ?? canvas.getContext("webgl");
    // Reading a pixel waits for all of them.
    gl?.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    return performance.now() - began;
  }

  #set(source: string, data: FeatureCollection): void {
    const { map } = this;
    map.getSource<maplibre.GeoJSONSource>(source)?.setData(data);
    // Layers of an empty source take time, too: masks of its tiles.
    const visibility = data.features.length === 0 ? "none" : "visible";
    for (const id of map.getLayersOrder().filter((id) => map.getLayer(id)?.source === source)) map.setLayoutProperty(id, "visibility", visibility);
  }

  #wholeZoom(latitude: number): number {
    const radius = 0.43 * Math.min(this.#stage.clientWidth, this.#stage.clientHeight);
    return Math.log2(((2 * Math.PI * radius) / 512) * Math.cos((latitude * Math.PI) / 180));
  }

  #zoomFor(latitude: number, radiusKm: number): number {
    const pixels = 0.3 * Math.min(this.#stage.clientWidth, this.#stage.clientHeight);
    return Math.log2((40_075 * Math.cos((latitude * Math.PI) / 180) * pixels) / (512 * radiusKm));
  }
}
