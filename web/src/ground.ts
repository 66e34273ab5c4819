// The ground that a picture from above shows: the picture itself, laid on the map in its place.
//
// MapLibre stretches an image between four corners on the Mercator map, which puts the middle of a picture 1,000 km wide some 20 km
// off. So the picture is warped here: seen from above, the ground is a plane that touches the Earth at the picture's middle (gnomonic
// projection), and a camera maps a plane by a homography. The result is an upright rectangle of the Mercator map.

import type { MultiPolygon, Polygon } from "geojson";
import type { Footprint } from "./api";

/** An answer's footprint, ready to be shown. */
export interface Ground {
  footprint: Footprint;
  outline: Polygon | MultiPolygon;
  /** null if the browser can't show the file. */
  drape: Drape | null;
}

/** Corners as MapLibre has them: longitude and latitude, from the upper left clockwise. */
export type Corners = [[number, number], [number, number], [number, number], [number, number]];

export interface Drape {
  canvas: HTMLCanvasElement;
  corners: Corners;
}

/** A rectangle of the Mercator map. */
export interface Extent {
  west: number;
  south: number;
  east: number;
  north: number;
}

type Vector = [number, number, number];
type Matrix = [number, number, number, number, number, number, number, number, number];

const RADIANS = Math.PI / 180;
/** Kilometres of a degree of latitude. */
const DEGREE_KM = 111.195;
/** The Mercator map ends here. */
const LAST_LATITUDE = 85.0511;
/** Pixels along a side: of the picture, and of what it is warped to. */
const PICTURE_PIXELS = 1024;
const DRAPE_PIXELS = 1536;

const dot = (a: Vector, b: Vector) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

/** Where in the picture's central square a place is seen: right and down, 0 to 1. */
export class View {
  readonly #east: Vector;
  readonly #north: Vector;
  readonly #up: Vector;
  readonly #square: Matrix;

  constructor({ corners, middle }: Pick<Footprint, "corners" | "middle">) {
    const [sinLat, cosLat] = [Math.sin(middle.latitude * RADIANS), Math.cos(middle.latitude * RADIANS)];
    const [sinLon, cosLon] = [Math.sin(middle.longitude * RADIANS), Math.cos(middle.longitude * RADIANS)];
    this.#east = [-sinLon, cosLon, 0];
    this.#north = [-sinLat * cosLon, -sinLat * sinLon, cosLat];
    this.#up = [cosLat * cosLon, cosLat * sinLon, sinLat];
    const plane = corners.map(({ latitude, longitude }) => {
      const [east, north, up] = this.#towards(...sines(latitude), ...sines(longitude));
      return [east / up, north / up] as [number, number];
    });
    this.#square = inverse(planeFromSquare(plane as [[number, number], [number, number], [number, number], [number, number]]));
  }

  at(latitude: number, longitude: number): [number, number] | null {
    return this.atSines(...sines(latitude), ...sines(longitude));
  }

  /** The same by sines and cosines, of which a map needs one pair for each row and each column. */
  atSines(sinLat: number, cosLat: number, sinLon: number, cosLon: number): [number, number] | null {
    const [x, y, up] = this.#towards(sinLat, cosLat, sinLon, cosLon);
    if (up <= 0) return null;
    const m = this.#square;
    // The picture plane's own distance: what isn't positive lies behind the camera.
    const depth = m[6] * x + m[7] * y + m[8] * up;
    if (depth <= 0) return null;
    return [(m[0] * x + m[1] * y + m[2] * up) / depth, (m[3] * x + m[4] * y + m[5] * up) / depth];
  }

  #towards(sinLat: number, cosLat: number, sinLon: number, cosLon: number): Vector {
    const place: Vector = [cosLat * cosLon, cosLat * sinLon, sinLat];
    return [dot(this.#east, place), dot(this.#north, place), dot(this.#up, place)];
  }
}

function sines(degrees: number): [number, number] {
  return [Math.sin(degrees * RADIANS), Math.cos(degrees * RADIANS)];
}

/** The homography from the unit square, (0, 0), (1, 0), (1, 1), (0, 1), to a quadrilateral (Heckbert 1989, section 2.2.2). */
function planeFromSquare([[x0, y0], [x1, y1], [x2, y2], [x3, y3]]: [[number, number], [number, number], [number, number], [number, number]]): Matrix {
  const [dx1, dx2, dx3] = [x1 - x2, x3 - x2, x0 - x1 + x2 - x3];
  const [dy1, dy2, dy3] = [y1 - y2, y3 - y2, y0 - y1 + y2 - y3];
  const size = dx1 * dy2 - dx2 * dy1;
  const g = (dx3 * dy2 - dx2 * dy3) / size;
  const h = (dx1 * dy3 - dx3 * dy1) / size;
  return [x1 - x0 + g * x1, x3 - x0 + h * x3, x0, y1 - y0 + g * y1, y3 - y0 + h * y3, y0, g, h, 1];
}

/** Up to a factor, and positive in the middle of the square. */
function inverse([a, b, c, d, e, f, g, h, i]: Matrix): Matrix {
  const adjugate = [e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g, c * d - a * f, d * h - e * g, b * g - a * h, a * e - b * d];
  const determinant = a * adjugate[0]! + b * adjugate[3]! + c * adjugate[6]!;
  return adjugate.map((value) => value / determinant) as Matrix;
}

/** The rectangle around an outline. Its middle lies between -180 and 180, its sides may lie beyond. */
export function extentOf(outline: Polygon | MultiPolygon, middle: { longitude: number }): Extent {
  const points = outline.type === "Polygon" ? outline.coordinates.flat() : outline.coordinates.flat(2);
  const clamped = (latitude: number) => Math.max(-LAST_LATITUDE, Math.min(LAST_LATITUDE, latitude));
  const latitudes = points.map((point) => point[1]!);
  const [south, north] = [clamped(Math.min(...latitudes)), clamped(Math.max(...latitudes))];
  if (latitudes.some((latitude) => Math.abs(latitude) > 89.999)) return { west: -180, south, east: 180, north };
  const turned = points.map((point) => {
    const from = point[0]! - middle.longitude;
    return from - 360 * Math.round(from / 360);
  });
  const [west, east] = [middle.longitude + Math.min(...turned), middle.longitude + Math.max(...turned)];
  const shift = 360 * Math.floor(((west + east) / 2 + 180) / 360);
  return { west: west - shift, south, east: east - shift, north };
}

/** Mercator's northing, in degrees of the equator. */
const northing = (latitude: number) => Math.log(Math.tan((45 + latitude / 2) * RADIANS)) / RADIANS;
const latitudeAt = (y: number) => 2 * Math.atan(Math.exp(y * RADIANS)) / RADIANS - 90;

/** Pixels of the warped picture: as fine as the picture is, unless that were too many. */
export function sizeOf(extent: Extent, footprint: Footprint, side: number): { width: number; height: number } {
  // Where a degree of longitude is longest.
  const latitude = Math.max(extent.south, Math.min(extent.north, 0));
  const perDegree = (side * DEGREE_KM * Math.cos(latitude * RADIANS)) / footprint.width_km;
  const [across, down] = [extent.east - extent.west, northing(extent.north) - northing(extent.south)];
  const scale = Math.min(perDegree, DRAPE_PIXELS / Math.max(across, down));
  return { width: Math.max(2, Math.ceil(scale * across)), height: Math.max(2, Math.ceil(scale * down)) };
}

/** The picture of a square, `side` pixels wide, as it lies in a rectangle of the Mercator map. RGBA; transparent beside it. */
export function warped(square: Uint8ClampedArray, side: number, view: View, extent: Extent, { width, height }: { width: number; height: number }): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(4 * width * height);
  const columns = Array.from({ length: width }, (_, x) => sines(extent.west + ((x + 0.5) / width) * (extent.east - extent.west)));
  const [top, bottom] = [northing(extent.north), northing(extent.south)];
  for (let y = 0; y < height; y++) {
    const [sinLat, cosLat] = sines(latitudeAt(top + ((y + 0.5) / height) * (bottom - top)));
    for (let x = 0; x < width; x++) {
      const at = view.atSines(sinLat, cosLat, columns[x]![0], columns[x]![1]);
      if (at === null) continue;
      const [u, v] = at;
      // Half a pixel beyond the edge, so that the edge isn't jagged.
      const inside = Math.min(u, 1 - u, v, 1 - v) * side + 0.5;
      if (inside <= 0) continue;
      const [right, down] = [Math.min(side - 1, Math.max(0, u * side - 0.5)), Math.min(side - 1, Math.max(0, v * side - 0.5))];
      const [left, upper] = [Math.min(side - 2, Math.floor(right)), Math.min(side - 2, Math.floor(down))];
      const [p, q] = [right - left, down - upper];
      const from = 4 * (upper * side + left);
      const to = 4 * (y * width + x);
      for (let c = 0; c < 3; c++) {
        const above = (1 - p) * square[from + c]! + p * square[from + 4 + c]!;
        const below = (1 - p) * square[from + 4 * side + c]! + p * square[from + 4 * side + 4 + c]!;
        pixels[to + c] = (1 - q) * above + q * below;
      }
      pixels[to + 3] = 255 * Math.min(1, inside);
    }
  }
  return pixels;
}

/** The picture as it lies on the map; null if the browser can't show the file. */
export async function drape(file: Blob, footprint: Footprint, outline: Polygon | MultiPolygon): Promise<Drape | null> {
  let bitmap: ImageBitmap;
  try {
    // Upright, as the server turns it.
    bitmap = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    return null;
  }
  const shorter = Math.min(bitmap.width, bitmap.height);
  const side = Math.max(2, Math.min(PICTURE_PIXELS, shorter));
  const pen = canvasOf(side, side);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(bitmap, (bitmap.width - shorter) / 2, (bitmap.height - shorter) / 2, shorter, shorter, 0, 0, side, side);
  bitmap.close();
  const extent = extentOf(outline, footprint.middle);
  const size = sizeOf(extent, footprint, side);
  const pixels = warped(pen.getImageData(0, 0, side, side).data, side, new View(footprint), extent, size);
  const result = canvasOf(size.width, size.height);
  result.putImageData(new ImageData(pixels, size.width, size.height), 0, 0);
  const { west, south, east, north } = extent;
  return { canvas: result.canvas, corners: [[west, north], [east, north], [east, south], [west, south]] };
}

function canvasOf(width: number, height: number): CanvasRenderingContext2D {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  return canvas.getContext("2d", { willReadFrequently: true })!;
}
