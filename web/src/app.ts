// What happens when: pictures come in, answers come back, people ask for more.

import { Server, ServerProblem, type Answer, type ModelEntry, type PageSettings } from "./api";
import type { Basemap } from "./basemap";
import { answerColumn, keepingInput, problemColumn, waitingColumn, type Actions } from "./column";
import { drawnRegion, parseConstraint, type Constraint } from "./constraints";
import { Constraining } from "./constraining";
import { Drawing } from "./drawing";
import type { Engine } from "./engine";
import { km, measuredKm, percent } from "./format";
import type { Globe } from "./globe";
import { drape, type Ground } from "./ground";
import { byId, h, toast } from "./html";
import { listenForPictures, type Incoming } from "./intake";
import { named } from "./names";
import { Player } from "./playback";
import { saveGeojson, saveMap, saveReport } from "./save/actions";
import { apply, nameSwitch, onSystemTheme } from "./theme";
import { groundOf, newVisit, nounOf, sha256, type Visit, type Within } from "./visit";

interface Parts {
  server: Server;
  engine: Engine;
  globe: Globe;
  basemap: Basemap;
  settings: PageSettings;
  models: ModelEntry[];
}

/** So many named places come with an answer, to be matched with those under constraints. */
const NAMED = 50;
/** So many are listed under constraints; each costs a moment. */
const LISTED_WITHIN = 12;
/** So many have a pin on the map. */
const PINS = 9;
/** A circle that shows the ground of a picture, in widths of the ground: the square with its corners, and a little around it. */
const GROUND_RADIUS = 0.62;
/** A coarse answer is refined after this time at the latest, even if it is not drawn yet. */
const LONGEST_DRAWING_MS = 4000;

export class App {
  readonly visits: Visit[] = [];
  readonly #parts: Parts;
  readonly #player: Player;
  readonly #drawing: Drawing;
  readonly #constraining: Constraining<Visit, Within>;
  #current: Visit | null = null;
  #drawn = 0;
  /** Of the picture on its ground: as somebody set it last. */
  #opacity = 0.85;

  readonly #actions: Actions = {
    choose: (index) => this.#choose(index),
    constrain: (text) => void this.#constrainByText(text),
    unconstrain: (index) => void this.#constrain((known) => known.filter((_, k) => k !== index)),
    draw: () => this.#draw(),
    fade: (opacity) => {
      this.#opacity = opacity;
      this.#parts.globe.fadeGround(opacity);
    },
    play: () => void this.#player.toggle((error) => this.#say(words(error).detail, true)),
    seek: (frame) => this.#player.seek(frame),
    savePng: () => void this.#saving(saveMap),
    saveGeojson: () => void this.#saving(async (_, visit) => saveGeojson(visit)),
    saveReport: () => void this.#saving((globe, visit) => saveReport(globe, visit, this.#parts.settings.version)),
    retry: () => {
      // Another model may have been chosen since.
      this.#current!.model = byId<HTMLSelectElement>("model").value || null;
      void this.#ask(this.#current!);
    },
    backToAnswer: () => this.#endDenoising(),
    thumbnail: (id) => this.#thumbnail(id),
  };

  /** Of references, by their ids: asked for once. */
  readonly #thumbnails = new Map<string, Promise<string | null>>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#player = new Player(parts);
    this.#drawing = new Drawing(parts.globe, byId("sketch-bar"));
    this.#constraining = new Constraining<Visit, Within>({
      compute: (visit, constraints, coarsely, isWanted) => this.#within(visit, constraints, coarsely, isWanted),
      show: (visit, answer) => this.#showWithin(visit, answer),
      drop: ({ current }) => void parts.engine.release([current]),
      fail: (visit, error, coarsely) => this.#failWithin(visit, error, coarsely),
    });
  }

  get current(): Visit | null {
    return this.#current;
  }

  begin(): void {
    const { globe, models, settings, server } = this.#parts;
    listenForPictures((pictures) => this.take(pictures), (message) => this.#say(message, true));
    this.#offerModels(models);
    const select = byId<HTMLSelectElement>("model");
    select.addEventListener("change", () => {
      byId("model-note").textContent = this.#parts.models.find((model) => model.name === select.value)?.description ?? "";
    });
    byId("key-field").hidden = !settings.key_required;
    if (settings.key_required) byId<HTMLDetailsElement>("settings").open = true;
    const key = byId<HTMLInputElement>("key");
    key.addEventListener("input", () => (server.key = key.value));
    byId("theme").addEventListener("click", () => this.#setTheme(globe.theme === "dark" ? "day" : "dark"));
    onSystemTheme((theme) => this.#setTheme(theme));
    nameSwitch(byId("theme"), globe.theme);
    globe.showWhole();
    globe.startTurning();
    new ResizeObserver(() => this.#current === null && globe.showWhole()).observe(byId("globe"));
    document.body.dataset["ready"] = "true";
  }

  #offerModels(models: ModelEntry[]): void {
    this.#parts.models = models;
    for (const model of models) byId("model").append(h("option", { value: model.name }, model.name));
  }

  #thumbnail(id: string): Promise<string | null> {
    const { server, settings } = this.#parts;
    if (!settings.references) return Promise.resolve(null);
    const known = this.#thumbnails.get(id) ?? server.thumbnail(id).catch(() => null);
    this.#thumbnails.set(id, known);
    return known;
  }

  /** Locates pictures, one after the other; the first is shown at once. */
  take(pictures: Incoming[]): void {
    const model = byId<HTMLSelectElement>("model").value || null;
    const visits = pictures.map(({ file, name }) => newVisit(file, name, model));
    this.visits.push(...visits);
    this.show(visits[0]!);
    void (async () => {
      for (const visit of visits) await this.#ask(visit);
    })();
  }

  show(visit: Visit): void {
    this.#drawing.cancel();
    this.#player.detach();
    document.body.classList.remove("denoising");
    byId("step").hidden = true;
    this.#current = visit;
    document.body.dataset["state"] = visit.state;
    this.#render();
    if (visit.state === "answered") this.#stage(visit, true);
    else this.#clearStage();
  }

  async #ask(visit: Visit): Promise<void> {
    const { server, engine, settings } = this.#parts;
    visit.state = "waiting";
    visit.problem = null;
    if (visit === this.#current) this.show(visit);
    try {
      if (visit.file.size > settings.max_image_bytes) {
        const limit = Math.floor(settings.max_image_bytes / 1e6);
        throw new ServerProblem("The picture is too large", `It has ${Math.ceil(visit.file.size / 1e6)} MB, this server takes up to ${limit} MB.`, 413, "Use a smaller copy of the picture: scaling it down changes little.");
      }
      const answer = await server.locate(visit.file, { model: visit.model, top: NAMED, density: true, frames: 0 });
      if (answer.density === undefined) throw new ServerProblem("The answer has no map", "The server sent no density.", 500, "Update the server, then try again.");
      visit.answer = answer;
      // A server with keys tells its models only to those who have one.
      if (this.#parts.models.length === 0) this.#offerModels(await server.models().catch(() => []));
      visit.answeredAt = new Date();
      visit.localSha256 = await sha256(visit.file);
      visit.whole = await engine.open(answer.density);
      visit.current = visit.whole;
      Object.assign(visit, await this.#measured(visit, visit.whole));
      visit.ground = await this.#groundOf(visit.file, answer);
      visit.state = "answered";
      void this.#outline(visit);
    } catch (error) {
      visit.state = "failed";
      visit.problem = words(error);
      if (visit.problem.status === 401) {
        byId("key-field").hidden = false;
        byId<HTMLDetailsElement>("settings").open = true;
      }
    }
    if (visit === this.#current) {
      this.show(visit);
      this.#announce(visit);
    } else {
      this.#contactSheet();
    }
  }

  /** What is said of a density. Of the whole one the server has said it already: the same numbers, by the same library. */
  async #measured(visit: Visit, number: number): Promise<Pick<Visit, "summary" | "places">> {
    const { engine, basemap } = this.#parts;
    const answer = visit.answer!;
    const summary = number === visit.whole ? { ...answer, ...(await engine.scale(number)) } : await engine.summary(number, LISTED_WITHIN);
    const countryAt = (latitude: number, longitude: number) => basemap.countryAt(latitude, longitude);
    const places = summary.candidates.map((candidate) => named(candidate, answer.candidates, countryAt));
    return { summary, places };
  }

  /** The picture, warped to lie where the answer says. An answer without it is still an answer. */
  async #groundOf(file: Blob, { footprint }: Answer): Promise<Ground | null> {
    if (footprint === undefined) return null;
    try {
      const outline = await this.#parts.engine.outline(footprint.corners);
      return { footprint, outline, drape: await drape(file, footprint, outline) };
    } catch (error) {
      this.#say(`The picture can't be laid on the map: ${words(error).detail}.`, true);
      return null;
    }
  }

  /** Lines of regions take longest: they are drawn when they are there. */
  async #outline(visit: Visit): Promise<void> {
    const number = visit.current;
    let regions;
    try {
      regions = await this.#parts.engine.regions(number);
    } catch (error) {
      // Another constraint was set meanwhile.
      if (visit.current === number) this.#say(words(error).detail, true);
      return;
    }
    if (visit.current !== number) return;
    visit.regions = regions;
    const denoising = document.body.classList.contains("denoising");
    if (visit === this.#current && visit.state === "answered" && !denoising) this.#parts.globe.showRegions(regions);
  }

  #render(): void {
    const visit = this.#current;
    const column = byId("column");
    if (visit === null) return column.replaceChildren();
    const countries = this.#parts.basemap.countries.map(({ name }) => name);
    if (visit.state === "waiting") column.replaceChildren(waitingColumn(visit));
    else if (visit.state === "failed") column.replaceChildren(problemColumn(visit, this.#actions));
    else {
      column.replaceChildren(answerColumn(visit, { theme: this.#parts.globe.theme, countries, opacity: this.#opacity }, this.#actions));
      this.#player.attach(visit, this.#canDenoise(visit), this.#actions);
    }
    byId("file-label").textContent = "Choose another picture";
    this.#print(visit);
    this.#contactSheet();
  }

  #canDenoise(visit: Visit): boolean {
    const entry = this.#parts.models.find((model) => model.name === visit.answer?.model.name);
    return entry?.frames ?? false;
  }

  /** The answer on the map. */
  #stage(visit: Visit, turn: boolean): void {
    const { globe } = this.#parts;
    const summary = visit.summary!;
    document.body.classList.remove("denoising");
    byId("step").hidden = true;
    globe.showDensity({ number: visit.current, top: summary.top_log_density });
    globe.showRegions(visit.regions);
    globe.showConstraints(visit.constraints);
    const pins = visit.places.slice(0, PINS).filter((place, index) => index === 0 || place.mass >= 0.001);
    globe.showCandidates(pins, nounOf(visit), (index) => this.#choose(index));
    globe.showGps(visit.answer!.exif);
    const ground = groundOf(visit);
    globe.showGround(ground, this.#opacity);
    if (turn && ground !== null) return globe.turnTo(ground.footprint.middle, GROUND_RADIUS * ground.footprint.width_km);
    // Near enough for the first peak, not so near that the Earth is no ball any more.
    const nearest = (visit.constraints.length === 0 ? 3300 : 900) * globe.scale;
    if (turn) globe.turnTo(visit.places[0]!, Math.max(nearest, 2.2 * summary.radius_50_km));
  }

  #endDenoising(): void {
    if (this.#current === null || !document.body.classList.contains("denoising")) return;
    this.#player.stop();
    this.#stage(this.#current, false);
  }

  #clearStage(): void {
    const { globe } = this.#parts;
    globe.showDensity(null);
    globe.showRegions(null);
    globe.showConstraints([]);
    globe.showCandidates([], "", () => undefined);
    globe.showGps(null);
    globe.showGround(null, 0);
  }

  #print(visit: Visit): void {
    const print = byId("print");
    print.hidden = false;
    print.dataset["state"] = visit.state;
    const image = h("img", { src: visit.url, alt: `The picture ${visit.name}` });
    image.addEventListener("error", () => image.replaceWith(h("p", { class: "no-preview" }, "This browser can't show the file.")));
    print.replaceChildren(image, h("figcaption", {}, visit.name));
  }

  #contactSheet(): void {
    const sheet = byId("contact-sheet");
    sheet.hidden = this.visits.length < 2;
    const frames = this.visits.map((visit, index) => {
      const what = visit.state === "answered" ? visit.places[0]!.name : visit.state === "failed" ? "no answer" : "developing";
      return h(
        "button",
        { type: "button", class: "frame", "data-state": visit.state, "aria-current": visit === this.#current ? "true" : null, "aria-label": `Picture ${index + 1}, ${visit.name}: ${what}`, title: `${visit.name}: ${what}`, onclick: () => this.show(visit) },
        thumbnail(visit.url),
        h("span", {}, String(index + 1)),
      );
    });
    sheet.replaceChildren(...frames);
  }

  #choose(index: number): void {
    const visit = this.#current;
    const place = visit?.places[index];
    if (visit === null || place === undefined) return;
    const { globe } = this.#parts;
    this.#endDenoising();
    globe.highlight(index);
    for (const row of document.querySelectorAll<HTMLElement>(".candidate")) {
      if (row.dataset["index"] === String(index)) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    globe.turnTo(place, 2 * place.radius_km);
    this.#say(`Showing candidate ${index + 1}, ${place.name}, ${nounOf(visit)} ${percent(place.mass)}.`);
  }

  async #constrainByText(text: string): Promise<void> {
    const { basemap } = this.#parts;
    const parsed = parseConstraint(text, basemap.countries, () => basemap.land.geometry.coordinates);
    if ("problem" in parsed) {
      byId("within-problem").textContent = parsed.problem;
      byId("within").setAttribute("aria-invalid", "true");
      return;
    }
    await this.#constrain((known) => [...known, parsed.constraint]);
  }

  #draw(): void {
    this.#drawing.start((points) => {
      const parsed = drawnRegion(points, ++this.#drawn);
      if ("constraint" in parsed) void this.#constrain((known) => [...known, parsed.constraint]);
    });
  }

  /** Resolves once the final answer is shown. */
  async #constrain(change: (known: Constraint[]) => Constraint[]): Promise<void> {
    const visit = this.#current;
    if (visit === null || visit.state !== "answered") return;
    byId("column").setAttribute("aria-busy", "true");
    this.#say("Computing the answer within the constraint.");
    await this.#constraining.change(visit, change);
  }

  async #within(visit: Visit, constraints: Constraint[], coarsely: boolean, isWanted: () => boolean): Promise<Within> {
    const { engine } = this.#parts;
    const { number, final } = await engine.restrict(visit.whole, constraints.map(({ area }) => area), coarsely);
    // A newer constraint waits for the request that the engine is working on, not for all of them.
    const goOn = () => {
      if (isWanted()) return;
      void engine.release([number]);
      throw new Error("a newer constraint was set");
    };
    goOn();
    const groundAllowed = visit.ground === null || (await engine.allows(number, visit.ground.footprint.middle));
    // The final lines replace coarse ones: the map isn't without any in between.
    const regions = coarsely ? null : await engine.regions(number);
    goOn();
    return { ...(await this.#measured(visit, number)), constraints, final, current: number, regions, groundAllowed };
  }

  async #showWithin(visit: Visit, answer: Within): Promise<void> {
    const refined = !visit.final && visit.constraints === answer.constraints;
    const before = visit.current;
    Object.assign(visit, answer);
    if (before !== visit.whole && before !== visit.current) void this.#parts.engine.release([before]);
    byId("column").removeAttribute("aria-busy");
    if (visit === this.#current) {
      if (refined) keepingInput(() => this.#render());
      else this.#render();
      if (!document.body.classList.contains("denoising") || !refined) this.#stage(visit, !refined);
      if (!refined) byId("within").focus({ preventScroll: true });
      this.#announce(visit);
    }
    if (visit.regions === null) await this.#outline(visit);
    // Not forever: a map that is hidden or being moved is never settled.
    if (visit === this.#current) await Promise.race([this.#parts.globe.settled(), pause(LONGEST_DRAWING_MS)]);
  }

  #failWithin(visit: Visit, error: unknown, coarsely: boolean): void {
    const message = error instanceof Error ? error.message : String(error);
    byId("column").removeAttribute("aria-busy");
    if (!coarsely) {
      document.getElementById("refining")?.remove();
      this.#say(`The answer could not be refined: ${message}.`, true);
    } else if (visit === this.#current) byId("within-problem").textContent = `That leaves nothing: ${message}.`;
  }

  async #saving(run: (globe: Globe, visit: Visit) => Promise<void>): Promise<void> {
    const visit = this.#current;
    if (visit === null || visit.state !== "answered") return;
    // What is saved is the answer, not a step on the way to it.
    this.#endDenoising();
    try {
      if (!visit.final) this.#say("Waiting for the refined answer.", true);
      await this.#constraining.finished(visit);
      if (!visit.final) throw new Error("the answer within the constraint could not be refined");
      if (visit.regions === null) await this.#outline(visit);
      await run(this.#parts.globe, visit);
      this.#say("Saved.");
    } catch (error) {
      this.#say(`It could not be saved: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  }

  #setTheme(theme: "day" | "dark"): void {
    apply(theme);
    this.#parts.globe.setTheme(theme);
    nameSwitch(byId("theme"), theme);
    if (this.#current?.state === "answered") this.#render();
  }

  #announce(visit: Visit): void {
    if (visit.state === "failed") return this.#say(`No answer: ${visit.problem!.title}. ${visit.problem!.detail}`);
    const best = visit.places[0]!;
    const summary = visit.summary!;
    const count = visit.places.filter((place) => place.mass >= 0.001).length;
    const within = visit.constraints.length === 0 ? "" : ` Within ${visit.constraints.map(({ label }) => label).join(" and ")}.`;
    const where = [best.name, best.around].filter((part) => part !== "").join(", ");
    const ground = groundOf(visit);
    const shown = ground === null ? "" : ` The picture is on the map, ${measuredKm(ground.footprint.width_km)} wide.`;
    const refining = visit.final ? "" : " A coarse answer: the refined one follows.";
    this.#say(`Prediction: ${where}, ${nounOf(visit)} ${percent(best.mass)}. Half within ${km(summary.radius_50_km)}. ${count} candidates.${within}${shown}${refining}`);
  }

  #say(message: string, visible = false): void {
    byId("live").textContent = message;
    if (visible) toast(message);
  }
}

/** A small picture, or a dark frame if the browser can't show the file. */
function thumbnail(url: string): HTMLElement {
  const image = h("img", { src: url, alt: "" });
  image.addEventListener("error", () => image.replaceWith(h("i", { class: "unseeable" })));
  return image;
}

function words(error: unknown): NonNullable<Visit["problem"]> {
  if (error instanceof ServerProblem) {
    const { title, detail, advice, status } = error;
    return { title, detail, advice, status };
  }
  const detail = error instanceof Error ? error.message : String(error);
  return { title: "The answer could not be shown", detail, advice: "Try again, or another picture.", status: 0 };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
