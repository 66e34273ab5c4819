// What new users read: before the first picture, in answers near and far, and where there is no answer. Part of run.mjs, and by itself
//
//   node tests/e2e/reading.mjs [URL] [FOLDER FOR SCREENSHOTS]
//
// Models and answers are set here, whatever the server returns, except in ownAnswers.

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startMock } from "../mock_server.mjs";
import { answered, drop, expectErrors, launch, open, PATIENCE_MS, seen, settled } from "./browser.mjs";
import { audit, tally, test } from "./harness.mjs";

// Without motion: what is read doesn't turn away, and a slow machine needn't draw the flights.
const DESKTOP = { width: 1440, height: 900, reducedMotion: "reduce" };
const PHONE = { width: 390, height: 844, phone: true, reducedMotion: "reduce" };
const REMEDY = "For photographs from the ground this server needs a model: `locdiff model fetch plonk-yfcc` or `locdiff model fetch geoclip`, then start it again";
const REJECTED = { type: "/docs#problem-no-answer", title: "Unprocessable Content", status: 422, detail: `no suitable model: for earth-view, it is all of one color. ${REMEDY}` };
const DAHAB = { latitude: 28.5, longitude: 34.51, mass: 0.96, radius_km: 3, town: "Dahab", district: "South Sinai", country: "Egypt", country_code: "EG" };

/** 50 % within 3 km. */
const SMALL = {
  candidates: [DAHAB],
  radius_50_km: 2.9,
  radius_90_km: 5.4,
  area_50_km2: 27,
  area_90_km2: 90,
  kernel_km: 2.5,
  density: { kind: "points", kernel_km: 2.5, latitudes: [28.5], longitudes: [34.51], masses: [1] },
};
/** The same, with 0.5 % in Madrid. */
const SOME_IN_SPAIN = { ...SMALL, density: { kind: "points", kernel_km: 2.5, latitudes: [28.5, 40.42], longitudes: [34.51, -3.7], masses: [0.995, 0.005] } };
const AT_SEA = { ...DAHAB, town: null, district: null, country: null, country_code: null, name: "at sea, 40 km off Egypt" };

/** The server has these models. */
const withModels = (page, names) =>
  page.route("**/v1/models", async (route) => {
    const response = await route.fetch();
    const { models } = await response.json();
    const named = { "earth-view": "search and registration for views of the Earth from above, about 150 to 5000 km wide", "plonk-yfcc": "plonk, a flow of width 512, trained on YFCC100M, on embeddings of dinov2-l-14" };
    await route.fulfill({ response, json: { models: names.map((name, k) => ({ ...models[0], name, description: named[name], default: k === 0 })) } });
  });

/** The next answers are changed like this, one after the other; `problem` replaces one. */
const withAnswers = (page, changes) =>
  page.route("**/v1/locate*", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const { footprint: _, ...answer } = body.results[0];
    const change = changes.shift() ?? {};
    body.results = [change.problem === undefined ? { ...answer, ...change } : { image: answer.image, problem: change.problem }];
    await route.fulfill({ response, json: body });
  });

const plain = (text) => text.replaceAll("\u00a0", " ");
const textOf = async (page, selector) => plain(await page.textContent(selector));

async function noTicks(page) {
  const text = await page.evaluate(() => document.body.innerText + [...document.querySelectorAll("#live, [title], [aria-label]")].map((element) => `${element.textContent} ${element.title} ${element.ariaLabel}`).join(" "));
  assert.doesNotMatch(text, /`/);
}

/** Names on the map that would be seen in the box of an element; of all that lie there. */
const namesUnder = (page, selector) =>
  page.evaluate((selector) => {
    const { map } = window.locdiff.globe;
    const [stage, box] = [map.getContainer(), document.querySelector(selector)].map((element) => element.getBoundingClientRect());
    const [left, top] = [box.left - stage.left, box.top - stage.top];
    const found = map.queryRenderedFeatures([[left, top], [left + box.width, top + box.height]], { layers: ["names"] });
    return { all: found.map(({ properties }) => properties.name), seen: found.filter(({ state }) => !state.covered).map(({ properties }) => properties.name) };
  }, selector);

async function noNamesUnder(page, selectors) {
  let found = 0;
  for (const center of [[10, 10], [100, -10], [-95, 10], [25, -35]]) {
    await page.evaluate((center) => window.locdiff.globe.map.jumpTo({ center }), center);
    await page.evaluate(() => new Promise((resolve) => {
      window.locdiff.globe.map.once("idle", resolve);
      window.locdiff.globe.map.triggerRepaint();
    }));
    for (const selector of selectors) {
      const { all, seen } = await namesUnder(page, selector);
      assert.deepEqual(seen, [], `under ${selector}, at ${center}`);
      found += all.length;
    }
  }
  return found;
}

/** How many pixels of the map a circle around the middle has as its radius. */
const pixelsOf = (page, km) =>
  page.evaluate((km) => {
    const { map } = window.locdiff.globe;
    const { lat, lng } = map.getCenter();
    return Math.abs(map.project([lng, lat + km / 111.2]).y - map.project([lng, lat]).y);
  }, km);

export async function readingTests({ running, url, folder, madagascar }) {
  const shot = (page, name) => page.screenshot({ path: join(folder, `page-${name}.png`), timeout: PATIENCE_MS });
  /** A test with a page of its own, which is closed even if the test fails: an open one costs the others time. */
  const testPage = (name, options, run) =>
    test(name, async () => {
      const page = await open(await running(), url, options);
      await run(page).finally(() => page.context().close());
    });

  await testPage("before the first picture, the page says what this server can locate", { ...DESKTOP, prepare: (page) => withModels(page, ["earth-view"]) }, async (page) => {
    assert.equal(await textOf(page, "#offer-can"), "This server locates views of the Earth from above.");
    assert.match(await textOf(page, "#offer-missing"), /^For photographs from the ground, run locdiff model fetch plonk-yfcc/);
    assert.equal(await page.textContent("#offer-missing code"), "locdiff model fetch plonk-yfcc");
    assert.equal(await page.isVisible("#settings"), false, "there is nothing to choose from one model");
    assert.equal(await textOf(page, "#file-label"), "Choose a picture");
    await noTicks(page);
    await settled(page);
    await shot(page, "first-visit");
    await audit(page, "first visit, dark, desktop");
    await page.click("#theme");
    await settled(page);
    await shot(page, "first-visit-light");
    await audit(page, "first visit, light, desktop");
    await page.click("#theme");
    const found = await noNamesUnder(page, [".masthead h1", "#theme", ".maplibregl-ctrl-group"]);
    assert.ok(found > 0, "no name came near the title");
    await shot(page, "names");
    // Only models that are there are offered.
    await page.unroute("**/v1/models");
    await withModels(page, ["earth-view", "plonk-yfcc"]);
    await page.reload();
    await page.waitForSelector("body[data-ready=true]");
    assert.equal(await textOf(page, "#offer"), "This server locates views of the Earth from above and photographs from the ground.");
    assert.deepEqual(await page.$$eval("#model option", (options) => options.map(({ value }) => value)), ["", "earth-view", "plonk-yfcc"]);
    await page.unroute("**/v1/models");
    await withModels(page, ["plonk-yfcc"]);
    await page.reload();
    await page.waitForSelector("body[data-ready=true]");
    assert.match(await textOf(page, "#offer"), /^This server locates photographs from the ground\..*--model earth-view/);
    assert.equal(await page.isVisible("#examples"), false, "examples from orbit for a model of the ground");
  });

  expectErrors("status of 401");
  const withKey = async (page) => {
    await withModels(page, ["earth-view"]);
    const isRight = (request) => request.headers()["authorization"] === "Bearer right";
    await page.route("**/v1/models", (route) => (isRight(route.request()) ? route.fallback() : route.fulfill({ status: 401, contentType: "application/problem+json", body: "{}" })));
  };
  await testPage("a server with a key tells what it can locate once the key is typed", { ...DESKTOP, prepare: withKey }, async (page) => {
    assert.match(await textOf(page, "#offer"), /needs a key/);
    await page.fill("#key", "right");
    await page.waitForSelector("#offer-missing");
    assert.match(await textOf(page, "#offer"), /^This server locates views/);
    assert.equal(await page.isVisible("#key"), true);
  });

  const page = await open(await running(), url, { ...DESKTOP, prepare: (page) => withModels(page, ["earth-view"]) });
  const changes = [];
  await withAnswers(page, changes);
  const answer = async (change) => {
    changes.push(change);
    await drop(page, [madagascar]);
    const count = await page.evaluate(() => window.locdiff.app.visits.length);
    await page.waitForFunction((count) => window.locdiff.app.visits.length >= count && window.locdiff.app.current.state !== "waiting", count);
  };

  await test("a precise answer is shown close up, a vague one with the Earth around it", async () => {
    await answer({ radius_50_km: 1500, radius_90_km: 6000 });
    await answered(page);
    await settled(page);
    const wide = await page.evaluate(() => window.locdiff.globe.map.getZoom());
    assert.ok(wide < 3.2, `zoom ${wide} of a vague answer`);
    await answer(SMALL);
    await answered(page);
    await settled(page);
    const { zoom, center } = await page.evaluate(() => ({ zoom: window.locdiff.globe.map.getZoom(), center: window.locdiff.globe.map.getCenter() }));
    assert.ok(zoom > 9, `zoom ${zoom} of a precise answer`);
    assert.ok(Math.abs(center.lat - DAHAB.latitude) < 0.02 && Math.abs(center.lng - DAHAB.longitude) < 0.02);
    const radius = await pixelsOf(page, SMALL.radius_50_km);
    assert.ok(radius > 25 && radius < 200, `50 % are ${radius} pixels`);
    assert.match(await textOf(page, ".maplibregl-ctrl-scale"), /^\d+ km$/);
    assert.match(await textOf(page, ".lead"), /50 % within 2.9 km, 90 % within 5.4 km\./);
    await shot(page, "small");
    await audit(page, "small answer, dark, desktop");
    const covered = await namesUnder(page, ".masthead h1");
    assert.deepEqual(covered.seen, []);
  });

  await test("a constraint that leaves nothing is explained, and the answer stays", async () => {
    await answer(SMALL);
    await answered(page);
    await page.fill("#within", "Portugal");
    await page.press("#within", "Enter");
    await page.waitForFunction(() => document.querySelector("#within-problem").textContent !== "");
    assert.match(await textOf(page, "#within-problem"), /^Practically no part of the answer lies within “Portugal” .*Try a larger area/);
    assert.equal(await page.getAttribute("#within", "aria-invalid"), "true");
    assert.equal(await textOf(page, "#answer-title"), "Dahab");
    await page.locator("#within-problem").scrollIntoViewIfNeeded();
    await shot(page, "nothing-left");
    await audit(page, "nothing left, dark, desktop");
    await page.evaluate(() => document.querySelector("#evidence").scrollTo(0, 0));
  });

  await test("the server's names and constraints are shown as they are", async () => {
    await answer({ candidates: [AT_SEA], within: ["Egypt"], kept: 0.031, warnings: ["these are scores, run `locdiff calibrate` again"] });
    await answered(page);
    assert.equal(await textOf(page, "#answer-title"), "at sea, 40 km off Egypt");
    assert.match(await textOf(page, ".candidate .name"), /^at sea, 40 km off Egypt/);
    assert.equal(await textOf(page, "#server-kept"), "Within Egypt: keeps 3.1 % of the unconstrained answer.");
    assert.equal(await page.textContent(".answer code"), "locdiff calibrate");
    assert.doesNotMatch(await textOf(page, ".answer"), /less than 1 %/);
    await noTicks(page);
    await settled(page);
    await shot(page, "server-constraint");
    await audit(page, "constrained by the server, dark, desktop");
    await answer({ within: ["Egypt"], kept: 0.004 });
    await answered(page);
    assert.match(await textOf(page, ".answer"), /keeps 0.4 % of the unconstrained answer\.Warning: less than 1 %/);
  });

  await test("the page's own constraints warn when they keep less than 1 %", async () => {
    await answer(SOME_IN_SPAIN);
    await answered(page);
    assert.equal(await page.locator("#server-kept").count(), 0);
    await page.fill("#within", "Spain");
    await page.press("#within", "Enter");
    await page.waitForSelector("#kept");
    assert.match(await textOf(page, "#kept"), /^The constraint keeps 0\.5 % of the unconstrained answer\./);
    assert.match(await textOf(page, "#kept-warning"), /^Warning: less than 1 %/);
    await page.waitForFunction(() => window.locdiff.app.current.final);
    await page.locator("#kept").scrollIntoViewIfNeeded();
    await settled(page);
    await shot(page, "kept-little");
    await audit(page, "little kept, dark, desktop");
  });

  await test("a rejected picture and one without candidates are explained, with what to do", async () => {
    await answer({ problem: REJECTED });
    await page.waitForSelector(".problem");
    assert.equal(await textOf(page, ".problem h2"), "No model on this server fits this picture");
    assert.deepEqual(await page.$$eval(".problem code", (list) => list.map(({ textContent }) => textContent)), ["locdiff model fetch plonk-yfcc", "locdiff model fetch geoclip"]);
    assert.match(await textOf(page, ".problem .advice"), /^Choose another picture below\. This server locates views of the Earth from above\.$/);
    assert.match(await page.textContent("#live"), /^No answer: No model .* locdiff model fetch plonk-yfcc/);
    await noTicks(page);
    await shot(page, "rejected");
    await audit(page, "rejected, dark, desktop");
    await answer({ candidates: [] });
    await page.waitForFunction(() => document.querySelector(".problem h2")?.textContent === "The model returned no place");
    assert.match(await textOf(page, ".problem"), /has no candidate.*Choose another picture/s);
    await noTicks(page);
    await shot(page, "no-candidate");
  });
  await page.context().close();

  for (const colorScheme of ["dark", "light"]) {
    await testPage(`on a telephone one chooses a photo, ${colorScheme}`, { ...PHONE, colorScheme, prepare: (page) => withModels(page, ["earth-view"]) }, async (phone) => {
      await withAnswers(phone, [SMALL, { problem: REJECTED }]);
      assert.equal(await textOf(phone, "#file-label"), "Choose a photo");
      assert.doesNotMatch(await textOf(phone, "#bench"), /drop/i);
      await settled(phone);
      await shot(phone, `phone-first-visit-${colorScheme}`);
      const box = await phone.locator("#file-label").boundingBox();
      assert.ok(box.y + box.height <= PHONE.height, `the button ends at ${box.y + box.height}`);
      await audit(phone, `first visit, ${colorScheme}, phone`);
      if (colorScheme === "dark") await noNamesUnder(phone, [".masthead h1", "#theme", ".maplibregl-ctrl-group"]);
      await drop(phone, [madagascar]);
      await answered(phone);
      await settled(phone);
      assert.equal(await textOf(phone, "#file-label"), "Choose another photo");
      await shot(phone, `phone-small-${colorScheme}`);
      await drop(phone, [madagascar]);
      await phone.waitForSelector(".problem");
      await phone.evaluate(() => window.scrollTo(0, 300));
      await shot(phone, `phone-rejected-${colorScheme}`);
      assert.equal(await phone.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1), false, "the page is wider than the screen");
      await audit(phone, `rejected, ${colorScheme}, phone`);
    });
  }
}

/** What a server without fetched models really offers and answers. */
async function ownAnswers({ browser, url, folder, madagascar }) {
  expectErrors("status of 422");
  const page = await open(browser, url, DESKTOP);
  const shot = (name) => page.screenshot({ path: join(folder, `page-${name}.png`), timeout: PATIENCE_MS });
  await test("the models and answers of a new installation are shown as they are", async () => {
    const { models } = await (await fetch(new URL("/v1/models", url))).json();
    assert.deepEqual(models.map(({ name }) => name), ["earth-view"]);
    assert.match(await textOf(page, "#offer"), /^This server locates views of the Earth from above\./);
    await drop(page, [madagascar]);
    await answered(page);
    await settled(page);
    assert.match(await textOf(page, ".answer"), /Madagascar/);
    await noTicks(page);
    await shot("own-answer");
    await drop(page, [{ name: "rgb.jpg", type: "image/jpeg", bytes: await readFile(new URL("../../../parity/photo/files/rgb.jpg", import.meta.url)) }]);
    await page.waitForSelector(".problem");
    assert.match(await textOf(page, ".problem"), /locdiff model fetch/);
    await noTicks(page);
    await shot("own-rejected");
  });
  await page.context().close();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [address = "mock", folder = "../target/web-page"] = process.argv.slice(2);
  await mkdir(folder, { recursive: true });
  const mock = address === "mock" ? await startMock() : null;
  const browser = await launch();
  const madagascar = { name: "madagascar.jpg", type: "image/jpeg", bytes: await readFile(new URL("../../../examples/madagascar.jpg", import.meta.url)) };
  if (mock === null) await ownAnswers({ browser, url: address, folder, madagascar });
  await readingTests({ running: async () => browser, url: mock?.url ?? address, folder, madagascar });
  await test("no error was written", () => assert.deepEqual([seen.errors, seen.external, seen.violations], [[], [], []]));
  await browser.close();
  mock?.close();
  console.log(JSON.stringify(tally));
  process.exit(tally.failed === 0 ? 0 : 1);
}
