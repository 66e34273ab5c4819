// Files for the person at the page.

/** Offers a file for saving. */
export function save(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken the content by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** “IMG 001.jpg”, “map.png” → “IMG-001-map.png” */
export function fileName(picture: string, ending: string): string {
  const stem = picture.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${stem || "picture"}-${ending}`;
}

export async function dataUrl(content: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(new Error("the picture can't be read any more"));
    reader.readAsDataURL(content);
  });
}
