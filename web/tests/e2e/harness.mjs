// Tests in a browser, one after the other: counted, timed, and audited for accessibility.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** `held`: by name, whether a test passed. */
export const tally = { tests: 0, failed: 0, axe_serious: 0, held: {} };

/** With ONLY in the environment, those whose names match it. */
export async function test(name, run) {
  if (!new RegExp(process.env.ONLY ?? "").test(name)) return;
  tally.tests++;
  const began = Date.now();
  const line = (word) => `${word.padEnd(7)} ${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${name}`;
  try {
    await run();
    tally.held[name] = true;
    console.error(line("ok"));
  } catch (error) {
    tally.failed++;
    tally.held[name] = false;
    console.error(`${line("FAILED")}\n${error.stack ?? error}`);
  }
}

export async function audit(page, where, impacts = ["serious", "critical"]) {
  await page.evaluate(axe);
  // MapLibre's own canvas is a picture; everything around it is ours.
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impacts.includes(impact));
  tally.axe_serious += bad.length;
  const words = bad.map(({ id, impact, nodes }) => `${where}: ${impact} ${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join(" | ")}`);
  assert.deepEqual(words, []);
}
