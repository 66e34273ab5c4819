// The column of evidence: the answer in words and numbers, and what can be done with it.

import type { Reference } from "./api";
import { densityColour, ticks, type Theme } from "./colours";
import { keptWords } from "./constraints";
import { asked, bytes, coordinates, heading, km, km2, measuredKm, percent } from "./format";
import { h, rich } from "./html";
import { isAnywhere, nameParts, type Place } from "./names";
import { groundOf, nounOf, type Visit } from "./visit";

export interface Actions {
  choose(index: number): void;
  constrain(text: string): void;
  unconstrain(index: number): void;
  draw(): void;
  fade(opacity: number): void;
  play(): void;
  seek(frame: number): void;
  savePng(): void;
  saveGeojson(): void;
  saveReport(): void;
  retry(): void;
  backToAnswer(): void;
  /** A small picture of a reference, if it may be seen. */
  thumbnail(id: string): Promise<string | null>;
}

/** More than these aren't listed at first. */
const LISTED = 5;

export function waitingColumn(visit: Visit): HTMLElement {
  return h(
    "section",
    { class: "answer waiting", "aria-busy": "true" },
    h("p", { class: "eyebrow" }, "In progress"),
    h("h2", { class: "place" }, "Locating ", h("em", {}, visit.name)),
    h("div", { class: "developing", "aria-hidden": "true" }, h("span")),
  );
}

export function problemColumn(visit: Visit, actions: Actions): HTMLElement {
  const { title, detail, advice, standard, canRetry } = visit.problem!;
  return h(
    "section",
    { class: "answer problem" },
    h("p", { class: "eyebrow" }, "No answer"),
    h("h2", { class: "place" }, title),
    detail !== title && detail !== "" && h("p", { class: "detail" }, ...rich(sentence(detail))),
    h("p", { class: "advice" }, ...rich(advice)),
    canRetry && h("button", { type: "button", class: "quiet", onclick: actions.retry }, "Try again"),
    standard !== "" && h("p", { class: "note" }, `Response of the server: ${standard}.`),
  );
}

/** The server's words as a sentence. */
export function sentence(text: string): string {
  const begun = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

export interface Playback {
  available: boolean;
  loading: boolean;
  playing: boolean;
  frame: number;
  count: number;
}

export interface Setting {
  theme: Theme;
  countries: readonly string[];
  /** Of the picture on the map, 0 to 1. */
  opacity: number;
}

export function answerColumn(visit: Visit, { theme, countries, opacity }: Setting, actions: Actions): HTMLElement {
  const best = visit.places[0]!;
  const summary = visit.summary!;
  const { model } = visit.answer!;
  const noun = nounOf(visit);
  const head = h(
    "section",
    { class: "answer", "aria-labelledby": "answer-title" },
    h("p", { class: "eyebrow" }, "Prediction", h("span", { class: "by" }, ` by ${model.name}`), !visit.final && h("span", { class: "by", id: "refining" }, " · refining")),
    h("h2", { class: "place", id: "answer-title" }, best.name),
    // A place that is named by its country has its coordinates around it: they follow anyway.
    best.around !== "" && best.around !== coordinates(best.latitude, best.longitude) && h("p", { class: "around" }, best.around),
    h("p", { class: "coordinates" }, coordinates(best.latitude, best.longitude, 3)),
    h(
      "p",
      { class: "lead" },
      h("strong", { class: "mass" }, percent(best.mass)),
      ` ${noun === "probability" ? "that it is here" : "of the score is here"}${visit.constraints.length > 0 ? ", given the constraint" : ""}. 50\u00a0% within ${km(summary.radius_50_km)}, 90\u00a0% within ${km(summary.radius_90_km)}.`,
    ),
    ...serverConstraint(visit),
    !model.calibrated && h("p", { class: "note warn" }, `The outputs of ${model.name} are scores, not calibrated probabilities. Scores only rank places.`),
    ...visit.answer!.warnings.map((warning) => h("p", { class: "note warn" }, ...rich(`Warning: ${sentence(warning)}`))),
    gpsNote(visit),
  );
  return h(
    "div",
    { class: "column" },
    head,
    ground(visit, opacity, actions),
    candidates(visit, noun, actions),
    legend(visit, theme),
    constraints(visit, countries, noun, actions),
    h("section", { id: "playback", class: "block playback", "aria-labelledby": "playback-title" }),
    saving(actions),
    facts(visit),
  );
}

/** What the server restricted the answer to, if it did. */
function serverConstraint({ answer }: Visit): HTMLElement[] {
  const { kept, within } = answer!;
  if (kept === undefined) return [];
  const { text, warning } = keptWords(kept, within);
  const lines = [h("p", { class: "note", id: "server-kept" }, text)];
  return warning === "" ? lines : [...lines, h("p", { class: "note warn" }, warning)];
}

function gpsNote(visit: Visit): HTMLElement | null {
  const exif = visit.answer!.exif;
  if (exif === null) return null;
  const where = [...nameParts(exif), coordinates(exif.latitude, exif.longitude, 3)].join(", ");
  return h("p", { class: "note" }, `Recorded by the camera (×): ${where}. This is ${km(exif.distance_km)} from the first candidate. The prediction does not use it.`);
}

/** The picture where it was taken, and a slider for how much of it is seen. */
function ground(visit: Visit, opacity: number, actions: Actions): HTMLElement | null {
  const ground = groundOf(visit);
  if (ground === null) return null;
  const { width_km, heading_degrees } = ground.footprint;
  const part = (share: number) => `${Math.round(100 * share)}\u00a0%`;
  const output = h("output", { for: "opacity", id: "opacity-label" }, part(opacity));
  const slider = h("input", {
    id: "opacity",
    type: "range",
    min: 0,
    max: 100,
    step: 5,
    value: Math.round(100 * opacity),
    "aria-label": "Opacity of the picture on the map",
    "aria-valuetext": part(opacity),
    oninput: (event) => {
      const input = event.currentTarget as HTMLInputElement;
      const share = Number(input.value) / 100;
      output.textContent = part(share);
      input.setAttribute("aria-valuetext", part(share));
      actions.fade(share);
    },
  });
  return h(
    "section",
    { class: "block ground", "aria-labelledby": "ground-title" },
    h("h3", { id: "ground-title" }, "Picture on the map"),
    ground.drape === null
      ? h("p", { class: "note" }, "This browser can't show the file. The map shows only the outline.")
      : h("div", { class: "row player" }, h("span", { "aria-hidden": "true" }, "Opacity"), slider, output),
    h("p", { class: "note" }, `${measuredKm(width_km)} wide; the top of the picture points to ${heading(heading_degrees)}. The model found this by comparing the picture with a map.`),
  );
}

export function candidateButton(place: Place, index: number, choose: (index: number) => void): HTMLElement {
  return h(
    "button",
    { type: "button", class: "candidate", id: `candidate-${index}`, "data-index": index, onclick: () => choose(index), style: `--part:${place.mass.toFixed(4)}` },
    h("span", { class: "rank" }, String(index + 1)),
    h("span", { class: "name" }, place.name, !isAnywhere(place) && h("small", {}, place.around || coordinates(place.latitude, place.longitude))),
    h("span", { class: "numbers" }, h("b", {}, percent(place.mass)), !isAnywhere(place) && h("small", {}, `± ${km(place.radius_km)}`)),
  );
}

function candidates(visit: Visit, noun: string, actions: Actions): HTMLElement {
  const row = (place: Place, index: number) => h("li", {}, candidateButton(place, index, actions.choose), references(place, actions));
  const shown = visit.places.filter((place, index) => index === 0 || place.mass >= 0.001);
  const list = h("ol", { class: "candidates" }, ...shown.slice(0, LISTED).map(row));
  const rest = shown.slice(LISTED);
  const more =
    rest.length > 0 &&
    h("button", {
      type: "button",
      class: "quiet more",
      onclick: (event) => {
        list.append(...rest.map((place, k) => row(place, LISTED + k)));
        (event.currentTarget as HTMLElement).remove();
        list.querySelectorAll("button")[LISTED]?.focus();
      },
    }, `${rest.length} more`);
  return h("section", { class: "block", "aria-labelledby": "candidates-title" }, h("h3", { id: "candidates-title" }, `Candidates, by ${noun}`), list, more);
}

/** Photographs of the model's gallery that a candidate rests on, by name, and as pictures once somebody looks. */
function references({ references }: Place, actions: Actions): HTMLElement | null {
  if (references === undefined || references.length === 0) return null;
  const entry = ({ id, similarity, distance_km }: Reference) =>
    h("li", { "data-id": id }, h("span", {}, h("span", { class: "id" }, id), ` · similarity ${similarity.toFixed(3)}, ${km(distance_km)} away`));
  const list = h("ul", {}, ...references.map(entry));
  const look = () => {
    for (const row of list.querySelectorAll<HTMLElement>("li:not([data-seen])")) {
      row.dataset["seen"] = "";
      void actions.thumbnail(row.dataset["id"]!).then((src) => src !== null && row.prepend(h("img", { src, alt: "" })));
    }
  };
  return h("details", { class: "references", ontoggle: look }, h("summary", {}, references.length === 1 ? "1 similar reference nearby" : `${references.length} similar references nearby`), list);
}

function legend(visit: Visit, theme: Theme): HTMLElement {
  const summary = visit.summary!;
  const stops = Array.from({ length: 25 }, (_, k) => {
    const [red, green, blue, alpha] = densityColour(theme, k / 24);
    return `rgba(${red},${green},${blue},${alpha.toFixed(3)}) ${((100 * k) / 24).toFixed(1)}%`;
  });
  const marks = ticks(summary.top_log_density).map(({ at, text }) => h("span", { class: "tick", style: `left:${(100 * at).toFixed(2)}%` }, text));
  const line = (kind: string, text: string) => h("li", {}, h("span", { class: `line ${kind}`, "aria-hidden": "true" }), text);
  return h(
    "section",
    { class: "block legend", "aria-labelledby": "legend-title" },
    h("h3", { id: "legend-title" }, "Reading the map"),
    h("p", { class: "scale-title" }, "Density, relative to a uniform density over the Earth"),
    h("div", { class: "scale" }, h("div", { class: "bar", style: `background-image:linear-gradient(to right,${stops.join(",")})` }), h("div", { class: "ticks" }, ...marks)),
    h(
      "ul",
      { class: "lines" },
      line("solid", `contains 50 %: ${km2(summary.area_50_km2)}`),
      line("dashed", `contains 90 %: ${km2(summary.area_90_km2)}`),
    ),
    summary.kernel_km !== null && h("p", { class: "note" }, `Spatial resolution: about ${km(summary.kernel_km)}.`),
  );
}

function constraints(visit: Visit, countries: readonly string[], noun: string, actions: Actions): HTMLElement {
  const input = h("input", { id: "within", type: "text", list: "countries", autocomplete: "off", spellcheck: "false", placeholder: "Portugal, land, 45.4,12.3,200km", "aria-describedby": "within-note within-problem" });
  const form = h(
    "form",
    {
      class: "within-form",
      onsubmit: (event) => {
        event.preventDefault();
        actions.constrain(input.value);
      },
    },
    h("label", { for: "within" }, "It was taken in"),
    h("div", { class: "field" }, input, h("button", { type: "submit", class: "quiet" }, "Apply")),
    h("datalist", { id: "countries" }, h("option", { value: "land" }), ...countries.map((name) => h("option", { value: name }))),
  );
  const chips = visit.constraints.map(({ label }, index) =>
    h("li", {}, h("button", { type: "button", class: "chip", "aria-label": `Remove the constraint ${label}`, onclick: () => actions.unconstrain(index) }, label, h("span", { "aria-hidden": "true" }, " ×"))),
  );
  const words = visit.constraints.length > 0 ? keptWords(visit.summary!.share) : null;
  return h(
    "section",
    { class: "block", "aria-labelledby": "within-title" },
    h("h3", { id: "within-title" }, "Constraints"),
    chips.length > 0 && h("ul", { class: "chips" }, ...chips),
    words !== null && h("p", { class: "kept", id: "kept" }, `${words.text} All numbers are normalized to this part.`),
    words !== null && words.warning !== "" && h("p", { class: "note warn", id: "kept-warning" }, words.warning),
    form,
    h("p", { id: "within-problem", class: "note warn", role: "alert" }),
    h("div", { class: "row" }, h("button", { type: "button", class: "quiet", id: "draw", onclick: actions.draw }, "Draw a region")),
    h("p", { id: "within-note", class: "note" }, `A country, “land”, a circle LATITUDE,LONGITUDE,RADIUSkm or a box SOUTH,WEST,NORTH,EAST. Several constraints must all hold. This page computes the new ${noun === "score" ? "scores" : "probabilities"} without the server.`),
  );
}

/** The denoising as the page can play it. Rendered by itself, because it changes often. */
export function playbackBlock(playback: Playback, actions: Actions): Node[] {
  const title = h("h3", { id: "playback-title" }, "Denoising steps");
  if (!playback.available) return [title, h("p", { class: "note" }, "This model has no denoising steps.")];
  const label = playback.loading ? "Loading the steps" : playback.playing ? "Pause" : playback.count === 0 ? "Play the denoising" : "Play";
  const button = h("button", { type: "button", class: "quiet play", id: "play", "aria-busy": playback.loading ? "true" : null, onclick: actions.play }, label);
  if (playback.count === 0) return [title, button, h("p", { class: "note" }, "Shows one sample on its way from noise to a place. Other samples end elsewhere. The map shows the whole density.")];
  const slider = h("input", {
    id: "frame",
    type: "range",
    min: 0,
    max: playback.count - 1,
    step: 1,
    value: playback.frame,
    "aria-label": "Step of the denoising",
    oninput: (event) => actions.seek(Number((event.currentTarget as HTMLInputElement).value)),
  });
  return [title, h("div", { class: "row player" }, button, slider, h("output", { for: "frame", id: "frame-label" }))];
}

function saving(actions: Actions): HTMLElement {
  const button = (id: string, text: string, run: () => void) => h("button", { type: "button", class: "quiet", id, onclick: run }, text);
  return h(
    "section",
    { class: "block", "aria-labelledby": "saving-title" },
    h("h3", { id: "saving-title" }, "Save"),
    h("div", { class: "row" }, button("save-report", "Report", actions.saveReport), button("save-png", "Map as PNG", actions.savePng), button("save-geojson", "GeoJSON", actions.saveGeojson)),
    h("p", { class: "note" }, "The report is one HTML file with the picture, its SHA-256, the model, the constraints and the map."),
  );
}

function facts(visit: Visit): HTMLElement {
  const { model, image, inference } = visit.answer!;
  const verified = visit.localSha256 === null ? "" : visit.localSha256 === image.sha256 ? " (the same in this browser)" : " (NOT what this browser computes)";
  const entries: [string, string][] = [
    ["Model", `${model.name}, version ${model.version}`],
    ["Description", model.description],
    ["Options", asked(inference)],
    ...(model.chosen_because ? [["Chosen because", model.chosen_because] as [string, string]] : []),
    ...(model.prior ? [["Assumption", model.prior] as [string, string]] : []),
    ["Picture", `${visit.name}, ${image.width} × ${image.height}, ${bytes(image.bytes)}`],
    ["SHA-256", image.sha256 + verified],
  ];
  return h(
    "details",
    { class: "block facts", id: "facts" },
    h("summary", {}, "Model and picture"),
    h("dl", {}, ...entries.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, ...rich(text))])),
  );
}

/** Makes the column of the same answer anew, without taking from people what they have typed, opened or focused there. */
export function keepingInput(remake: () => void): void {
  const focused = document.activeElement;
  const before = document.querySelector<HTMLInputElement>("#within");
  const problem = document.querySelector("#within-problem")?.textContent ?? "";
  const opened = document.querySelector("#facts")?.hasAttribute("open") ?? false;
  const expanded = document.querySelectorAll("#column .candidate").length > LISTED;
  remake();
  if (expanded) document.querySelector<HTMLElement>("#column .more")?.click();
  if (opened) document.querySelector("#facts")?.setAttribute("open", "");
  document.querySelector("#within-problem")?.replaceChildren(problem);
  const after = document.querySelector<HTMLInputElement>("#within");
  if (before !== null && after !== null) {
    after.value = before.value;
    after.setSelectionRange(before.selectionStart, before.selectionEnd);
    if (before.hasAttribute("aria-invalid")) after.setAttribute("aria-invalid", "true");
  }
  const again = focused === null || focused.isConnected ? focused : document.getElementById(focused.id);
  if (again instanceof HTMLElement && again !== document.body) again.focus({ preventScroll: true });
  else if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}
