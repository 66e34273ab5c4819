// The colours that the program draws densities with (crates/locdiff-map: scale.rs, theme.rs, colour_table.rs).
// tests/colours.test.ts compares the numbers with those files.

export type Theme = "day" | "dark";

/** The colour map inferno at equal steps, from dark to light. */
export const INFERNO: readonly (readonly [number, number, number])[] = [
  [0, 0, 4], [2, 1, 10], [4, 3, 18], [7, 5, 27], [11, 7, 36], [16, 9, 45], [21, 11, 55], [27, 12, 65],
  [33, 12, 74], [40, 11, 83], [47, 10, 91], [54, 9, 97], [61, 9, 101], [68, 10, 104], [74, 12, 107],
  [81, 14, 108], [87, 16, 110], [93, 18, 110], [100, 21, 110], [106, 23, 110], [113, 25, 110],
  [119, 28, 109], [125, 30, 109], [132, 32, 107], [138, 34, 106], [144, 37, 104], [151, 39, 102],
  [157, 41, 100], [163, 44, 97], [169, 46, 94], [176, 49, 91], [182, 52, 88], [188, 55, 84],
  [193, 58, 80], [199, 62, 76], [204, 66, 72], [210, 70, 68], [215, 75, 63], [219, 80, 59],
  [224, 85, 54], [228, 90, 49], [232, 96, 45], [235, 102, 40], [239, 108, 35], [241, 115, 29],
  [244, 121, 24], [246, 128, 19], [248, 135, 14], [249, 142, 9], [251, 150, 6], [251, 157, 7],
  [252, 165, 10], [252, 172, 17], [252, 180, 24], [251, 188, 33], [250, 196, 42], [249, 203, 53],
  [247, 211, 64], [245, 219, 76], [243, 227, 90], [242, 234, 105], [241, 241, 121], [243, 246, 138],
  [248, 251, 154], [252, 255, 164],
];

/** The part of inferno in use, from improbable to probable. */
export const COLOURS: Record<Theme, readonly [number, number]> = { day: [1.0, 0.17], dark: [0.18, 1.0] };

export interface Ground {
  space: string;
  sea: string;
  land: string;
  coast: string;
  graticule: string;
  mark: string;
  halo: string;
  text: string;
  glow: string;
}

export const GROUND: Record<Theme, Ground> = {
  day: {
    space: "#eeebe4",
    sea: "#e4ecf2",
    land: "#faf8f4",
    coast: "rgba(93, 107, 120, 0.75)",
    graticule: "rgba(93, 107, 120, 0.18)",
    mark: "#0077cc",
    halo: "#ffffff",
    text: "#1c242c",
    glow: "#6f8ba5",
  },
  dark: {
    space: "#0b0f15",
    sea: "#141c27",
    land: "#2a3543",
    coast: "rgba(147, 164, 182, 0.6)",
    graticule: "rgba(147, 164, 182, 0.13)",
    mark: "#58c4ff",
    halo: "#0b0f15",
    text: "#ecf0f4",
    glow: "#4f8fd0",
  },
};

/** How far below the top the scale ends: three powers of ten, in nats. */
export const DEPTH_NATS = 3 * Math.LN10;

/** Position on the scale in [0, 1]; 0 is transparent. */
export function position(logDensity: number, top: number): number {
  if (Number.isNaN(logDensity)) return 0;
  return Math.min(1, Math.max(0, 1 + (logDensity - top) / DEPTH_NATS));
}

/** Red, green, blue (0 to 255) and alpha (0 to 1) of a position on the scale. */
export function densityColour(theme: Theme, at: number): [number, number, number, number] {
  const place = Math.min(1, Math.max(0, at));
  const [low, high] = COLOURS[theme];
  const along = (low + place * (high - low)) * (INFERNO.length - 1);
  const index = Math.min(Math.trunc(along), INFERNO.length - 2);
  const share = along - index;
  const [a, b] = [INFERNO[index]!, INFERNO[index + 1]!];
  const channel = (k: 0 | 1 | 2) => Math.round(a[k] + share * (b[k] - a[k]));
  // Fades in over the lowest part of the scale, without an edge that would look like a border.
  const fade = Math.min(1, place / 0.35);
  return [channel(0), channel(1), channel(2), 0.94 * fade * fade * (3 - 2 * fade)];
}

const STEPS = 1024;
const tables = new Map<Theme, Uint8ClampedArray>();

function table(theme: Theme): Uint8ClampedArray {
  let colours = tables.get(theme);
  if (colours === undefined) {
    colours = new Uint8ClampedArray(4 * (STEPS + 1));
    for (let step = 0; step <= STEPS; step++) {
      const [red, green, blue, alpha] = densityColour(theme, step / STEPS);
      colours.set([red, green, blue, Math.round(255 * alpha)], 4 * step);
    }
    tables.set(theme, colours);
  }
  return colours;
}

/** Log-densities as pixels. */
export function paint(values: Float32Array, top: number, theme: Theme): Uint8ClampedArray<ArrayBuffer> {
  const colours = new Uint32Array(table(theme).buffer);
  const pixels = new Uint32Array(values.length);
  for (let k = 0; k < values.length; k++) {
    pixels[k] = colours[Math.round(STEPS * position(values[k]!, top))]!;
  }
  return new Uint8ClampedArray(pixels.buffer);
}

/** Round numbers along the colour bar: how many times as dense as if all places were alike. */
export function ticks(top: number): { at: number; text: string }[] {
  const topPower = (top + Math.log(4 * Math.PI)) / Math.LN10;
  const depth = DEPTH_NATS / Math.LN10;
  const found: { at: number; text: string }[] = [];
  for (let power = Math.ceil(topPower - depth); power <= Math.floor(topPower + 1e-12); power++) {
    found.push({ at: 1 - (topPower - power) / depth, text: powerOfTen(power) });
  }
  return found;
}

function powerOfTen(power: number): string {
  if (power >= 0 && power <= 4) return (10 ** power).toLocaleString("en-GB");
  if (power < 0 && power >= -3) return (10 ** power).toFixed(-power);
  const raised = String(power).replace(/[-\d]/g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)]!));
  return `10${raised}`;
}
