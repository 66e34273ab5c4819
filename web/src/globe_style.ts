// The map's style: what lies over what, and in which colours. The order is that of crates/locdiff-map.

import type { FeatureCollection } from "geojson";
import type { ExpressionSpecification, FilterSpecification, LayerSpecification, SkySpecification, SourceSpecification, StyleSpecification } from "maplibre-gl";
import type { Basemap } from "./basemap";
import { GROUND, type Theme } from "./colours";
import { LARGE, LETTERS, LINE_EM } from "./labels";

const BASEMAP = "basemap";
export const DENSITY = "density";
/** Of countries. */
export const NAMES = "names";
/** The picture on the ground. */
export const PICTURE = "picture";

interface Paint {
  layer: string;
  property: string;
  value: string;
}

/** The colours that change with the theme. */
export function paintOf(theme: Theme): Paint[] {
  const ground = GROUND[theme];
  return [
    { layer: "sea", property: "background-color", value: ground.sea },
    { layer: "land", property: "fill-color", value: ground.land },
    { layer: "graticule", property: "line-color", value: ground.graticule },
    { layer: "coast-halo", property: "line-color", value: ground.halo },
    { layer: "coast", property: "line-color", value: ground.coast },
    { layer: "borders", property: "line-color", value: ground.coast },
    { layer: "names", property: "text-color", value: ground.text },
    { layer: "names", property: "text-halo-color", value: ground.halo },
    { layer: "constraints", property: "line-color", value: ground.text },
    { layer: "footprint-halo", property: "line-color", value: ground.halo },
    { layer: "footprint", property: "line-color", value: ground.text },
    { layer: "region-halo", property: "line-color", value: ground.halo },
    { layer: "region-90", property: "line-color", value: ground.mark },
    { layer: "region-inner", property: "line-color", value: ground.mark },
    { layer: "sketch-line", property: "line-color", value: ground.text },
    { layer: "sketch-corners", property: "circle-color", value: ground.text },
  ];
}

/** A thin air around the ball, until one is too near to see it. */
export function sky(theme: Theme): SkySpecification {
  const blend = theme === "dark" ? 0.75 : 0.35;
  return { "atmosphere-blend": ["interpolate", ["linear"], ["zoom"], 0, blend, 4, blend, 6, 0] };
}

export function globeStyle(
  basemap: Basemap,
  theme: Theme,
  tiles: { url: string; attribution: string } | null,
): StyleSpecification {
  const ground = GROUND[theme];
  const colour = (layer: string) => paintOf(theme).find((paint) => paint.layer === layer)?.value ?? "#888";
  const empty = (tolerance = 0.375): SourceSpecification => ({ type: "geojson", data: { type: "FeatureCollection", features: [] }, tolerance });
  // Natural Earth has no detail beyond: nearer, the same tiles are drawn larger, without cutting new ones.
  const coarse = (data: FeatureCollection): SourceSpecification => ({ type: "geojson", data, maxzoom: 6 });
  const kind = (name: string): FilterSpecification => ["==", ["get", "kind"], name];
  const line = (id: string, source: string, paint: Record<string, unknown>, filter?: FilterSpecification): LayerSpecification =>
    ({
      id,
      type: "line",
      source,
      layout: { "line-join": "round", visibility: source === BASEMAP ? "visible" : "none" },
      paint: { "line-color": colour(id), ...paint },
      ...(filter === undefined ? {} : { filter }),
    }) as LayerSpecification;
  const sources: Record<string, SourceSpecification> = {
    // One source: the tiles of each source are drawn as masks of its lines, and they take longer than the lines.
    [BASEMAP]: coarse(basemap.features()),
    [NAMES]: coarse(basemap.labels()),
    regions: empty(0.1),
    constraints: empty(),
    footprint: empty(0.1),
    sketch: empty(),
  };
  const layers: LayerSpecification[] = [
    { id: "sea", type: "background", paint: { "background-color": colour("sea") } },
    { id: "land", type: "fill", source: BASEMAP, filter: kind("land"), paint: { "fill-color": colour("land"), "fill-antialias": false } },
    {
      id: "names",
      type: "symbol",
      source: NAMES,
      // Small countries are named only from near by.
      filter: [">", ["get", "size"], ["step", ["zoom"], 60, 2.4, 25, 3, 8, 4, 1, 5, 0]],
      layout: {
        "text-field": ["get", "name"],
        // Without a server of glyphs, MapLibre draws them from the page's own font.
        "text-font": ["Newsreader Variable"],
        "text-size": ["interpolate", ["linear"], ["zoom"], ...LETTERS.zooms.flatMap((zoom, k) => [zoom, ["case", [">", ["get", "size"], LARGE], LETTERS.large[k]!, LETTERS.small[k]!] as ExpressionSpecification])] as ExpressionSpecification,
        "text-letter-spacing": 0.06,
        "text-max-width": LINE_EM,
        "text-padding": 10,
        "symbol-sort-key": ["-", 0, ["get", "size"]],
      },
      paint: {
        "text-color": ground.text,
        "text-halo-color": ground.halo,
        "text-halo-width": 1,
        // labels.ts tells which lie under the title or a panel.
        "text-opacity": ["case", ["boolean", ["feature-state", "covered"], false], 0, 0.62],
      },
    },
    line("graticule", BASEMAP, { "line-width": 1 }, kind("graticule")),
    line("coast-halo", BASEMAP, { "line-width": 1.7, "line-opacity": 0.4 }, kind("coast")),
    line("coast", BASEMAP, { "line-width": 0.8 }, kind("coast")),
    line("borders", BASEMAP, { "line-width": 0.6, "line-opacity": 0.55 }, kind("borders")),
    line("constraints", "constraints", { "line-width": 1.6, "line-dasharray": [1, 2], "line-opacity": 0.9 }),
    line("footprint-halo", "footprint", { "line-width": 3, "line-opacity": 0.6 }),
    line("footprint", "footprint", { "line-width": 1.2 }),
    line("region-halo", "regions", { "line-width": 3.4, "line-opacity": 0.75 }),
    line("region-90", "regions", { "line-width": 1.7, "line-dasharray": [3, 2] }, ["==", ["get", "level"], 0.9]),
    line("region-inner", "regions", { "line-width": 1.9 }, ["<", ["get", "level"], 0.9]),
    line("sketch-line", "sketch", { "line-width": 2, "line-dasharray": [2, 1] }),
    { id: "sketch-corners", type: "circle", source: "sketch", layout: { visibility: "none" }, filter: ["==", ["geometry-type"], "Point"], paint: { "circle-radius": 5, "circle-color": colour("sketch-corners") } },
  ];
  if (tiles !== null) {
    sources["tiles"] = { type: "raster", tiles: [tiles.url], tileSize: 256, maxzoom: 19, attribution: tiles.attribution };
    const opacity = ["interpolate", ["linear"], ["zoom"], 5, 0, 7, 1];
    layers.splice(2, 0, { id: "tiles", type: "raster", source: "tiles", minzoom: 5, paint: { "raster-opacity": opacity } } as LayerSpecification);
  }
  return { version: 8, projection: { type: "globe" }, sky: sky(theme), sources, layers };
}
