// The map as it is seen, as a picture with its caption: a prediction is called one on it.

import { densityColour, GROUND, ticks } from "../colours";
import { percent } from "../format";
import type { Globe } from "../globe";
import { nounOf, type Visit } from "../visit";

const SERIF = '"Newsreader Variable", Georgia, serif';
const SANS = '"Instrument Sans Variable", system-ui, sans-serif';

export async function mapPicture(globe: Globe, visit: Visit): Promise<HTMLCanvasElement> {
  await globe.settled();
  const stage = globe.map.getCanvas();
  const ratio = stage.width / stage.clientWidth;
  const [width, mapHeight] = [stage.width, stage.height];
  const [header, footer] = [64 * ratio, 84 * ratio];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, mapHeight + header + footer];
  const pen = canvas.getContext("2d")!;
  const ground = GROUND[globe.theme];
  pen.fillStyle = ground.space;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  // The drawing buffer holds the map only while it is being drawn.
  await new Promise<void>((resolve) => {
    globe.map.once("render", () => {
      pen.drawImage(stage, 0, header);
      resolve();
    });
    globe.map.triggerRepaint();
  });
  pen.save();
  pen.translate(0, header);
  pen.scale(ratio, ratio);
  drawPins(pen, globe, visit);
  pen.restore();
  pen.scale(ratio, ratio);
  drawTexts(pen, globe, visit, { width: width / ratio, header: header / ratio, bottom: (header + mapHeight) / ratio });
  return canvas;
}

function drawPins(pen: CanvasRenderingContext2D, globe: Globe, visit: Visit): void {
  const ground = GROUND[globe.theme];
  const hidden = globe.map.transform as unknown as { isLocationOccluded?: (place: { lng: number; lat: number }) => boolean };
  const listed = visit.places.slice(0, 9).map((place, index) => ({ place, index })).reverse();
  for (const { place, index } of listed) {
    const at = { lng: place.longitude, lat: place.latitude };
    if (hidden.isLocationOccluded?.(at as never)) continue;
    const { x, y } = globe.map.project([at.lng, at.lat]);
    // On a needle, as on the page.
    pen.fillStyle = ground.halo;
    pen.fillRect(x - 2, y - 18, 4, 19);
    pen.fillStyle = ground.mark;
    pen.fillRect(x - 1, y - 18, 2, 18);
    pen.beginPath();
    pen.arc(x, y - 28, 11, 0, 2 * Math.PI);
    pen.strokeStyle = ground.halo;
    pen.lineWidth = 2;
    pen.fill();
    pen.stroke();
    pen.fillStyle = ground.halo;
    pen.font = `600 11px ${SANS}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(String(index + 1), x, y - 27.5);
  }
}

function drawTexts(
  pen: CanvasRenderingContext2D,
  globe: Globe,
  visit: Visit,
  { width, header, bottom }: { width: number; header: number; bottom: number },
): void {
  const ground = GROUND[globe.theme];
  const best = visit.places[0]!;
  const { model } = visit.answer!;
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = ground.text;
  pen.font = `500 24px ${SERIF}`;
  const title = [best.name, best.around].filter((part) => part !== "").join(", ");
  pen.fillText(`${title}, ${percent(best.mass)} ${nounOf(visit)}`, 24, header - 24, width - 48);
  pen.font = `13px ${SANS}`;
  const within = visit.constraints.length > 0 ? ` Only within ${visit.constraints.map(({ label }) => label).join(" and ")}.` : "";
  const scores = model.calibrated ? "" : "; scores, not probabilities";
  const lines = [
    `A prediction by ${model.name} (${model.version}), not a fact${scores}.${within}`,
    `Lines: the smallest regions that contain 50 % (solid) and 90 % (dashed). Picture: ${visit.name}`,
  ];
  const barWidth = Math.min(260, width / 3);
  lines.forEach((line, k) => pen.fillText(line, 24, bottom + 34 + 20 * k, width - barWidth - 84));
  const left = width - barWidth - 24;
  for (let k = 0; k < barWidth; k++) {
    const [red, green, blue, alpha] = densityColour(globe.theme, k / barWidth);
    pen.fillStyle = `rgba(${red},${green},${blue},${alpha})`;
    pen.fillRect(left + k, bottom + 34, 1.5, 8);
  }
  pen.fillStyle = ground.text;
  pen.fillText("Density, × uniform", left, bottom + 24, barWidth);
  pen.font = `11px ${SANS}`;
  pen.textAlign = "center";
  for (const { at, text } of ticks(visit.summary!.top_log_density)) pen.fillText(text, left + at * barWidth, bottom + 56);
  pen.textAlign = "left";
  pen.font = `11px ${SANS}`;
  pen.fillText("Coastlines: Natural Earth", 24, bottom + 74);
}

export function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the map can't be saved as PNG"))), "image/png");
  });
}
