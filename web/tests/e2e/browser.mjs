// A browser that records requests, errors, violations of the policy.

import { chromium } from "playwright-core";

/** The machine may be slow, and a frame of software WebGL take a second: conditions, with patience. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 120_000);

const ARGUMENTS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--no-sandbox"];

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGUMENTS });
}

/** What went wrong in all pages together. */
export const seen = { external: [], errors: [], violations: [], requests: [] };

/** Errors that a test provokes, by a part of their text. */
const expected = [];
export function expectErrors(part) {
  expected.push(part);
}

/** `prepare` gets the page before it is loaded. */
export async function open(browser, url, { width, height, colorScheme = "dark", phone = false, reducedMotion = "no-preference", prepare = async () => {} }) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme,
    reducedMotion,
    hasTouch: phone,
    isMobile: phone,
    acceptDownloads: true,
  });
  const origin = new URL(url).origin;
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  context.on("request", (request) => {
    const address = request.url();
    seen.requests.push(address);
    if (!address.startsWith(origin) && !/^(data|blob):/.test(address)) seen.external.push(address);
  });
  const report = (text) => {
    if (!expected.some((part) => text.includes(part))) seen.errors.push(text);
  };
  page.on("console", (message) => {
    if (message.type() === "error") report(`${message.text()} ${message.location().url ?? ""}`);
  });
  page.on("pageerror", (error) => report(String(error)));
  await page.exposeFunction("reportViolation", (text) => seen.violations.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      window.reportViolation(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  await prepare(page);
  await page.goto(url);
  await page.waitForSelector("body[data-ready=true]");
  return page;
}

/** Drops files on the page as a person would. */
export async function drop(page, files) {
  const encoded = files.map(({ name, type, bytes }) => ({ name, type, base64: Buffer.from(bytes).toString("base64") }));
  await page.evaluate((list) => {
    const transfer = new DataTransfer();
    for (const { name, type, base64 } of list) {
      const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
      transfer.items.add(new File([bytes], name, { type }));
    }
    for (const kind of ["dragenter", "dragover", "drop"]) {
      document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }
  }, encoded);
}

export async function answered(page) {
  await page.waitForFunction(() => {
    const current = window.locdiff?.app.current;
    return current && current.state !== "waiting";
  });
  const state = await page.evaluate(() => ({ state: window.locdiff.app.current.state, problem: window.locdiff.app.current.problem }));
  if (state.state !== "answered") throw new Error(`no answer: ${JSON.stringify(state.problem)}`);
}

/** Waits until the map stands still and is drawn. */
export async function settled(page) {
  await page.waitForFunction(() => {
    const { map } = window.locdiff.globe;
    const visit = window.locdiff.app.current;
    if (visit?.state === "answered" && visit.regions === null) return false;
    return map.loaded() && !map.isMoving() && map.areTilesLoaded();
  });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** The colour of the map at a place, red, green and blue. */
export const colourAt = (page, latitude, longitude) =>
  page.evaluate(
    ([latitude, longitude]) =>
      new Promise((resolve) => {
        const { map } = window.locdiff.globe;
        map.once("render", () => {
          const canvas = map.getCanvas();
          const copy = document.createElement("canvas");
          [copy.width, copy.height] = [canvas.width, canvas.height];
          const pen = copy.getContext("2d");
          pen.drawImage(canvas, 0, 0);
          const { x, y } = map.project([longitude, latitude]);
          const ratio = canvas.width / canvas.clientWidth;
          resolve([...pen.getImageData(Math.round(x * ratio), Math.round(y * ratio), 1, 1).data].slice(0, 3));
        });
        map.triggerRepaint();
      }),
    [latitude, longitude],
  );
