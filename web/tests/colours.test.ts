import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { COLOURS, densityColour, GROUND, INFERNO, paint, position, ticks } from "../src/colours";

const source = (name: string) => readFileSync(new URL(`../../crates/locdiff-map/src/${name}`, import.meta.url), "utf8");

describe("the program's colours", () => {
  test("inferno is the program's table", () => {
    const rows = [...source("colour_table.rs").matchAll(/^ {4}\[(\d+), (\d+), (\d+)\],$/gm)];
    expect(rows.map((row) => row.slice(1, 4).map(Number))).toEqual(INFERNO.map((row) => [...row]));
  });

  test("both themes take the same part of it, on the same ground", () => {
    const text = source("theme.rs");
    const parts = [...text.matchAll(/colours: \[([\d.]+), ([\d.]+)\]/g)].map((found) => [Number(found[1]), Number(found[2])]);
    expect(parts).toEqual([[...COLOURS.day], [...COLOURS.dark]]);
    const colours = (name: string) => [...text.matchAll(new RegExp(` ${name}: Colour::hex\\(0x([0-9a-f]{6})\\)`, "g"))].map((found) => `#${found[1]}`);
    for (const name of ["sea", "land", "mark", "halo", "text"] as const) {
      expect(colours(name)).toEqual([GROUND.day[name], GROUND.dark[name]]);
    }
  });

  test("the scale is three powers of ten deep, transparent at its end", () => {
    expect(position(2, 2)).toBe(1);
    expect(position(2 - 1.5 * Math.LN10, 2)).toBeCloseTo(0.5, 12);
    expect(position(-Infinity, 2)).toBe(0);
    expect(position(Number.NaN, 2)).toBe(0);
    expect(densityColour("dark", 0)[3]).toBe(0);
    expect(densityColour("dark", 1)).toEqual([252, 255, 164, 0.94]);
  });

  test("pixels are the colours", () => {
    const pixels = paint(new Float32Array([0, -Infinity, -1]), 0, "day");
    const [red, green, blue, alpha] = densityColour("day", 1);
    expect([...pixels.slice(0, 4)]).toEqual([red, green, blue, Math.round(255 * alpha)]);
    expect(pixels[7]).toBe(0);
    expect(pixels[11]).toBeGreaterThan(0);
  });

  test("ticks are round numbers within the bar", () => {
    const found = ticks(Math.log(321 / (4 * Math.PI)));
    expect(found.map(({ text }) => text)).toEqual(["1", "10", "100"]);
    expect(found.every(({ at }) => at >= 0 && at <= 1)).toBe(true);
    expect(ticks(Math.log(5e6 / (4 * Math.PI))).map(({ text }) => text)).toEqual(["10,000", "10⁵", "10⁶"]);
  });
});
