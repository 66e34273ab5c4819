// The column of the picture that is looked at: what it shows, where it may be, and why.

import { candidateButton } from "../column";
import { coordinates, km, percent } from "../format";
import { h, rich } from "../html";
import type { Place } from "../names";
import { nounOf, placeOf, statusOf, type Archive, type Picture } from "./archive";
import { STATUSES } from "./list";

export interface Shown {
  picture: Picture;
  archive: Archive;
  places: Place[];
  thumbnail(size: number): string | null;
  chooseCandidate(index: number): void;
}

/** What stands on the map, and its source. */
function eyebrow({ picture, archive: { model } }: Shown): string {
  if (picture.decision === "moved") return "Placed by you";
  if (picture.gps !== null) return "GPS in the file";
  if (picture.place === null) return picture.error !== null ? "Not located: error" : picture.kind === "graphic" ? "Not located: graphic" : "Not located";
  return `Estimate of ${model?.name ?? "an unknown model"}`;
}

function title(picture: Picture, [first]: Place[]): string {
  const place = placeOf(picture);
  if (place === null) return picture.name;
  // The name is that of the estimate or of the GPS data, not of a pin.
  if (picture.decision === "moved") return "Your pin";
  return picture.place_name ?? first?.name ?? (picture.gps === null ? "Estimated place" : "Measured place");
}

export function pictureColumn(shown: Shown): HTMLElement {
  const { picture, archive, places } = shown;
  const status = statusOf(picture);
  const noun = nounOf(archive);
  const place = placeOf(picture);
  const { radius_68_km: inner, radius_90_km: outer } = picture;
  const radii = inner !== null && outer !== null && ` 68\u00a0% within ${km(inner)}, 90\u00a0% within ${km(outer)}.`;
  return h(
    "section",
    { class: "answer", "aria-labelledby": "picture-title" },
    h("figure", { class: "large" }, preview(shown)),
    h("p", { class: "eyebrow" }, eyebrow(shown), h("span", { class: "verdict", "data-status": status }, h("i", { class: "sign", "aria-hidden": "true" }, STATUSES[status].sign), ` ${picture.decision ?? (status === "estimate" ? "undecided" : "")}`)),
    h("h2", { class: "place", id: "picture-title" }, title(picture, places)),
    place !== null && h("p", { class: "coordinates" }, coordinates(place[0], place[1], 3)),
    picture.confidence !== null && h("p", { class: "lead" }, picture.decision === "moved" && `The estimate of ${archive.model?.name ?? "the model"}: `, h("strong", { class: "mass" }, percent(picture.confidence)), ` ${noun}.`, radii),
    picture.place !== null && archive.model?.calibrated === false && h("p", { class: "note warn" }, `The outputs of ${archive.model.name} are scores, not calibrated probabilities. Scores only rank places.`),
    picture.error !== null && h("p", { class: "note warn" }, ...rich(`Error: ${picture.error}`)),
    picture.kind === "graphic" && h("p", { class: "note" }, "A screenshot, document or drawing. Graphics are not located."),
    candidates(shown, noun),
    influences(picture),
    facts(shown),
  );
}

function preview({ picture, thumbnail }: Shown): HTMLElement {
  const none = h("p", { class: "no-preview" }, "This file can't be shown.");
  const [large, small] = [thumbnail(1024), thumbnail(256)];
  if (large === null) return none;
  // The small picture is here already, and stands in until the large one is.
  const image = h("img", { src: large, alt: `The picture ${picture.name}`, style: `background-image:url("${small}")` });
  image.addEventListener("error", () => image.replaceWith(none));
  return image;
}

function candidates({ places, chooseCandidate, picture }: Shown, noun: string): HTMLElement | null {
  if (places.length === 0) return null;
  const rows = places.map((place, index) => {
    const button = candidateButton(place, index, chooseCandidate);
    const isPin = picture.pin !== null && picture.pin[0] === place.latitude && picture.pin[1] === place.longitude;
    if (isPin) button.setAttribute("aria-current", "true");
    return h("li", {}, button);
  });
  return h("section", { class: "block", "aria-labelledby": "candidates-title" }, h("h3", { id: "candidates-title" }, `Candidates, by ${noun}`), h("ol", { class: "candidates" }, ...rows), h("p", { class: "note" }, "A number key puts the picture there."));
}

function influences({ fused, influences, place }: Picture): HTMLElement | null {
  if (place === null) return null;
  const list = influences.map((text) => h("li", {}, ...rich(text)));
  return h(
    "section",
    { class: "block", "aria-labelledby": "influences-title" },
    h("h3", { id: "influences-title" }, "What moved this estimate"),
    fused && list.length > 0 ? h("ul", { class: "influences" }, ...list) : h("p", { class: "note" }, "Nothing: it comes from this picture alone."),
  );
}

function facts({ picture, archive: { model } }: Shown): HTMLElement {
  const entries: [string, string][] = [
    ["File", picture.path],
    ["Time", picture.time?.slice(0, 19).replace("T", " ") ?? "unknown"],
    ...(picture.gps === null ? [] : [["GPS in the file", coordinates(...picture.gps, 5)] as [string, string]]),
    ...(picture.place === null || model === null ? [] : [["Estimate", `${coordinates(...picture.place, 3)}, by ${model.name}, version ${model.version}`] as [string, string]]),
  ];
  return h("section", { class: "block facts", "aria-labelledby": "facts-title" }, h("h3", { id: "facts-title" }, "The file"), h("dl", {}, ...entries.flatMap(([term, text]) => [h("dt", {}, term), h("dd", {}, text)])));
}
