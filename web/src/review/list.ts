// The list of pictures: however many there are, only the rows in sight exist.

import { percent } from "../format";
import { h } from "../html";
import { statusOf, type Picture, type Status, type View } from "./archive";

/** As in review.css. */
const ROW_PX = 68;
/** Rows beyond the edges. */
const MARGIN = 4;
/** New thumbnails are asked for once the list stands still. */
const REST_MS = 90;

/** A sign for each state: colors alone don't tell them apart. */
export const STATUSES: Record<Status, { sign: string; words: string }> = {
  estimate: { sign: "?", words: "estimate, undecided" },
  accepted: { sign: "✓", words: "accepted" },
  rejected: { sign: "✕", words: "rejected" },
  gps: { sign: "G", words: "GPS in the file" },
  none: { sign: "–", words: "no place" },
};

export interface ListActions {
  /** A row was clicked: with Shift to extend the selection, or on its box to toggle it. */
  choose(index: number, how: "show" | "extend" | "toggle"): void;
}

interface Row {
  element: HTMLElement;
  image: HTMLImageElement;
  name: HTMLElement;
  about: HTMLElement;
  sign: HTMLElement;
  words: HTMLElement;
  number: HTMLElement;
  index: number;
  /** Everything that the row shows: if it is the same, the row is left alone. */
  content: string;
}

/** The second line of a picture. */
export function aboutPicture(picture: Picture): string {
  if (picture.error !== null) return `Error: ${picture.error}`;
  if (picture.kind === "graphic") return "Graphic, not located";
  const where = picture.decision === "moved" ? "Placed by you" : (picture.place_name ?? (picture.gps !== null ? "GPS in the file" : picture.place === null ? "No place" : "Unnamed place"));
  return picture.time === null ? where : `${picture.time.slice(0, 10)} · ${where}`;
}

export class List {
  readonly #box: HTMLElement;
  readonly #sizer = h("div", { class: "sizer", role: "presentation" });
  readonly #pictures: readonly Picture[];
  readonly #view: View;
  readonly #noun: string;
  readonly #thumbnail: (picture: Picture) => string | null;
  readonly #rows: Row[] = [];
  readonly #seen = new Set<number>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  // Kept here: to ask the browser after a change would make it lay the page out at once.
  #top = 0;
  #height = 0;

  constructor(box: HTMLElement, pictures: readonly Picture[], view: View, noun: string, thumbnail: (picture: Picture) => string | null, actions: ListActions) {
    [this.#box, this.#pictures, this.#view, this.#noun, this.#thumbnail] = [box, pictures, view, noun, thumbnail];
    box.replaceChildren(this.#sizer);
    this.#height = box.clientHeight;
    const look = () => {
      [this.#top, this.#height] = [box.scrollTop, box.clientHeight];
      this.#render();
    };
    box.addEventListener("scroll", look, { passive: true });
    box.addEventListener("click", (event) => {
      const target = event.target as HTMLElement;
      const row = this.#rows.find(({ element }) => element.contains(target));
      if (row === undefined) return;
      const toggles = event.ctrlKey || event.metaKey || target.classList.contains("tick-box");
      actions.choose(row.index, event.shiftKey ? "extend" : toggles ? "toggle" : "show");
    });
    // Shift and a click would mark text.
    box.addEventListener("mousedown", (event) => event.shiftKey && event.preventDefault());
    new ResizeObserver(look).observe(box);
  }

  /** So many rows are in sight. */
  get page(): number {
    return Math.max(1, Math.floor(this.#height / ROW_PX) - 1);
  }

  /** Draws everything again, with the current picture in sight. */
  refresh(): void {
    const whole = this.#view.shown.length * ROW_PX;
    this.#sizer.style.height = `${whole}px`;
    this.#top = Math.max(0, Math.min(this.#top, whole - this.#height));
    const position = this.#view.position(this.#view.current);
    if (position >= 0) {
      const top = Math.max((position + 1) * ROW_PX - this.#height, Math.min(this.#top, position * ROW_PX));
      if (top !== this.#top) this.#box.scrollTop = this.#top = Math.max(0, top);
    }
    this.#render();
  }

  #render(): void {
    const { shown, current } = this.#view;
    const first = Math.max(0, Math.floor(this.#top / ROW_PX) - MARGIN);
    const last = Math.min(shown.length, Math.ceil((this.#top + this.#height) / ROW_PX) + MARGIN);
    while (this.#rows.length < last - first) this.#rows.push(this.#newRow());
    // A picture that stays in sight keeps its row: most of the time a row only moves.
    const wanted = shown.slice(first, last);
    const rows = new Map(this.#rows.map((row) => [row.index, row]));
    const inSight = new Set(wanted);
    const free = this.#rows.filter(({ index }) => !inSight.has(index));
    wanted.forEach((index, k) => this.#fill(rows.get(index) ?? free.pop()!, index, first + k));
    for (const row of free) {
      row.element.hidden = true;
      [row.index, row.content] = [-1, ""];
    }
    if (current !== null && this.#view.position(current) >= 0) this.#box.setAttribute("aria-activedescendant", `row-${current}`);
    else this.#box.removeAttribute("aria-activedescendant");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#loadThumbnails(), REST_MS);
  }

  #newRow(): Row {
    const parts = {
      image: h("img", { alt: "", width: 52, height: 52, decoding: "async" }),
      name: h("b"),
      about: h("small"),
      sign: h("i", { class: "sign", "aria-hidden": "true" }),
      words: h("span", { class: "unseen" }),
      number: h("span", { class: "numbers" }),
    };
    const element = h("div", { class: "row-item", role: "option" }, h("span", { class: "tick-box" }), parts.image, h("span", { class: "what" }, parts.name, parts.about), h("span", { class: "state" }, parts.number, parts.sign, parts.words));
    this.#sizer.append(element);
    // A file that can't be shown stays an empty frame.
    parts.image.addEventListener("error", () => parts.image.removeAttribute("src"));
    return { element, ...parts, index: -1, content: "" };
  }

  #fill(row: Row, index: number, position: number): void {
    const picture = this.#pictures[index]!;
    const { selected, current, shown } = this.#view;
    const { element } = row;
    const status = statusOf(picture);
    const about = aboutPicture(picture);
    const number = picture.confidence === null ? "" : percent(picture.confidence);
    const content = [index, position, shown.length, status, about, selected.has(index), index === current].join("|");
    if (row.content === content) return;
    row.content = content;
    if (row.index !== index) {
      row.index = index;
      element.id = `row-${index}`;
      this.#showThumbnail(row.image, this.#seen.has(index) ? picture : null);
    }
    element.hidden = false;
    element.style.transform = `translateY(${position * ROW_PX}px)`;
    element.dataset["status"] = status;
    const set = (name: string, value: string | null) => (value === null ? element.removeAttribute(name) : element.setAttribute(name, value));
    set("aria-selected", String(selected.has(index)));
    set("aria-current", index === current ? "true" : null);
    set("aria-posinset", String(position + 1));
    set("aria-setsize", String(shown.length));
    row.name.textContent = picture.name;
    row.about.textContent = about;
    row.number.textContent = number;
    row.sign.textContent = STATUSES[status].sign;
    row.words.textContent = `${number === "" ? "" : this.#noun}, ${STATUSES[status].words}`;
  }

  #loadThumbnails(): void {
    for (const { element, image, index } of this.#rows) {
      if (element.hidden || this.#seen.has(index)) continue;
      this.#seen.add(index);
      this.#showThumbnail(image, this.#pictures[index]!);
    }
  }

  #showThumbnail(image: HTMLImageElement, picture: Picture | null): void {
    const src = picture && this.#thumbnail(picture);
    if (src === null) image.removeAttribute("src");
    else image.src = src;
  }
}
