// The page in a real browser, from the first picture to the report. Prints one JSON object last.
//
//   node tests/e2e/run.mjs URL [FOLDER FOR SCREENSHOTS]
//
// URL may be `mock`: then the stand-in of tests/mock_server.mjs answers.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { harmonics, startMock } from "../mock_server.mjs";
import { answered, colourAt, drop, expectErrors, launch, open, seen, settled } from "./browser.mjs";
import { comparedWithServer, comparedWithSums } from "./density.mjs";
import { audit, tally, test } from "./harness.mjs";
import { FOOTPRINT, onTheMap, withFootprints } from "./footprints.mjs";
import { readingTests } from "./reading.mjs";

const [address = "mock", folder = "../target/web-page"] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
const isMock = address === "mock";
// A server that was built before the page shows an older one, or none: then its answers come to the page of web/dist.
const page_of = async (server) => (await fetch(server)).text().catch(() => "");
const stale = !isMock && (await page_of(address)) !== (await readFile(new URL("../../dist/index.html", import.meta.url), "utf8"));
if (stale) console.error(`the page at ${address} is not that of web/dist: its answers are shown on ours`);
const mock = isMock ? await startMock() : stale ? await startMock(address) : null;
const url = mock?.url ?? address;
const example = async (name) => ({ name: `${name}.jpg`, type: "image/jpeg", bytes: await readFile(new URL(`../../../examples/${name}.jpg`, import.meta.url)) });
const madagascar = await example("madagascar");
let [browser, restarts] = [await launch(), 0];
/** The browser; another one if it has ended by itself meanwhile, which the result tells. */
async function running() {
  if (!browser.isConnected()) [browser, restarts] = [await launch(), restarts + 1];
  return browser;
}

const DESKTOP = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844, phone: true };
const skipped = [];
let density = null;

const shot = (page, name) => page.screenshot({ path: join(folder, `page-${name}.png`), timeout: 120_000 });
const current = (page) =>
  page.evaluate(() => {
    const { places, summary, constraints, answer } = window.locdiff.app.current;
    return { places, summary, constraints: constraints.map((c) => c.label), model: answer.model, image: answer.image };
  });
const centre = (page) => page.evaluate(() => window.locdiff.globe.map.getCenter());
const asked = () => seen.requests.filter((request) => request.includes("/v1/")).length;

async function download(page, selector, name) {
  const waiting = page.waitForEvent("download");
  await page.click(selector);
  const path = join(folder, name);
  const got = await waiting;
  await got.saveAs(path);
  return { path, suggested: got.suggestedFilename() };
}

const page = await open(await running(), url, DESKTOP);
// A picture on the map would cover the density, and the map would go to the picture.
await withFootprints(page, []);

await test("the empty page invites, without an error", async () => {
  assert.equal(await page.getAttribute("body", "data-state"), "empty");
  await shot(page, "empty");
  await audit(page, "empty, dark, desktop");
});

await test("a dropped picture is answered, and the right place shows", async () => {
  await page.focus("#theme");
  await drop(page, [madagascar]);
  await answered(page);
  const { places } = await current(page);
  assert.ok(Math.abs(places[0].latitude + 19) < 6 && Math.abs(places[0].longitude - 46.5) < 5, JSON.stringify(places[0]));
  assert.match(await page.textContent(".answer"), /Prediction.*Madagascar/s);
  const live = await page.textContent("#live");
  assert.match(live, /^Prediction: .*(probability|score) \d/);
  await settled(page);
  const { lat, lng } = await centre(page);
  assert.ok(Math.abs(lat - places[0].latitude) < 1 && Math.abs(lng - places[0].longitude) < 1, `the map shows ${lat},${lng}`);
});

await test("the density is drawn where the first candidate is, in the program's colours", async () => {
  await settled(page);
  const [place] = (await current(page)).places;
  const pixel = await colourAt(page, place.latitude, place.longitude);
  // The top of inferno on the dark theme: a light yellow, unless a line runs through the place.
  assert.ok(pixel[0] > 200 && pixel[1] > 190 && pixel[2] < 200, `the pixel is ${pixel}`);
  await shot(page, "desktop");
});

await test("the density on the page is the program's", async () => {
  density = (isMock ? null : await comparedWithServer(page, url)) ?? (await comparedWithSums(page, harmonics));
  assert.ok(density.max_error_nats < 2e-3 && density.correlation > 0.999999, JSON.stringify(density));
});

await test("page and server give the same candidates, radii and areas", async () => {
  const { ours, theirs } = await page.evaluate(async () => {
    const { engine, app } = window.locdiff;
    return { ours: await engine.summary(app.current.whole, 5), theirs: app.current.answer };
  });
  const close = (a, b, part) => assert.ok(Math.abs(a - b) <= part * Math.abs(b), `${a} here, ${b} there`);
  ours.candidates.slice(0, 3).forEach((candidate, k) => {
    assert.ok(Math.abs(candidate.mass - theirs.candidates[k].mass) < 1e-3);
    assert.ok(Math.abs(candidate.latitude - theirs.candidates[k].latitude) < 1e-2);
  });
  for (const key of ["radius_50_km", "radius_90_km", "area_50_km2", "area_90_km2"]) close(ours[key], theirs[key], 0.01);
});

await test("candidates are clickable", async () => {
  const { places } = await current(page);
  await page.click(".candidate[data-index='1']");
  assert.equal(await page.getAttribute(".candidate[data-index='1']", "aria-current"), "true");
  await page.waitForFunction(([latitude, longitude]) => {
    const { lat, lng } = window.locdiff.globe.map.getCenter();
    return Math.abs(lat - latitude) < 0.5 && Math.abs(lng - longitude) < 0.5;
  }, [places[1].latitude, places[1].longitude]);
  await page.click(".candidate[data-index='0']");
  await settled(page);
});

await test("a circle constrains and renormalises, without the server", async () => {
  const before = await current(page);
  const requests = asked();
  const { latitude, longitude } = before.places[1];
  await page.fill("#within", `${latitude.toFixed(2)},${longitude.toFixed(2)},900km`);
  await page.press("#within", "Enter");
  await page.waitForSelector("#kept");
  const after = await current(page);
  const sum = after.places.reduce((total, place) => total + place.mass, 0);
  assert.ok(Math.abs(sum - 1) < 0.01, `masses sum to ${sum}`);
  assert.ok(Math.abs(after.places[0].latitude - latitude) < 9, JSON.stringify(after.places[0]));
  assert.ok(after.summary.share < 0.6 && after.summary.share > 0, String(after.summary.share));
  assert.ok(after.summary.radius_90_km <= 1900);
  await settled(page);
  assert.equal(asked(), requests, "the server was asked again");
  await shot(page, "constrained");
  await page.click(".chip");
  await page.waitForSelector("#kept", { state: "detached" });
  assert.deepEqual((await current(page)).places, before.places);
});

await test("a country constrains; nonsense is explained", async () => {
  await page.fill("#within", "Atlantis");
  await page.press("#within", "Enter");
  assert.match(await page.textContent("#within-problem"), /no country “Atlantis”/);
  await page.fill("#within", "Madagascar");
  await page.press("#within", "Enter");
  await page.waitForSelector("#kept");
  // What is typed meanwhile stays when a coarse answer is refined.
  await page.fill("#within", "Madag");
  await page.waitForFunction(() => window.locdiff.app.current.final);
  assert.deepEqual([await page.locator("#refining").count(), await page.inputValue("#within")], [0, "Madag"]);
  const { places, constraints } = await current(page);
  assert.deepEqual(constraints, ["Madagascar"]);
  assert.ok(places.every(({ latitude, longitude }) => latitude < -11 && latitude > -26 && longitude > 42 && longitude < 51));
  await page.click(".chip");
  await page.waitForSelector("#kept", { state: "detached" });
});

await test("a region is drawn by clicks", async () => {
  await settled(page);
  await page.click("#draw");
  const box = await page.locator("#globe canvas").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  for (const [right, down] of [[-90, -80], [95, -70], [85, 100], [-80, 90]]) {
    await page.mouse.click(x + right, y + down, { delay: 20 });
  }
  await page.waitForFunction(() => document.querySelector("#sketch-bar p")?.textContent.startsWith("4 corners"));
  await page.click("#sketch-bar .primary");
  await page.waitForSelector("#kept");
  const { constraints, summary } = await current(page);
  assert.match(constraints[0], /drawn region 1 \(4 corners\)/);
  assert.ok(summary.share > 0 && summary.share < 1);
  await page.click(".chip");
  await page.waitForSelector("#kept", { state: "detached" });
});

await test("a model with a diffusion shows its denoising, which plays, pauses and goes back", async () => {
  const { models } = await (await fetch(new URL("v1/models", url))).json();
  const example = models.find(({ frames }) => frames);
  if (example === undefined) {
    skipped.push("denoising: the server offers no model with a diffusion");
    return;
  }
  const other = await open(await running(), url, DESKTOP);
  await other.click("#settings summary");
  await other.selectOption("#model", example.name);
  await drop(other, [madagascar]);
  await answered(other);
  await other.click("#play");
  await other.waitForSelector("#frame");
  await other.waitForFunction(() => Number(document.querySelector("#frame").value) >= 4);
  await other.click("#play");
  const at = Number(await other.inputValue("#frame"));
  assert.match(await other.textContent("#frame-label"), /^step \d+ of \d+$/);
  await settled(other);
  await shot(other, "denoising");
  await other.focus("#frame");
  await other.keyboard.press("ArrowLeft");
  assert.equal(Number(await other.inputValue("#frame")), at - 1);
  await other.keyboard.press("Home");
  assert.match(await other.textContent("#frame-label"), /^step 0 of/);
  await settled(other);
  await shot(other, "noise");
  await other.close();
});

await test("GeoJSON and PNG are saved", async () => {
  const geojson = await download(page, "#save-geojson", "saved.geojson");
  assert.equal(geojson.suggested, "madagascar-prediction.geojson");
  const { features } = JSON.parse(await readFile(geojson.path, "utf8"));
  assert.ok(features.some(({ properties }) => properties.kind === "region" && properties.level === 0.5));
  assert.ok(features.some(({ properties }) => properties.kind === "candidate" && properties.rank === 1));
  assert.ok(features.every(({ properties }) => properties.prediction === true));
  const png = await readFile((await download(page, "#save-png", "saved.png")).path);
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  assert.ok(png.readUInt32BE(16) >= 900 && png.length > 50_000, `${png.readUInt32BE(16)} pixels wide, ${png.length} bytes`);
});

await test("the report is saved, complete, and asks nobody", async () => {
  const { path } = await download(page, "#save-report", "saved-report.html");
  const text = await readFile(path, "utf8");
  const { model } = await current(page);
  assert.ok(text.includes(createHash("sha256").update(madagascar.bytes).digest("hex")));
  for (const part of [model.name, model.version, "Prediction, not a fact", "Limits"]) assert.ok(text.includes(part), part);
  const context = await (await running()).newContext({ viewport: { width: 900, height: 1200 } });
  const report = await context.newPage();
  const requests = [];
  const errors = [];
  report.on("request", (request) => requests.push(request.url().slice(0, 80)));
  report.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await report.goto(pathToFileURL(path).href);
  const sizes = await report.evaluate(() => [...document.images].map((image) => image.naturalWidth));
  assert.ok(sizes.length === 2 && sizes.every((width) => width > 100), String(sizes));
  assert.deepEqual(requests.filter((request) => !request.startsWith("file:") && !request.startsWith("data:")), []);
  assert.deepEqual(errors, []);
  await shot(report, "report");
  await context.close();
});

await test("several pictures make a contact sheet", async () => {
  await page.click("[data-example=sinai]");
  await page.waitForFunction(() => window.locdiff.app.visits.length === 2 && window.locdiff.app.current.state === "answered");
  const { places } = await current(page);
  assert.ok(places[0].mass > 0 && places[0].mass <= 1);
  assert.equal(await page.locator("#contact-sheet .frame").count(), 2);
  await settled(page);
  await shot(page, "two-pictures");
  await page.click("#contact-sheet .frame:first-child");
  assert.match(await page.textContent("#answer-title"), new RegExp((await current(page)).places[0].name.slice(0, 8)));
});

await test("no serious finding on the answer, dark and light, desktop", async () => {
  await audit(page, "answer, dark, desktop");
  await page.focus("#theme");
  await page.keyboard.press("Enter");
  assert.equal(await page.getAttribute("html", "data-theme"), "day");
  await settled(page);
  await audit(page, "answer, light, desktop");
  await shot(page, "desktop-light");
});

await test("a file that is no picture is refused with words", async () => {
  expectErrors("415");
  expectErrors("status of 4");
  await drop(page, [{ name: "notes.txt", type: "text/plain", bytes: Buffer.from("no picture at all") }]);
  await page.waitForSelector(".problem");
  const text = await page.textContent(".problem");
  assert.ok(text.length > 60 && /Choose another file/.test(text), text);
  assert.match(await page.textContent("#live"), /^No answer/);
  await audit(page, "error, light, desktop");
  await shot(page, "error");
});

await test("the keyboard reaches the answer first, and shows where it is", async () => {
  const keys = await open(await running(), url, { ...DESKTOP, reducedMotion: "reduce" });
  await keys.keyboard.press("Tab");
  assert.equal(await keys.evaluate(() => document.activeElement.className), "skip");
  const outline = await keys.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, "none");
  await keys.keyboard.press("Enter");
  assert.equal(await keys.evaluate(() => document.activeElement.id), "evidence");
  // Nothing turns by itself for those who asked for no motion.
  const before = await centre(keys);
  await keys.evaluate(() => new Promise((resolve) => setTimeout(resolve, 1500)));
  assert.deepEqual(await centre(keys), before);
  await keys.context().close();
});

await test("an uncalibrated model gives scores, never probabilities", async () => {
  const models = await (await fetch(new URL("/v1/models", url))).json();
  const scores = models.models.find(({ calibrated }) => !calibrated);
  if (!scores) {
    skipped.push("scores: the server has no uncalibrated model");
    return;
  }
  const other = await open(await running(), url, DESKTOP);
  await other.click("#settings summary");
  await other.selectOption("#model", scores.name);
  await drop(other, [madagascar]);
  await answered(other);
  const column = await other.textContent("#column");
  assert.match(column, /score/);
  assert.doesNotMatch(column.replace("Candidates", "").replace("not calibrated probabilities", ""), /probabilit/);
  await other.context().close();
});

await test("a picture with a footprint lies on the map, more or less transparent", async () => {
  const other = await open(await running(), url, DESKTOP);
  await withFootprints(other, [FOOTPRINT]);
  await drop(other, [madagascar]);
  await answered(other);
  await settled(other);
  const { lat, lng } = await centre(other);
  assert.ok(Math.abs(lat - FOOTPRINT.middle.latitude) < 0.5 && Math.abs(lng - FOOTPRINT.middle.longitude) < 0.5, `the map shows ${lat},${lng}`);
  assert.deepEqual(await onTheMap(other), { picture: true, opacity: 0.85, lines: 1 });
  assert.match((await other.textContent(".ground")).replaceAll("\u00a0", " "), /Picture on the map.*1,550 km wide; the top of the picture points to 72° \(E\)/s);
  await shot(other, "footprint");
  await audit(other, "footprint, dark, desktop");
  // By the keyboard, to all and to none of it. The sea in the picture is blue, that of the map is darker.
  await other.focus("#opacity");
  await other.keyboard.press("End");
  assert.equal((await onTheMap(other)).opacity, 1);
  const sea = { latitude: -24.4, longitude: 52.5 };
  await settled(other);
  const covered = await colourAt(other, sea.latitude, sea.longitude);
  assert.ok(covered[2] > 70 && covered[2] > covered[0] + 30, `the sea of the picture is ${covered}`);
  await other.keyboard.press("Home");
  assert.deepEqual([(await onTheMap(other)).opacity, await other.getAttribute("#opacity", "aria-valuetext")], [0, "0\u00a0%"]);
  await settled(other);
  const bare = await colourAt(other, sea.latitude, sea.longitude);
  assert.ok(bare[2] < covered[2], `the sea of the map is ${bare}, under the picture ${covered}`);
  for (let k = 0; k < 14; k++) await other.keyboard.press("ArrowRight");
  assert.equal((await onTheMap(other)).opacity, 0.7);
  // The other theme keeps both.
  await other.click("#theme");
  assert.deepEqual([await other.inputValue("#opacity"), (await onTheMap(other)).opacity], ["70", 0.7]);
  await settled(other);
  await shot(other, "footprint-light");
  await audit(other, "footprint, light, desktop");
  const geojson = await download(other, "#save-geojson", "saved-footprint.geojson");
  const { features } = JSON.parse(await readFile(geojson.path, "utf8"));
  const feature = features.find(({ properties }) => properties.kind === "footprint");
  assert.equal(feature.geometry.type, "Polygon");
  assert.equal(feature.properties.width_km, FOOTPRINT.width_km);
  await other.context().close();
});

await test("the picture leaves the map with a constraint elsewhere, and with another picture", async () => {
  const other = await open(await running(), url, DESKTOP);
  await withFootprints(other, [FOOTPRINT]);
  await drop(other, [madagascar]);
  await answered(other);
  await other.fill("#within", "0,40,60,120");
  await other.press("#within", "Enter");
  await other.waitForSelector("#kept");
  assert.deepEqual(await onTheMap(other), { picture: false, opacity: null, lines: 0 });
  assert.equal(await other.locator("#opacity").count(), 0);
  await other.click(".chip");
  await other.waitForSelector("#kept", { state: "detached" });
  assert.equal((await onTheMap(other)).picture, true);
  await other.fill("#within", "Madagascar");
  await other.press("#within", "Enter");
  await other.waitForSelector("#kept");
  assert.equal((await onTheMap(other)).picture, true);
  await other.click("[data-example=sinai]");
  await other.waitForFunction(() => window.locdiff.app.visits.length === 2 && window.locdiff.app.current.state === "answered");
  assert.deepEqual(await onTheMap(other), { picture: false, opacity: null, lines: 0 });
  assert.equal(await other.locator("#opacity").count(), 0);
  await other.click("#contact-sheet .frame:first-child");
  assert.equal((await onTheMap(other)).picture, true);
  await other.context().close();
});

await test("a footprint over the antimeridian, and one over a pole", async () => {
  const other = await open(await running(), url, DESKTOP);
  const over = (corners, middle) => ({ ...FOOTPRINT, corners: corners.map(([latitude, longitude]) => ({ latitude, longitude })), middle });
  const antimeridian = over([[-12, 175], [-12, -173], [-23, -172], [-23, 174]], { latitude: -17.6, longitude: -179 });
  const pole = over([[82, -45], [82, 45], [82, 135], [82, -135]], { latitude: 90, longitude: 0 });
  await withFootprints(other, [antimeridian, pole]);
  for (const [name, [longitude, latitude]] of [["antimeridian", [-179, -17.6]], ["pole", [0, 84.5]]]) {
    await drop(other, [madagascar]);
    await answered(other);
    await other.evaluate((center) => window.locdiff.globe.map.jumpTo({ center, zoom: 2.6 }), [longitude, Math.min(80, latitude)]);
    await settled(other);
    assert.equal((await onTheMap(other)).picture, true);
    await shot(other, `footprint-${name}`);
    // Not the map's own dark sea.
    const sides = name === "pole" ? [[83, 40], [83, -40]] : [[-15, 179], [-15, -179]];
    for (const [latitude, longitude] of sides) {
      const colour = await colourAt(other, latitude, longitude);
      assert.ok(colour[2] > 60, `${name}: at ${latitude},${longitude} it is ${colour}`);
    }
  }
  await other.context().close();
});

for (const colorScheme of ["dark", "light"]) {
  await test(`the telephone, ${colorScheme}`, async () => {
    const phone = await open(await running(), url, { ...PHONE, colorScheme });
    assert.equal(await phone.getAttribute("html", "data-theme"), colorScheme === "dark" ? "dark" : "day");
    if (colorScheme === "dark") await shot(phone, "phone-empty");
    await drop(phone, [madagascar]);
    await answered(phone);
    await settled(phone);
    const wide = await phone.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
    assert.equal(wide, false, "the page is wider than the screen");
    await audit(phone, `answer, ${colorScheme}, phone`);
    await shot(phone, colorScheme === "dark" ? "phone" : "phone-light");
    await phone.context().close();
  });
}

await readingTests({ running, url, folder, madagascar });

await test("nothing left the origin, nothing broke the policy, no error was written", () => {
  assert.deepEqual(seen.external, []);
  assert.deepEqual(seen.violations, []);
  assert.deepEqual(seen.errors, []);
});

await browser.close();
mock?.close();
console.log(
  JSON.stringify({
    server: isMock ? "mock" : stale ? "locdiff, page from web/dist" : "locdiff",
    tests: tally.tests,
    failed: tally.failed,
    skipped,
    external_requests: seen.external.length,
    console_errors: seen.errors.length,
    csp_violations: seen.violations.length,
    axe_serious: tally.axe_serious,
    browser_restarts: restarts,
    density_reference: density?.reference ?? null,
    density_points: density?.points ?? 0,
    density_correlation: density?.correlation ?? null,
    density_max_error_nats: density?.max_error_nats ?? null,
  }),
);
process.exit(tally.failed === 0 ? 0 : 1);
