// What happens when: pictures come in, answers come back, people ask for more.

import { Server, ServerProblem, type Answer, type PageSettings } from "./api";
import type { Basemap } from "./basemap";
import { answerColumn, keepingInput, problemColumn, sentence, waitingColumn, type Actions } from "./column";
import { drawnRegion, NOTHING_KEPT, parseConstraint, type Constraint } from "./constraints";
import { Constraining } from "./constraining";
import { Drawing } from "./drawing";
import type { Engine } from "./engine";
import { km, measuredKm, percent } from "./format";
import type { Globe } from "./globe";
import { drape, type Ground } from "./ground";
import { byId, h, toast, withoutTicks } from "./html";
import { listenForPictures, nameChooser, type Incoming } from "./intake";
import { ModelMenu } from "./model_menu";
import { named } from "./names";
import { Player } from "./playback";
import { CannotConstrain, problemWords } from "./problems";
import { saveGeojson, saveMap, saveReport } from "./save/actions";
import { apply, nameSwitch, onSystemTheme } from "./theme";
import { viewRadiusKm } from "./view";
import { groundOf, newVisit, nounOf, sha256, type Visit, type Within } from "./visit";

interface Parts {
  server: Server;
  engine: Engine;
  globe: Globe;
  basemap: Basemap;
  settings: PageSettings;
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
  readonly #menu: ModelMenu;
  #nameChooser: () => void = () => undefined;
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
    play: () => void this.#player.toggle((error) => this.#say(this.#words(error).detail, true)),
    seek: (frame) => this.#player.seek(frame),
    savePng: () => void this.#saving(saveMap),
    saveGeojson: () => void this.#saving(async (_, visit) => saveGeojson(visit)),
    saveReport: () => void this.#saving((globe, visit) => saveReport(globe, visit, this.#parts.settings.version)),
    retry: () => {
      // Another model may have been chosen since.
      this.#current!.model = this.#menu.chosen;
      void this.#ask(this.#current!);
    },
    backToAnswer: () => this.#endDenoising(),
    thumbnail: (id) => this.#thumbnail(id),
  };

  /** Of references, by their ids: asked for once. */
  readonly #thumbnails = new Map<string, Promise<string | null>>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#menu = new ModelMenu(parts.server);
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

  async begin(): Promise<void> {
    const { globe, settings } = this.#parts;
    listenForPictures((pictures) => this.take(pictures), (message) => this.#say(message, true));
    this.#nameChooser = nameChooser(() => this.#current === null);
    if (settings.key_required) this.#menu.askForKey();
    await this.#menu.load();
    byId("theme").addEventListener("click", () => this.#setTheme(globe.theme === "dark" ? "day" : "dark"));
    onSystemTheme((theme) => this.#setTheme(theme));
    nameSwitch(byId("theme"), globe.theme);
    globe.showWhole();
    globe.startTurning();
    const panels = ["theme", "sketch-bar", "step", "print", "contact-sheet"].map((id) => byId(id));
    globe.keepNamesClearOf([...document.querySelectorAll(".masthead h1"), ...panels]);
    new ResizeObserver(() => this.#current === null && globe.showWhole()).observe(byId("globe"));
    document.body.dataset["ready"] = "true";
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
    const visits = pictures.map(({ file, name }) => newVisit(file, name, this.#menu.chosen));
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
    // The place of another answer is not that of this picture.
    if (visit.state === "failed") this.#parts.globe.goBack();
  }

  async #ask(visit: Visit): Promise<void> {
    const { server, engine, settings } = this.#parts;
    visit.state = "waiting";
    visit.problem = null;
    if (visit === this.#current) this.show(visit);
    try {
      if (visit.file.size > settings.max_image_bytes) {
        const limit = Math.floor(settings.max_image_bytes / 1e6);
        throw new ServerProblem(413, "too-large", `The picture has ${Math.ceil(visit.file.size / 1e6)} MB. This server accepts up to ${limit} MB.`);
      }
      const answer = await server.locate(visit.file, { model: visit.model, top: NAMED, density: true, frames: 0 });
      if (answer.density === undefined) throw new ServerProblem(200, "no-density", "The server sent no density.");
      if (answer.candidates.length === 0) throw new ServerProblem(200, "no-candidate", `The answer of \`${answer.model.name}\` has no candidate: the model found no place that is more probable than others.`);
      visit.answer = answer;
      if (this.#menu.models.length === 0) await this.#menu.load();
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
      visit.problem = this.#words(error);
      if (visit.problem.status === 401) this.#menu.askForKey();
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

  /** The picture, warped to lie on its footprint. An answer without it is still an answer. */
  async #groundOf(file: Blob, { footprint }: Answer): Promise<Ground | null> {
    if (footprint === undefined) return null;
    try {
      const outline = await this.#parts.engine.outline(footprint.corners);
      return { footprint, outline, drape: await drape(file, footprint, outline) };
    } catch (error) {
      this.#say(`The picture can't be shown on the map: ${this.#words(error).detail}.`, true);
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
      if (visit.current === number) this.#say(this.#words(error).detail, true);
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
    this.#nameChooser();
    this.#print(visit);
    this.#contactSheet();
  }

  #canDenoise(visit: Visit): boolean {
    const entry = this.#menu.models.find((model) => model.name === visit.answer?.model.name);
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
    const isConstrained = visit.constraints.length > 0;
    if (turn) globe.turnTo(visit.places[0]!, viewRadiusKm({ radius_50_km: summary.radius_50_km, isConstrained, scale: globe.scale }));
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
      const what = visit.state === "answered" ? visit.places[0]!.name : visit.state === "failed" ? "no answer" : "in progress";
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
    const failed = (error: unknown) => {
      throw new CannotConstrain(constraints.map(({ label }) => label), error instanceof Error ? error.message : String(error));
    };
    const { number, final } = await engine.restrict(visit.whole, constraints.map(({ area }) => area), coarsely).catch(failed);
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
    const measured = await this.#measured(visit, number);
    if (measured.places.length === 0 || (number !== visit.whole && measured.summary!.share < NOTHING_KEPT)) {
      void engine.release([number]);
      throw new CannotConstrain(constraints.map(({ label }) => label));
    }
    return { ...measured, constraints, final, current: number, regions, groundAllowed };
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
    } else if (visit === this.#current) {
      byId("within-problem").textContent = error instanceof CannotConstrain ? error.words : `The constraint could not be applied: ${message}.`;
      byId("within").setAttribute("aria-invalid", "true");
    }
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
      this.#say(`The file could not be saved: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  }

  #setTheme(theme: "day" | "dark"): void {
    apply(theme);
    this.#parts.globe.setTheme(theme);
    nameSwitch(byId("theme"), theme);
    if (this.#current?.state === "answered") this.#render();
  }

  #announce(visit: Visit): void {
    if (visit.state === "failed") {
      const { title, detail, advice } = visit.problem!;
      return this.#say(`No answer: ${[title, detail, advice].filter((part) => part !== "").map(sentence).join(" ")}`);
    }
    const best = visit.places[0]!;
    const summary = visit.summary!;
    const count = visit.places.filter((place) => place.mass >= 0.001).length;
    const within = visit.constraints.length === 0 ? "" : ` Within ${visit.constraints.map(({ label }) => label).join(" and ")}.`;
    const where = [best.name, best.around].filter((part) => part !== "").join(", ");
    const ground = groundOf(visit);
    const shown = ground === null ? "" : ` The picture is on the map, ${measuredKm(ground.footprint.width_km)} wide.`;
    const refining = visit.final ? "" : " A coarse answer: the refined one follows.";
    this.#say(`Prediction: ${where}, ${nounOf(visit)} ${percent(best.mass)}. 50 % within ${km(summary.radius_50_km)}. ${count} ${count === 1 ? "candidate" : "candidates"}.${within}${shown}${refining}`);
  }

  #words(error: unknown): NonNullable<Visit["problem"]> {
    return problemWords(error, this.#menu.models);
  }

  #say(message: string, visible = false): void {
    byId("live").textContent = withoutTicks(message);
    if (visible) toast(message);
  }
}

/** A small picture, or a dark frame if the browser can't show the file. */
function thumbnail(url: string): HTMLElement {
  const image = h("img", { src: url, alt: "" });
  image.addEventListener("error", () => image.replaceWith(h("i", { class: "unseeable" })));
  return image;
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
