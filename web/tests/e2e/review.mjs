// The review page in a real browser: by keyboard, by pointer and on a telephone; and how long each interaction takes until it is
// painted. Prints one JSON object last.
//
//   node tests/e2e/review.mjs [PICTURES] [FOLDER FOR SCREENSHOTS]   a made-up library
//   node tests/e2e/review.mjs URL                                   times only, of a running `locdiff review`

import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { startArchive } from "../mock_archive.mjs";
import { expectErrors, launch, open, seen } from "./browser.mjs";
import { audit, tally, test } from "./harness.mjs";

const [given = "5000", folder = "../target/web-review"] = process.argv.slice(2);
const running = given.startsWith("http:");
// Tests look into the made-up library.
if (running) process.env.ONLY = "painted|nothing left";
await mkdir(folder, { recursive: true });
const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844, phone: true };
const ALL = ["minor", "moderate", "serious", "critical"];
/** Interactions of each kind. */
const N = 40;
const GOAL_MS = 100;

const library = running ? { url: given, close: () => undefined } : await startArchive(Number(given));
const browser = await launch();
const page = await open(browser, library.url, DESKTOP);
const pictures = await page.evaluate(() => window.locdiff.review.view.times.length);
const shot = (of, name) => of.screenshot({ path: join(folder, `review-${name}.png`), timeout: 120_000 });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const settled = async (of) => {
  await pause(200);
  await of.waitForFunction(() => {
    const { map } = window.locdiff.globe;
    return !document.body.classList.contains("unsettled") && map.loaded() && !map.isMoving() && map.areTilesLoaded() && [...document.images].every((image) => image.complete);
  });
  await of.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
};
const state = () =>
  page.evaluate(() => {
    const { review } = window.locdiff;
    const { view, current, waiting } = review;
    return { shown: view.shown.length, selected: view.selected.size, position: view.position(view.current), filter: view.filter, sort: view.sort, current: current && { id: current.id, name: current.name, decision: current.decision, pin: current.pin }, waiting };
  });
/** As the server has it, once everything is sent. */
const stored = async (id) => {
  await page.waitForFunction(() => window.locdiff.review.waiting === 0);
  const { decision, pin } = library.archive.pictures.find((picture) => picture.id === id);
  return { decision, pin };
};
const press = (key) => page.keyboard.press(key);
const filterBy = (name) => page.click(`#filters label:has([value=${name}])`);

await test("the list begins with the most confident estimate, and says whose it is", async () => {
  const located = library.archive.pictures.filter(({ place }) => place !== null);
  const { shown, filter, current } = await state();
  assert.deepEqual([filter, shown], ["undecided", located.length]);
  assert.equal(current.name, located.toSorted((a, b) => b.confidence - a.confidence)[0].name);
  const text = await page.textContent("#column");
  for (const words of ["Estimate of earth-view", "probability", "68\u00a0% within", "90\u00a0% within", "What moved this estimate"]) assert.ok(text.includes(words), words);
  assert.ok((await page.locator(".row-item").count()) < 40, "all rows exist");
  await settled(page);
  await shot(page, "desktop-dark");
});

await test("accept, reject, undo and clear by keys; the server has it at once", async () => {
  const first = (await state()).current.id;
  await press("a");
  const second = await state();
  assert.deepEqual([await stored(first), second.position], [{ decision: "accepted", pin: null }, 0]);
  await press("r");
  assert.equal((await stored(second.current.id)).decision, "rejected");
  await press("u");
  assert.deepEqual([(await stored(second.current.id)).decision, (await state()).current.id], [null, second.current.id]);
  await press("u");
  assert.deepEqual([(await stored(first)).decision, (await state()).current.id], [null, first]);
  await press("u");
  assert.match(await page.textContent("#live"), /Nothing to undo/);
  await press("a");
  await filterBy("accepted");
  await press("c");
  assert.deepEqual([(await stored(first)).decision, (await state()).current.id], [null, first]);
  await filterBy("undecided");
});

await test("a candidate by its number, the pin by keys and by dragging", async () => {
  await page.focus("#list");
  await press("Home");
  const { current } = await state();
  await settled(page);
  await press("2");
  const candidate = library.archive.pictures.find(({ id }) => id === current.id).candidates[1];
  assert.deepEqual(await stored(current.id), { decision: "moved", pin: [candidate.latitude, candidate.longitude] });
  assert.equal(await page.getAttribute("#candidate-1", "aria-current"), "true");
  await settled(page);
  await press("m");
  for (const key of ["ArrowLeft", "ArrowLeft", "Shift+ArrowUp"]) await press(key);
  assert.deepEqual((await stored(current.id)).pin, [candidate.latitude, candidate.longitude], "stored too early");
  await press("Escape");
  assert.deepEqual((await state()).current.pin, [candidate.latitude, candidate.longitude]);
  await press("m");
  await press("Shift+ArrowRight");
  await press("Enter");
  const moved = (await stored(current.id)).pin;
  const east = (of, from) => ((of - from + 540) % 360) - 180;
  assert.ok(east(moved[1], candidate.longitude) > 0 && Math.abs(moved[0] - candidate.latitude) < 2, String(moved));
  await settled(page);
  const { x, y, width } = await page.locator(".pin.hand").boundingBox();
  await page.mouse.move(x + width / 2, y + 12);
  await page.mouse.down();
  await page.mouse.move(x + width / 2 - 90, y + 30, { steps: 4 });
  await page.mouse.up();
  assert.ok(east((await stored(current.id)).pin[1], moved[1]) < -0.05, "the pin was not dragged west");
  await settled(page);
  await shot(page, "moved");
  for (let k = 0; k < 3; k++) await press("u");
  assert.deepEqual(await stored(current.id), { decision: null, pin: null });
});

await test("selection and bulk decisions", async () => {
  await page.focus("#list");
  await press("Home");
  const before = (await state()).shown;
  await press("x");
  for (let k = 0; k < 4; k++) await press("Shift+ArrowDown");
  await page.locator(".row-item[aria-posinset='8']").click({ modifiers: ["Shift"] });
  assert.equal((await state()).selected, 8);
  await shot(page, "selected");
  await press("a");
  assert.equal((await state()).shown, before - 8 + 1, "the current one stays until another is looked at");
  await press("j");
  assert.equal((await state()).shown, before - 8);
  await press("u");
  assert.equal((await state()).shown, before);
  await press("A");
  assert.equal((await state()).selected, before);
  await press("Escape");
  assert.equal((await state()).selected, 0);
});

await test("a failed request is shown, and repeated until it is stored", async () => {
  expectErrors("/v1/archive/decisions");
  await page.waitForFunction(() => window.locdiff.review.waiting === 0);
  await page.route("**/v1/archive/decisions", (route) => route.abort());
  const { current } = await state();
  await press("a");
  await page.waitForSelector("#outbox:not([hidden])");
  assert.match(await page.textContent("#outbox"), /1 decision not stored yet: The connection to locdiff review failed/);
  await audit(page, "outbox", ALL);
  await shot(page, "failed");
  await page.unroute("**/v1/archive/decisions");
  await page.waitForSelector("#outbox", { state: "hidden" });
  assert.equal((await stored(current.id)).decision, "accepted");
  await press("u");
  await stored(current.id);
});

await test("filters, order and time", async () => {
  const count = (is) => library.archive.pictures.filter(is).length;
  for (const [name, is] of [["gps", ({ gps }) => gps !== null], ["graphics", ({ kind }) => kind === "graphic"], ["errors", ({ error }) => error !== null], ["all", () => true]]) {
    await filterBy(name);
    assert.equal((await state()).shown, count(is), name);
  }
  await page.selectOption("#sort", "time");
  const times = await page.evaluate(() => window.locdiff.review.view.shown.map((index) => window.locdiff.review.view.times[index]).filter((time) => !Number.isNaN(time)));
  assert.deepEqual(times, times.toSorted((a, b) => a - b));
  const { x, y, width } = await page.locator(".plot").boundingBox();
  await page.mouse.move(x + 0.3 * width, y + 20);
  await page.mouse.down();
  await page.mouse.move(x + 0.5 * width, y + 25, { steps: 5 });
  await page.mouse.up();
  const brushed = (await state()).shown;
  assert.ok(brushed > 0 && brushed < 0.5 * pictures, String(brushed));
  await settled(page);
  await shot(page, "brushed");
  // By keys: the handles are sliders.
  await page.locator(".handle").nth(1).press("PageDown");
  assert.ok((await state()).shown < brushed);
  await page.getByRole("button", { name: "Zoom to range" }).click();
  await page.getByRole("button", { name: "All times" }).click();
  assert.equal((await state()).shown, pictures);
  await page.selectOption("#sort", "confident");
  await filterBy("undecided");
});

await test("everything is reached by Tab, and the keys are listed", async () => {
  await page.focus("#help");
  const reached = [];
  for (let k = 0; k < 30; k++) {
    await press("Tab");
    reached.push(await page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.name || document.activeElement.tagName));
  }
  for (const part of ["theme", "sort", "list", "maplibregl-canvas", "pin", "handle", "candidate", "primary"]) assert.ok(reached.some((name) => name.includes(part)), `${part} is not among ${reached.join(", ")}`);
  await page.focus("#list");
  await press("?");
  assert.equal(await page.locator("#keys").evaluate((dialog) => dialog.open), true);
  await audit(page, "keys", ALL);
  await shot(page, "keys");
  await press("Escape");
  assert.equal(await page.locator("#keys").evaluate((dialog) => dialog.open), false);
  await audit(page, "desktop, dark", ALL);
  await page.click("#theme");
  await settled(page);
  await shot(page, "desktop-light");
  await audit(page, "desktop, light", ALL);
  await page.click("#theme");
});

for (const colorScheme of ["dark", "light"]) {
  await test(`the telephone, ${colorScheme}`, async () => {
    const phone = await open(browser, library.url, { ...PHONE, colorScheme });
    await pause(600);
    await shot(phone, `phone-list-${colorScheme}`);
    await audit(phone, `phone list, ${colorScheme}`, ALL);
    await phone.locator(".row-item[aria-posinset='3'] .what").tap();
    await settled(phone);
    await shot(phone, `phone-picture-${colorScheme}`);
    await audit(phone, `phone picture, ${colorScheme}`, ALL);
    assert.equal(await phone.evaluate(() => document.documentElement.scrollWidth > innerWidth), false, "wider than the screen");
    await phone.locator("#decide .primary").tap();
    assert.equal(await phone.evaluate(() => window.locdiff.review.view.position(window.locdiff.review.view.current)), 2);
    await phone.getByRole("button", { name: "Undo" }).tap();
    await phone.waitForFunction(() => window.locdiff.review.waiting === 0);
    await phone.context().close();
  });
}

await test("scores are called scores", async () => {
  const scores = await startArchive(60, { calibrated: false });
  const other = await open(browser, scores.url, DESKTOP);
  const text = await other.textContent("#column");
  assert.ok(text.includes("score") && text.includes("not calibrated") && !text.includes("probability"));
  await other.context().close();
  scores.close();
});

// How long an interaction takes: from the time stamp of the input event to a task after the next frame.
await page.evaluate(() => {
  const channel = new MessageChannel();
  let [began, resolve] = [0, null];
  channel.port1.onmessage = () => resolve?.(performance.now() - began);
  window.measured = (kind) =>
    new Promise((done) => {
      resolve = done;
      const start = (event) => {
        began = event.timeStamp;
        requestAnimationFrame(() => channel.port2.postMessage(null));
      };
      addEventListener(kind, start, { capture: true, once: true });
    });
  // The browser's own measurement, up to the presentation; of events that took 16 ms or more, in steps of 8.
  window.presented = [];
  new PerformanceObserver((list) => window.presented.push(...list.getEntries().map(({ name, duration }) => ({ name, duration })))).observe({ type: "event", durationThreshold: 16 });
});

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
const rounded = (value) => Number(value.toFixed(1));
const summary = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  return { n: sorted.length, median_ms: rounded(quantile(sorted, 0.5)), p95_ms: rounded(quantile(sorted, 0.95)), max_ms: rounded(sorted.at(-1)) };
};
const interactions = {};
let turn = 0;
/** Some before the map is drawn, some while it is, some after. */
const breath = () => pause([40, 180, 300, 450, 700, 1500][turn++ % 6]);

async function measure(name, kind, act, { n = N, before = async () => undefined } = {}) {
  const values = [];
  await page.evaluate(() => (window.presented.length = 0));
  for (let k = 0; k < n; k++) {
    await before(k);
    await breath();
    await page.evaluate((event) => void (window.waiting = window.measured(event)), kind);
    await act(k);
    values.push(await page.evaluate(() => window.waiting));
  }
  await pause(100);
  const presented = await page.evaluate((event) => window.presented.filter((entry) => entry.name === event).map((entry) => entry.duration), kind);
  // Those that took less are not told: 16 at most.
  const padded = [...presented, ...new Array(Math.max(0, n - presented.length)).fill(16)];
  interactions[name] = { ...summary(values), presented_p95_ms: kind === "pointermove" ? null : summary(padded).p95_ms };
  console.error(name, JSON.stringify(interactions[name]));
}

const load = loadavg()[0];
await page.focus("#list");
await press("Home");
await measure("select", "click", (k) => page.locator(".row-item:not([hidden])").nth(5 + (k % 4)).click());
await measure("next", "keydown", () => press("j"));
await measure("page", "keydown", (k) => press(k % 4 === 3 ? "Home" : "PageDown"), { before: () => page.focus("#list") });
await measure("accept", "keydown", () => press("a"));
await measure("reject", "keydown", () => press("r"));
await measure("undo", "keydown", () => press("u"));
await measure("candidate", "keydown", (k) => press(String(1 + (k % 3))), { before: () => press("j") });
await measure("move the pin by keys", "keydown", (k) => press(["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"][Math.floor(k / 5) % 4]), { before: async (k) => k % 10 === 0 && (await press("j"), await press("m")) });
await press("Escape");
await page.focus("#list");
const select500 = async () => {
  await press("Escape");
  await press("Home");
  await press("x");
  await page.evaluate(() => window.locdiff.review.view.extend(window.locdiff.review.view.shown[499]));
};
const undecided = () => page.evaluate(() => window.locdiff.review.view.count("undecided"));
const before500 = await undecided();
await measure("accept 500", "keydown", () => press("a"), { n: 20, before: async (k) => (k > 0 && (await press("u")), await select500()) });
assert.equal(await undecided(), before500 - 500);
await measure("undo 500", "keydown", () => press("u"), { n: 20, before: async (k) => k > 0 && (await select500(), await press("a")) });
assert.equal(await undecided(), before500);
await measure("select all", "keydown", () => press("A"));
await press("Escape");
const names = ["all", "accepted", "undecided", "gps", "rejected"];
await measure("filter", "click", (k) => filterBy(names[k % names.length]));
await filterBy("all");
await page.focus("#list");
await measure("sort", "keydown", () => press("s"));
const plot = await page.locator(".plot").boundingBox();
const at = (k) => [plot.x + (0.2 + (0.6 * (k % 20)) / 20) * plot.width, plot.y + 20];
await page.mouse.move(plot.x + 0.1 * plot.width, plot.y + 20);
await page.mouse.down();
await measure("brush the timeline", "pointermove", (k) => page.mouse.move(...at(k + 1)));
await page.mouse.up();
await page.getByRole("button", { name: "All times" }).click();

/** The map alone, from the change until it is drawn: one point's state against all points anew. */
const drawn = (change) =>
  page.evaluate(async (kind) => {
    const { map } = window.locdiff.globe;
    const source = map.getSource("pictures");
    const data = source.serialize().data;
    const values = [];
    for (let k = 0; k < 15; k++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      const began = performance.now();
      const idle = new Promise((resolve) => map.once("idle", resolve));
      if (kind === "state") map.setFeatureState({ source: "pictures", id: data.features[k].id }, { status: k % 2 === 0 ? "accepted" : "rejected" });
      else source.setData(data);
      await idle;
      values.push(performance.now() - began);
    }
    return values;
  }, change);
await settled(page);
const map = { one_state: summary(await drawn("state")), all_points: summary(await drawn("data")) };

await test("every interaction is painted within the goal", () => {
  for (const [name, { p95_ms }] of Object.entries(interactions)) assert.ok(p95_ms < GOAL_MS, `${name}: ${p95_ms} ms`);
});

await test("nothing left the origin, nothing broke the policy, no error was written", () => {
  assert.deepEqual([seen.external, seen.violations, seen.errors], [[], [], []]);
});

await browser.close();
library.close();
console.log(JSON.stringify({ pictures: pictures, ...tally, external_requests: seen.external.length, console_errors: seen.errors.length, csp_violations: seen.violations.length, load_average: load, goal_ms: GOAL_MS, interactions, map }));
process.exit(tally.failed === 0 ? 0 : 1);
