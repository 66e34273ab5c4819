// Elements without a framework. Text always goes in as text, never as markup; `code` in backticks is the one exception.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void) | null | undefined>;

/** h("button", { class: "quiet", onclick: … }, "Play") */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

/** The parts of a text by turns: text, `code`, text, … Backticks without a partner are text. */
export function codeParts(text: string): { text: string; isCode: boolean }[] {
  const parts = text.split(/(`[^`\n]+`)/);
  return parts.map((part, index) => (index % 2 === 1 ? { text: part.slice(1, -1), isCode: true } : { text: part, isCode: false })).filter((part) => part.text !== "");
}

/** A text of the server for `h`: what stands in backticks becomes a `<code>` element. */
export function rich(text: string): (Node | string)[] {
  return codeParts(text).map((part) => (part.isCode ? h("code", {}, part.text) : part.text));
}

/** The same where no element can be: for screen readers, titles and messages. */
export function withoutTicks(text: string): string {
  return codeParts(text).map((part) => part.text).join("");
}

export function byId<T extends HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page lacks #${id}`);
  return element as T;
}

/** A message over the page, for some seconds. People who hear the page read it elsewhere. */
export function toast(message: string): void {
  document.querySelector(".toast")?.remove();
  const note = h("p", { class: "toast", "aria-hidden": "true" }, ...rich(message));
  document.body.append(note);
  setTimeout(() => note.remove(), 7000);
}

/** For the report, which is written as a text. */
export function escaped(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (sign) => names[sign]!);
}

/** `escaped`, with code in backticks as an element. */
export function escapedRich(text: string): string {
  return codeParts(text).map((part) => (part.isCode ? `<code>${escaped(part.text)}</code>` : escaped(part.text))).join("");
}
