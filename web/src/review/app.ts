// The review: keys and clicks to decisions, and decisions to list, map, timeline and server.

import type { Server } from "../api";
import type { Basemap } from "../basemap";
import type { Globe } from "../globe";
import { byId, h, rich, toast } from "../html";
import { apply, nameSwitch, onSystemTheme } from "../theme";
import { FILTERS, isDecidable, nounOf, passes, SORTS, View, type Archive, type Filter, type LatLon, type Picture, type Sort } from "./archive";
import { Decisions, Outbox, type OutboxState } from "./decisions";
import { KEYS, keysTable } from "./keys";
import { List, STATUSES } from "./list";
import { ArchiveMap, candidatePlaces, SLOW_FRAME_MS } from "./map";
import { pictureColumn } from "./picture";
import { Timeline } from "./timeline";

/** Pixels of the map for one of the screen, at least, on machines without a graphics processor. */
const COARSEST = 0.5;

/** None of a file that can't be read. */
const thumbnail = ({ id, error }: Picture, size: number) => (error === null ? new URL(`v1/archive/thumbnail/${id}?size=${size}`, document.baseURI).href : null);
const count = (n: number, noun = "picture") => `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;

export class Review {
  readonly view: View;
  readonly #archive: Archive;
  readonly #basemap: Basemap;
  readonly #globe: Globe;
  readonly #decisions: Decisions;
  readonly #outbox: Outbox;
  readonly #list: List;
  readonly #map: ArchiveMap;
  readonly #timeline: Timeline;
  readonly #buttons: Record<"accept" | "reject" | "undo" | "view", HTMLElement>;
  #settling: ReturnType<typeof setTimeout> | undefined;

  constructor(archive: Archive, server: Server, globe: Globe, basemap: Basemap) {
    [this.#archive, this.#globe, this.#basemap] = [archive, globe, basemap];
    const { pictures } = archive;
    this.view = new View(pictures);
    this.#outbox = new Outbox(async (records) => this.#withdraw(await server.decide(records)), (state) => this.#showOutbox(state));
    this.#decisions = new Decisions(pictures, (records) => this.#outbox.put(records));
    this.#list = new List(byId("list"), pictures, this.view, nounOf(archive), (picture) => thumbnail(picture, 256), {
      choose: (index, how) => {
        if (how === "toggle") this.view.toggle(index);
        if (how === "extend") this.view.extend(index);
        if (how === "show") document.body.dataset["view"] = "picture";
        this.show(index);
      },
    });
    // The first drawing takes longer than those that follow.
    let frameMs = Math.min(globe.frameMs(), globe.frameMs());
    if (frameMs > SLOW_FRAME_MS) {
      // A drawing holds up keys and clicks: rather a coarse map than a slow page.
      globe.map.setPixelRatio(Math.max(COARSEST, Math.sqrt(SLOW_FRAME_MS / frameMs)));
      frameMs = Math.min(globe.frameMs(), globe.frameMs());
    }
    this.#map = new ArchiveMap(globe, basemap, pictures, nounOf(archive), frameMs, {
      choose: (index) => this.show(index),
      candidate: (index) => this.#chooseCandidate(index),
      move: (place) => this.#move(place, "where you put it"),
      stay: () => byId("list").focus({ preventScroll: true }),
    });
    this.#timeline = new Timeline(byId("timeline"), this.view, (range) => {
      this.view.range = range;
      this.#refilter();
    });
    this.#buttons = this.#furnish();
    byId("library").textContent = archive.library;
    document.title = `${archive.library}: review`;
    document.addEventListener("keydown", (event) => this.#onKey(event));
    addEventListener("beforeunload", (event) => this.#outbox.waiting > 0 && event.preventDefault());
    onSystemTheme((theme) => this.#setTheme(theme));
    this.#refilter();
    this.#map.settle();
    globe.keepNamesClearOf([byId("legend")]);
    byId("list").focus({ preventScroll: true });
  }

  get current(): Picture | null {
    return this.view.current === null ? null : this.#archive.pictures[this.view.current]!;
  }

  get waiting(): number {
    return this.#outbox.waiting;
  }

  /** Looks at a picture. */
  show(index: number | null): void {
    const { view } = this;
    const left = view.current;
    view.current = index;
    // One that was kept in spite of the filter goes when another is looked at.
    if (left !== null && left !== index && !passes(view.filter, this.#archive.pictures[left]!)) view.refresh(index);
    this.#refresh();
  }

  /** Everything that shows the current picture or the selection. */
  #refresh(): void {
    const { view } = this;
    this.#list.refresh();
    this.#showPicture();
    this.#map.look(view.current);
    const selected = view.selected.size;
    byId("count").textContent = view.shown.length === 0 ? "No pictures" : `${(view.position(view.current) + 1).toLocaleString("en-US")} of ${count(view.shown.length)}`;
    byId("selection").hidden = selected === 0;
    byId("selected").textContent = `${count(selected)} selected`;
    this.#buttons.accept.textContent = selected > 0 ? `Accept ${selected.toLocaleString("en-US")}` : "Accept";
    this.#buttons.reject.textContent = selected > 0 ? `Reject ${selected.toLocaleString("en-US")}` : "Reject";
    const isIdle = selected === 0 && (this.current === null || !isDecidable(this.current));
    for (const button of [this.#buttons.accept, this.#buttons.reject]) button.setAttribute("aria-disabled", String(isIdle));
    this.#buttons.undo.toggleAttribute("disabled", this.#decisions.undoable === 0);
    this.#buttons.view.textContent = document.body.dataset["view"] === "list" ? "Picture" : "List";
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#settle(), this.#map.rest());
  }

  #settle(): void {
    this.#map.settle();
    // The next one is looked at next.
    const next = this.view.neighbor(1);
    const src = next === null ? null : thumbnail(this.#archive.pictures[next]!, 1024);
    if (src !== null) new Image().src = src;
  }

  #showPicture(): void {
    const picture = this.current;
    const [column, evidence] = [byId("column"), byId("evidence")];
    // Before the change: afterwards the page would be laid out twice.
    if (evidence.scrollTop !== 0) evidence.scrollTop = 0;
    if (picture === null) return column.replaceChildren(h("p", { class: "note" }, "No picture is shown. Choose another filter or another time."));
    const places = candidatePlaces(picture, this.#basemap);
    column.replaceChildren(pictureColumn({ picture, archive: this.#archive, places, thumbnail: (size) => thumbnail(picture, size), chooseCandidate: (index) => this.#chooseCandidate(index) }));
  }

  /** Shows what passes the filter now. */
  #refilter(): void {
    const { view } = this;
    view.refresh();
    if (view.position(view.current) === -1) view.current = view.shown[0] ?? null;
    this.#afterFilter();
    this.#refresh();
  }

  #afterFilter(): void {
    const { view } = this;
    this.#map.filter((index) => view.position(index) >= 0);
    this.#timeline.refresh((index) => passes(view.filter, this.#archive.pictures[index]!));
    for (const label of byId("filters").querySelectorAll<HTMLElement>("[data-filter]")) label.textContent = view.count(label.dataset["filter"] as Filter).toLocaleString("en-US");
  }

  #decide(decision: "accepted" | "rejected" | null): void {
    const { view } = this;
    const subjects = view.subjects;
    const isBulk = view.selected.size > 0;
    const [changed, next] = [this.#decisions.decide(subjects, decision), view.neighbor(1)];
    const left = subjects.length - changed.length;
    const verb = decision === null ? "Cleared the decision on" : decision === "accepted" ? "Accepted" : "Rejected";
    if (changed.length === 0) return this.#say(`Nothing to change: ${isBulk ? "these pictures have" : "this picture has"} no estimate to decide, or ${isBulk ? "are" : "is"} decided already.`, true);
    this.#say(`${verb} ${isBulk ? count(changed.length) : this.#archive.pictures[changed[0]!]!.name}.${left > 0 ? ` ${count(left)} unchanged.` : ""}`, isBulk);
    if (isBulk) view.unselect();
    // One decision leads to the next picture; after many, the first that is still to be decided is shown.
    this.#decided(changed, isBulk || decision === null ? view.current : next);
  }

  /** Shows decisions, and then a picture. */
  #decided(changed: readonly number[], index: number | null): void {
    const { view } = this;
    view.current = index;
    view.refresh(index);
    this.#map.touch(changed);
    this.#afterFilter();
    this.#refresh();
  }

  #chooseCandidate(number: number): void {
    const candidate = this.current?.candidates[number];
    if (candidate !== undefined) this.#move([candidate.latitude, candidate.longitude], `at candidate ${number + 1}`);
  }

  #move(place: LatLon, where: string): void {
    const { current } = this.view;
    if (current === null) return;
    this.#decisions.move(current, place);
    this.#say(`${this.#archive.pictures[current]!.name} is placed ${where}.`);
    this.#decided([current], current);
  }

  /** A scan has other answers by now than this page shows. */
  #withdraw(ids: readonly string[]): void {
    if (ids.length === 0) return;
    const changed = this.#decisions.withdraw(ids);
    this.#say(`Not accepted: a scan has changed the ${changed.length === 1 ? "place" : "places"} of ${count(changed.length)}. Reload the page to see the new ${changed.length === 1 ? "one" : "ones"}.`, true);
    this.#decided(changed, this.view.current);
  }

  #undo(): void {
    const changed = this.#decisions.undo();
    if (changed.length === 0) return this.#say("Nothing to undo.", true);
    this.#say(`Undone: ${changed.length === 1 ? this.#archive.pictures[changed[0]!]!.name : count(changed.length)}.`, changed.length > 1);
    this.#decided(changed, changed[0]!);
  }

  #step(by: number, extends_: boolean): void {
    const next = this.view.neighbor(by);
    if (extends_ && next !== null) this.view.extend(next);
    this.show(next);
  }

  readonly #commands: Record<string, () => void> = {
    next: () => this.#step(1, false),
    previous: () => this.#step(-1, false),
    extendNext: () => this.#step(1, true),
    extendPrevious: () => this.#step(-1, true),
    nextPage: () => this.#step(this.#list.page, false),
    previousPage: () => this.#step(-this.#list.page, false),
    first: () => this.#step(-this.view.shown.length, false),
    last: () => this.#step(this.view.shown.length, false),
    accept: () => this.#decide("accepted"),
    reject: () => this.#decide("rejected"),
    clear: () => this.#decide(null),
    undo: () => this.#undo(),
    toggle: () => {
      if (this.view.current !== null) this.view.toggle(this.view.current);
      this.#refresh();
    },
    all: () => {
      this.view.selectAll();
      this.#refresh();
    },
    unselect: () => {
      this.view.unselect();
      this.#refresh();
    },
    move: () => this.#map.takePin(),
    fit: () => this.#map.fit(),
    sort: () => {
      const sorts = Object.keys(SORTS) as Sort[];
      this.#sort(sorts[(sorts.indexOf(this.view.sort) + 1) % sorts.length]!);
    },
    help: () => byId<HTMLDialogElement>("keys").showModal(),
  };

  #sort(sort: Sort): void {
    this.view.sort = sort;
    byId<HTMLSelectElement>("sort").value = sort;
    this.#say(SORTS[sort]);
    this.#refilter();
  }

  #onKey(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || byId<HTMLDialogElement>("keys").open) return;
    if (target instanceof HTMLSelectElement) return;
    // Arrows and the like belong to what has the focus: a filter, the timeline, the map, a button.
    const isList = target === document.body || target.id === "list";
    const key = event.shiftKey && event.key.length > 1 ? `Shift+${event.key}` : event.key;
    const digit = /^[1-9]$/.test(key) ? Number(key) : null;
    const command = KEYS.find(({ keys, inList }) => (keys.includes(key) || (isList && inList?.includes(key))))?.command;
    if (digit !== null) this.#chooseCandidate(digit - 1);
    else if (command !== undefined) this.#commands[command]!();
    else return;
    event.preventDefault();
  }

  /** Filters, order, buttons, colors and keys. */
  #furnish(): Record<"accept" | "reject" | "undo" | "view", HTMLElement> {
    const { view } = this;
    const filters = (Object.keys(FILTERS) as Filter[]).map((filter) => {
      const input = h("input", { type: "radio", class: "unseen", name: "filter", value: filter, checked: filter === view.filter });
      input.addEventListener("change", () => {
        view.filter = filter;
        this.#refilter();
      });
      return h("label", { class: "chip" }, input, FILTERS[filter], " ", h("span", { "data-filter": filter }));
    });
    byId("filters").append(...filters);
    const sort = byId<HTMLSelectElement>("sort");
    sort.append(...Object.entries(SORTS).map(([value, text]) => h("option", { value }, text)));
    sort.addEventListener("change", () => this.#sort(sort.value as Sort));
    const button = (text: string, name: string, title: string, kind = "quiet") => h("button", { type: "button", class: kind, title, "data-command": name, onclick: () => this.#commands[name]!() }, text);
    byId("selection").append(h("p", { id: "selected" }), button("All shown", "all", "Select all pictures shown (Shift+A)"), button("None", "unselect", "Select nothing (Escape)"));
    const step = (text: string, name: string, label: string) => {
      const made = button(text, name, label, "quiet step-button");
      made.setAttribute("aria-label", label);
      return made;
    };
    const buttons = {
      reject: button("Reject", "reject", "Reject the estimate (r)", "quiet verdict-reject"),
      accept: button("Accept", "accept", "Accept the estimate (a)", "primary"),
      undo: button("Undo", "undo", "Take the last decision back (u)"),
      view: h("button", { type: "button", class: "quiet view-switch", onclick: () => this.#switchView() }, "Picture"),
    };
    byId("decide").append(step("‹", "previous", "Previous picture (k)"), buttons.reject, buttons.accept, step("›", "next", "Next picture (j)"), buttons.undo, buttons.view);
    const legend = (["estimate", "accepted", "rejected", "gps"] as const).map((status) => h("li", { "data-status": status }, h("i", { class: "sign", "aria-hidden": "true" }, STATUSES[status].sign), { estimate: "Estimate", accepted: "Accepted", rejected: "Rejected", gps: "GPS" }[status]));
    byId("legend").append(...legend);
    byId("keys").prepend(...keysTable());
    byId("help").addEventListener("click", () => this.#commands["help"]!());
    nameSwitch(byId("theme"), this.#globe.theme);
    byId("theme").addEventListener("click", () => this.#setTheme(this.#globe.theme === "dark" ? "day" : "dark"));
    return buttons;
  }

  /** On a telephone either the list is seen, or the picture and the map. */
  #switchView(): void {
    document.body.dataset["view"] = document.body.dataset["view"] === "list" ? "picture" : "list";
    this.#refresh();
  }

  #setTheme(theme: "day" | "dark"): void {
    apply(theme);
    nameSwitch(byId("theme"), theme);
    this.#map.setTheme(theme);
    this.#timeline.draw();
  }

  #showOutbox({ waiting, problem }: OutboxState): void {
    const box = byId("outbox");
    box.hidden = problem === null;
    if (problem === null) return;
    box.replaceChildren(h("p", {}, ...rich(`${count(waiting, "decision")} not stored yet: ${problem} Retrying; keep this page open.`)), h("button", { type: "button", class: "quiet", onclick: () => this.#outbox.retry() }, "Retry now"));
  }

  #say(message: string, visible = false): void {
    byId("live").textContent = message;
    if (visible) toast(message);
  }
}
