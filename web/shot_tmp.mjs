import { readFileSync } from "node:fs";
import { launch, open, drop } from "./tests/e2e/browser.mjs";
const [url, photo, model, out] = process.argv.slice(2);
const browser = await launch();
const page = await open(browser, url, { width: 1280, height: 860 });
await page.evaluate((m) => { const s = document.querySelector("select"); if (s) { s.value = m; s.dispatchEvent(new Event("change", {bubbles: true})); } }, model);
await drop(page, [{ name: "view.jpg", type: "image/jpeg", bytes: readFileSync(photo) }]);
await page.waitForTimeout(25000);
await page.screenshot({ path: out });
const list = await page.$(".references, [class*=reference]");
if (list) { await list.scrollIntoViewIfNeeded(); await page.waitForTimeout(1500); await page.screenshot({ path: out.replace(".png", "-2.png") }); }
console.log(await page.evaluate(() => [...document.querySelectorAll("img")].map((i) => [i.src.slice(0, 80), i.naturalWidth])));
await browser.close();
