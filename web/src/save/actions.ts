// Saving what the page shows.

import type { Globe } from "../globe";
import type { Visit } from "../visit";
import { dataUrl, fileName, save } from "./files";
import { geojsonOf } from "./geojson";
import { mapPicture, pngOf } from "./picture";
import { reportOf } from "./report";

/** Larger files are shown scaled down in the report; the hash is always the file's. */
const WHOLE_FILE_BYTES = 4e6;
const REPORT_PIXELS = 1600;

export async function saveMap(globe: Globe, visit: Visit): Promise<void> {
  save(await pngOf(await mapPicture(globe, visit)), fileName(visit.name, "map.png"));
}

export function saveGeojson(visit: Visit): void {
  const text = JSON.stringify(geojsonOf(visit), null, 1);
  save(new Blob([text], { type: "application/geo+json" }), fileName(visit.name, "prediction.geojson"));
}

export async function saveReport(globe: Globe, visit: Visit, pageVersion: string): Promise<void> {
  const map = (await mapPicture(globe, visit)).toDataURL("image/jpeg", 0.9);
  const { picture, note } = await reportPicture(visit.file);
  const text = reportOf({ visit, map, picture, pictureNote: note, pageVersion, date: new Date() });
  save(new Blob([text], { type: "text/html" }), fileName(visit.name, "report.html"));
}

async function reportPicture(file: Blob): Promise<{ picture: string | null; note: string }> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    return { picture: null, note: "" };
  }
  // The file itself, if it is small and every browser shows its kind.
  if (file.size <= WHOLE_FILE_BYTES && /^image\/(jpeg|png|webp|gif)$/.test(file.type)) {
    return { picture: await dataUrl(file), note: "" };
  }
  const scale = Math.min(1, REPORT_PIXELS / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(scale * bitmap.width), Math.round(scale * bitmap.height)];
  canvas.getContext("2d")!.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return { picture: canvas.toDataURL("image/jpeg", 0.85), note: "A copy for this report; the hash is that of the file as it was sent." };
}
