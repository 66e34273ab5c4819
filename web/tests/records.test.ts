import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { DensityRecord } from "../src/api";

type FieldsOf = { [Kind in DensityRecord["kind"]]: Record<Exclude<keyof Extract<DensityRecord, { kind: Kind }>, "kind">, string> };

/** Every field of every kind: the compiler rejects a list that isn't `DensityRecord`'s. */
const FIELDS: FieldsOf = {
  exponential: { max_degree: "number", coefficients: "numbers" },
  linear: { max_degree: "number", coefficients: "numbers" },
  points: { kernel_km: "number", latitudes: "numbers", longitudes: "numbers", masses: "numbers" },
  cells: { cells: "strings", masses: "numbers" },
  mixture: { parts: "objects" },
  product: { factors: "objects" },
};

const typeOf = (value: unknown): string => (Array.isArray(value) ? `${typeof value[0]}s` : typeof value);

test("the page's type of a density is what the document describes", () => {
  const page = readFileSync(new URL("../../docs/density-record.md", import.meta.url), "utf8");
  const examples = [...page.matchAll(/```json\n(.*?)```/gs)].map((match) => JSON.parse(match[1]!) as DensityRecord);
  expect(examples.map(({ kind }) => kind)).toEqual(Object.keys(FIELDS));
  for (const { kind, ...fields } of examples) {
    expect(Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, typeOf(value)]))).toEqual(FIELDS[kind]);
  }
});
