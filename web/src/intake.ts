// Ways in for pictures: dropped, pasted, chosen, or one of the examples.

import { byId } from "./html";

export interface Incoming {
  file: Blob;
  name: string;
}

/** Where people choose from their photos, and can't drop a file. The width is that of style.css. */
const PHONE = "(pointer: coarse), (max-width: 54rem)";

export interface ChooserWords {
  lead: string;
  button: string;
}

export function chooserWords(isPhone: boolean, isFirst: boolean): ChooserWords {
  const noun = isPhone ? "photo" : "picture";
  const how = isPhone ? "Choose a photo." : "Drop a picture anywhere, paste it, or choose one.";
  return { lead: `${how} The answer is a map of where such ${noun}s are taken.`, button: isFirst ? `Choose a ${noun}` : `Choose another ${noun}` };
}

/** Writes the words now, and again if the window changes. `isFirst`: whether no picture was chosen yet. */
export function nameChooser(isFirst: () => boolean): () => void {
  const phone = matchMedia(PHONE);
  const write = () => {
    const { lead, button } = chooserWords(phone.matches, isFirst());
    byId("bench-lead").textContent = lead;
    byId("file-label").textContent = button;
  };
  phone.addEventListener("change", write);
  write();
  return write;
}

export function listenForPictures(take: (pictures: Incoming[]) => void, refuse: (message: string) => void): void {
  const input = byId<HTMLInputElement>("file");
  const accept = (files: readonly File[]) => {
    if (files.length > 0) take(files.map((file) => ({ file, name: file.name || "pasted picture" })));
  };
  input.addEventListener("change", () => {
    accept([...(input.files ?? [])]);
    // The same file again is a change too.
    input.value = "";
  });

  const curtain = byId("drop");
  const carriesFiles = (event: DragEvent) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0;
  document.addEventListener("dragenter", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth++;
    curtain.hidden = false;
  });
  document.addEventListener("dragover", (event) => {
    if (carriesFiles(event)) event.preventDefault();
  });
  document.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    curtain.hidden = depth === 0;
  });
  document.addEventListener("drop", (event) => {
    depth = 0;
    curtain.hidden = true;
    if (!carriesFiles(event)) return;
    event.preventDefault();
    accept([...(event.dataTransfer?.files ?? [])]);
  });

  document.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    const isText = event.target instanceof HTMLInputElement;
    if (files.length > 0) {
      event.preventDefault();
      accept(files);
    } else if (!isText) {
      refuse("There is no picture on the clipboard. Copy a picture or a picture file, then paste again.");
    }
  });

  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-example]")) {
    button.addEventListener("click", async () => {
      const name = `${button.dataset["example"]}.jpg`;
      const response = await fetch(new URL(`examples/${name}`, document.baseURI));
      if (response.ok) take([{ file: await response.blob(), name }]);
      else refuse("The example could not be loaded from the server.");
    });
  }
}
