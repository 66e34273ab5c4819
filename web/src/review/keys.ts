// The keys of the review page, as they work and as they are listed.

import { h } from "../html";

interface Key {
  /** As the browser names them, anywhere on the page. */
  keys: string[];
  /** Only while the list, or nothing, has the focus. */
  inList?: string[];
  command: string;
  /** Missing: the key is a variant of the one before. */
  words?: [keys: string, what: string];
}

export const KEYS: readonly Key[] = [
  { keys: ["a"], command: "accept", words: ["a", "Accept the estimate, of all selected pictures if there are any"] },
  { keys: ["r"], command: "reject", words: ["r", "Reject the estimate"] },
  { keys: ["u"], command: "undo", words: ["u", "Undo the last decision"] },
  { keys: ["c"], command: "clear", words: ["c", "Clear the decision: the picture is undecided again"] },
  { keys: ["j"], inList: ["ArrowDown"], command: "next", words: ["j or ↓", "Next picture"] },
  { keys: ["k"], inList: ["ArrowUp"], command: "previous", words: ["k or ↑", "Previous picture"] },
  { keys: [], inList: ["PageDown"], command: "nextPage", words: ["Page ↑ ↓, Home, End", "Move further in the list"] },
  { keys: [], inList: ["PageUp"], command: "previousPage" },
  { keys: [], inList: ["Home"], command: "first" },
  { keys: [], inList: ["End"], command: "last" },
  { keys: ["x"], inList: [" "], command: "toggle", words: ["x or Space", "Select or deselect the picture"] },
  { keys: ["J"], inList: ["Shift+ArrowDown"], command: "extendNext", words: ["Shift+J, Shift+↓", "Select to the next picture"] },
  { keys: ["K"], inList: ["Shift+ArrowUp"], command: "extendPrevious", words: ["Shift+K, Shift+↑", "Select to the previous picture"] },
  { keys: ["A"], command: "all", words: ["Shift+A", "Select all pictures shown, or none"] },
  { keys: ["Escape"], command: "unselect", words: ["Escape", "Select nothing"] },
  { keys: ["m"], command: "move", words: ["m", "Move the pin: arrow keys (with Shift further), Enter stores, Escape cancels"] },
  { keys: ["f"], command: "fit", words: ["f", "Fit the map to the picture’s 90 % circle"] },
  { keys: ["s"], command: "sort", words: ["s", "Next order of the list"] },
  { keys: ["?"], command: "help", words: ["?", "Show these keys"] },
];

export function keysTable(): HTMLElement[] {
  const listed = KEYS.flatMap(({ words }) => (words === undefined ? [] : [words]));
  const numbers: [string, string] = ["1 to 9", "Place the picture at this candidate"];
  const rows = [...listed.slice(0, 2), numbers, ...listed.slice(2)].flatMap(([keys, what]) => [h("dt", {}, keys), h("dd", {}, what)]);
  return [h("h2", { id: "keys-title" }, "Keys"), h("dl", {}, ...rows), h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close"))];
}
