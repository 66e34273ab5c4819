// Ways in for pictures: dropped, pasted, chosen, or one of the examples.

import { byId } from "./html";

export interface Incoming {
  file: Blob;
  name: string;
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
      refuse("There is no picture on the clipboard. Copy one, or a picture file, and paste again.");
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
