// A report for somebody's file: one HTML document that loads nothing.

import { cornersOf, keptWords } from "../constraints";
import { asked, bytes, coordinates, heading, km, km2, measuredKm, percent } from "../format";
import { escaped, escapedRich } from "../html";
import { nameParts } from "../names";
import { groundOf, nounOf, type Visit } from "../visit";
import { geojsonOf } from "./geojson";

export interface ReportParts {
  visit: Visit;
  /** data: URLs. */
  map: string;
  picture: string | null;
  /** Said beside the picture if it isn't the file itself. */
  pictureNote: string;
  pageVersion: string;
  date: Date;
}

const STYLE = `
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 52rem; padding: 3rem 1.5rem 4rem; font: 16px/1.55 Georgia, "Times New Roman", serif; color: #1c242c; background: #fff; }
h1 { font-size: 1.9rem; font-weight: 500; line-height: 1.15; margin: 0.2rem 0 0.4rem; }
h2 { font-size: 1.05rem; margin: 2.4rem 0 0.6rem; padding-top: 0.8rem; border-top: 1px solid #1c242c; }
.eyebrow { font: 600 0.78rem/1.4 system-ui, sans-serif; letter-spacing: 0.08em; text-transform: uppercase; color: #55616d; margin: 0; }
.notice { border-left: 3px solid #b04a00; padding: 0.1rem 0 0.1rem 0.9rem; }
figure { margin: 1.2rem 0; } img { max-width: 100%; height: auto; display: block; border: 1px solid #c9d0d6; }
figcaption, .small { font: 0.82rem/1.5 system-ui, sans-serif; color: #55616d; }
table { border-collapse: collapse; width: 100%; font: 0.88rem/1.4 system-ui, sans-serif; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.8rem 0.35rem 0; border-bottom: 1px solid #dfe4e8; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: 11rem 1fr; gap: 0.3rem 1rem; font: 0.88rem/1.5 system-ui, sans-serif; } dt { color: #55616d; } dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.72rem; max-height: 20rem; overflow: auto; background: #f5f6f7; padding: 1rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 0.6rem; } }
@media print { body { padding: 0; } pre { max-height: none; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
`;

export function reportOf(parts: ReportParts): string {
  const { visit, date } = parts;
  const { model, image, exif } = visit.answer!;
  const summary = visit.summary!;
  const noun = nounOf(visit);
  const best = visit.places[0]!;
  const title = [best.name, best.around].filter((part) => part !== "").join(", ");
  const entry = (term: string, text: string) => `<dt>${escaped(term)}</dt><dd>${escapedRich(text)}</dd>`;
  const rows = visit.places
    .filter((place, index) => index === 0 || place.mass >= 0.001)
    .map((place, index) => {
      const name = [place.name, place.around].filter((part) => part !== "").join(", ");
      const numbers = [percent(place.mass), km(place.radius_km)].map((text) => `<td class="number">${escaped(text)}</td>`);
      return `<tr><td>${index + 1}</td><td>${escaped(name)}</td><td>${escaped(coordinates(place.latitude, place.longitude, 4))}</td>${numbers.join("")}</tr>`;
    });
  const references = visit.places.flatMap((place, index) =>
    (place.references ?? []).map((found) => {
      const cells = [String(index + 1), found.id, coordinates(found.latitude, found.longitude, 4)].map((text) => `<td>${escaped(text)}</td>`);
      const numbers = [found.similarity.toFixed(3), km(found.distance_km)].map((text) => `<td class="number">${escaped(text)}</td>`);
      return `<tr>${cells.join("")}${numbers.join("")}</tr>`;
    }),
  );
  const referenceTable =
    references.length === 0
      ? ""
      : `
<h2>References</h2>
<table><thead><tr><th>Candidate</th><th>Photograph of the gallery</th><th>Coordinates</th><th>Similarity</th><th>Distance</th></tr></thead><tbody>
${references.join("\n")}
</tbody></table>
<p class="small">The similarity is the cosine between embeddings, not a probability. Similar photographs need not show the same place.</p>
`;
  const within = visit.constraints.map((constraint) => [constraint.label, cornersOf(constraint)].filter((part) => part !== "").join(": "));
  const constraintText = within.length === 0 ? "none: the whole Earth" : `${within.join(" and ")}; set on the page by its user. ${percent(summary.share)} of the unconstrained answer lies there, and all numbers are normalized to it`;
  const { kept, within: areas } = visit.answer!;
  const sameHash = visit.localSha256 === null ? "computed by the server" : visit.localSha256 === image.sha256 ? "computed by the server and by the browser, the same" : `computed by the server; the browser computes ${visit.localSha256}`;
  const footprint = groundOf(visit)?.footprint;
  const limits = [
    "This is a prediction by a statistical model, not evidence of where the picture was taken. The model predicts where such pictures are usually taken.",
    model.calibrated
      ? "The model is calibrated on pictures of its own kind: of many such answers, about as many are right as their probabilities state. This may be wrong for pictures of another kind, and for edited or generated pictures."
      : "The model is not calibrated: its numbers are scores. Scores rank places; they are not probabilities.",
    "A place that isn't among the candidates is not excluded. Confirm a location by other means: landmarks, shadows, signs, a second source.",
    "Names are those of the nearest known town to a point (GeoNames, CC BY 4.0), borders are Natural Earth's (1:50 million): neither is a statement about who rules where.",
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escaped(`LocDiff report: ${visit.name}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<p class="eyebrow">Prediction, not a fact · LocDiff report</p>
<h1>${escaped(title)}</h1>
<p>${escaped(`${percent(best.mass)} ${noun} for this peak; 50 % within ${km(summary.radius_50_km)} of ${coordinates(best.latitude, best.longitude, 4)}, 90 % within ${km(summary.radius_90_km)}.`)}</p>
<p class="notice">${escaped(limits[0]!)}</p>

<h2>The picture</h2>
${parts.picture === null ? "" : `<figure><img src="${escaped(parts.picture)}" alt="The picture that was located" style="max-height:20rem;width:auto">${parts.pictureNote === "" ? "" : `<figcaption>${escaped(parts.pictureNote)}</figcaption>`}</figure>`}
<dl>
${entry("File", visit.name)}
${entry("Size", `${image.width} × ${image.height} pixels, ${bytes(image.bytes)} (${image.bytes} bytes)`)}
${entry("SHA-256", image.sha256)}
${entry("Hash", sameHash)}
${exif === null ? entry("GPS in the file", "none") : entry("GPS in the file", `${[...nameParts(exif), coordinates(exif.latitude, exif.longitude, 5)].join(", ")}, ${km(exif.distance_km)} from the first candidate; recorded by the camera, not used for the prediction`)}
${footprint === undefined ? "" : entry("Ground", `${measuredKm(footprint.width_km)} wide around ${coordinates(footprint.middle.latitude, footprint.middle.longitude, 4)}, the top of the picture points to ${heading(footprint.heading_degrees)}; the central square of the picture, compared with a map`)}
</dl>

<h2>The map</h2>
<figure><img src="${escaped(parts.map)}" alt="${escaped(`Map of the prediction: ${title}`)}"><figcaption>${escaped(`The smallest regions that contain 50 % (solid line, ${km2(summary.area_50_km2)}) and 90 % (dashed, ${km2(summary.area_90_km2)}).`)}</figcaption></figure>

<h2>Candidates</h2>
<table><thead><tr><th>#</th><th>Place</th><th>Coordinates</th><th>${escaped(noun[0]!.toUpperCase() + noun.slice(1))}</th><th>Radius</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table>
<p class="small">${escaped(`The ${noun} is that of the whole peak; the radius is that of a circle that contains half of it. Candidates below 0.1 % are left out.`)}</p>
${referenceTable}
<h2>Model and settings</h2>
<dl>
${entry("Model", model.name)}
${entry("Version", model.version)}
${entry("Description", model.description)}
${entry("Calibrated", model.calibrated ? "yes" : "no: scores, not probabilities")}
${entry("Assumption", model.prior ?? "nothing beyond the picture")}
${entry("Chosen", visit.model === null ? `by the server${model.chosen_because ? `: ${model.chosen_because}` : ""}` : "by the user")}
${entry("Options", asked(visit.answer!.inference))}
${entry("Constraints", constraintText)}
${kept === undefined ? "" : entry("Constraints of the server", keptWords(kept, areas).text)}
${summary.kernel_km === null ? "" : entry("Finest detail", km(summary.kernel_km))}
${entry("Answered", visit.answeredAt?.toISOString() ?? "unknown")}
${entry("Report made", date.toISOString())}
${entry("Software", `LocDiff ${parts.pageVersion}`)}
</dl>

<h2>Limits</h2>
<ul>
${limits.map((limit) => `<li>${escaped(limit)}</li>`).join("\n")}
</ul>

<details><summary>The answer as data (GeoJSON)</summary>
<pre>${escaped(JSON.stringify(geojsonOf(visit)))}</pre></details>
</body>
</html>
`;
}
