// Makes a test set with made-up answers of two models, has `locdiff evaluate` report on it, and opens the page in Chromium: at the width
// of a desk and of a phone, light and dark. Checks that nothing is fetched, nothing fails, every picture is drawn, nothing is wider than
// the screen, axe-core finds nothing to object to, and that the page says the numbers that --json says. Screenshots stay in the folder.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [program, folder] = process.argv.slice(2).map((path) => resolve(path));
const quick = process.argv.includes("--quick");
const count = quick ? 300 : 3000;
const seed = 20;

// mulberry32: the same numbers on every machine.
let state = seed;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Photographs cluster around towns; answers are some way off, in any direction.
const towns = [[48.86, 2.35], [51.5, -0.12], [40.71, -74], [37.77, -122.4], [35.68, 139.7], [-33.87, 151.2], [-22.9, -43.2], [19.4, -99.1], [-1.29, 36.8],
  [55.75, 37.6], [28.6, 77.2], [1.35, 103.8], [-18.1, 178.4], [64.1, -21.9], [30, 31.2], [-34.6, -58.4]];
const rows = [["image,latitude,longitude"], ["image,latitude,longitude,nll_nats,level,searched_area_km2"], ["IMG_FILE,LAT,LON"]];
for (let i = 0; i < count; i++) {
  const [latitude, longitude] = towns[Math.floor(random() ** 1.6 * towns.length)];
  const place = [clamp(latitude + 3 * normal(), -89, 89), longitude + 4 * normal()];
  const answer = (log10_km) => {
    const [degrees, bearing] = [10 ** log10_km / 111.2, 2 * Math.PI * random()];
    const north = clamp(place[0] + degrees * Math.cos(bearing), -89, 89);
    return [north, place[1] + (degrees * Math.sin(bearing)) / Math.cos((north * Math.PI) / 180)];
  };
  const level = random() ** 0.8;
  const area = Math.min(10 ** (2 + 5.5 * level + normal()), 5e8);
  const text = (numbers) => numbers.map((number) => number.toFixed(6)).join(",");
  rows[0].push(`${i}.jpg,${text(place)}`);
  rows[1].push(`${i}.jpg,${text(answer(clamp(1.9 + 1.2 * normal(), -2, 3.9)))},${text([Math.log(area / 4e7) + normal(), level, area])}`);
  rows[2].push(`${i}.jpg,${text(answer(clamp(2.2 + 1.2 * normal(), -2, 3.9)))}`);
}
const files = ["towns.csv", "ours.csv", "theirs.csv"].map((name) => resolve(folder, name));
files.forEach((file, which) => writeFileSync(file, rows[which].join("\n") + "\n"));
const page_file = resolve(folder, "report.html");
const json = JSON.parse(
  execFileSync(program, [
    "evaluate", "--predictions", files[1], "--truth", files[0], "--against", files[2], "--name", "made-up answers", "--html", page_file, "--json",
    ...(quick ? ["--resamples", "200", "--permutations", "199"] : []),
  ], { maxBuffer: 1 << 28 }),
);

const axe = readFileSync(resolve(folder, "node_modules/axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const complaints = [];
const complain = (where, what) => complaints.push(`${where}: ${what}`);
let shown = 0;
for (const [name, width, height] of [["desktop", 1280, 900], ["phone", 390, 844]]) {
  for (const colorScheme of ["light", "dark"]) {
    const where = `${name}-${colorScheme}`;
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: name === "phone" ? 2 : 1 });
    // A busy machine draws slowly.
    context.setDefaultTimeout(300_000);
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && complain(where, message.text()));
    page.on("pageerror", (error) => complain(where, error.message));
    page.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) complain(where, `it asks for ${request.url()}`);
    });
    await page.goto(pathToFileURL(page_file).href);
    const facts = await page.evaluate(() => ({
      wide: document.documentElement.scrollWidth - innerWidth,
      pictures: [...document.images].map((image) => [image.complete, image.naturalWidth, image.currentSrc.includes("%230b0f15")]),
      text: document.body.innerText,
      ground: getComputedStyle(document.body).backgroundColor,
    }));
    if (facts.wide > 0) complain(where, `it is ${facts.wide} px wider than the screen`);
    if (facts.pictures.length !== 5) complain(where, `${facts.pictures.length} pictures`);
    for (const [complete, natural, is_dark] of facts.pictures) {
      if (!complete || natural === 0) complain(where, "a picture isn't drawn");
      if (is_dark !== (colorScheme === "dark")) complain(where, "a picture of the other theme");
      shown++;
    }
    if (facts.ground !== (colorScheme === "dark" ? "rgb(11, 15, 21)" : "rgb(255, 255, 255)")) complain(where, `its ground is ${facts.ground}`);
    for (const said of [`${count.toLocaleString("en")} images; none was left out`, `${(100 * json.scores.accuracy_25_km.value).toFixed(2)} %`,
      json.cloud.density.toFixed(4), json.density_scores.nll_nats.value.toFixed(3).replace("-", "−"), "Against theirs"]) {
      if (!facts.text.includes(said)) complain(where, `it doesn't say "${said}"`);
    }
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    for (const { id, nodes } of violations) complain(where, `axe: ${id} (${nodes.length} times, ${nodes[0].html.slice(0, 80)})`);
    // Keys reach what is folded away.
    const details = page.locator("details").first();
    if (await details.count()) {
      await details.locator("summary").press("Enter");
      if (!(await details.evaluate((element) => element.open))) complain(where, "what is folded away doesn't open");
      await details.locator("summary").press("Enter");
    }
    await page.screenshot({ path: resolve(folder, `${where}.png`), fullPage: true });
    await context.close();
  }
}
const version = browser.version();
await browser.close();
for (const complaint of complaints) console.error(complaint);
console.log(JSON.stringify({ experiment: "evaluate-report", quick, images: count, seed, browser: `Chromium ${version}`, page_bytes: readFileSync(page_file).length,
  views: 4, pictures_shown: shown, complaints: complaints.length }));
process.exitCode = complaints.length === 0 ? 0 : 1;
