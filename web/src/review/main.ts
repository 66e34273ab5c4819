import "@fontsource-variable/instrument-sans/wght.css";
import "@fontsource-variable/newsreader/opsz.css";
import "@fontsource-variable/newsreader/opsz-italic.css";
import "../style.css";
import "../column.css";
import "./review.css";
import { Server, ServerProblem } from "../api";
import { Basemap } from "../basemap";
import { Globe } from "../globe";
import { byId, h, rich } from "../html";
import { problemWords } from "../problems";
import { initialTheme } from "../theme";
import { Review } from "./app";
import { placeOf } from "./archive";

async function start(): Promise<void> {
  const server = new Server("locdiff review");
  const theme = initialTheme();
  const [basemap, archive] = await Promise.all([Basemap.load(), server.archive(), document.fonts.load('16px "Newsreader Variable"').catch(() => [])]);
  const globe = new Globe(byId("globe"), null, basemap, theme, null);
  // From near by from the start: the whole Earth takes longest to be drawn.
  const first = archive.pictures.map(placeOf).find((place) => place !== null);
  if (first) globe.map.jumpTo({ center: [first[1], first[0]], zoom: 5 });
  await globe.ready;
  const review = new Review(archive, server, globe, basemap);
  // For the tests.
  Object.assign(window, { locdiff: { review, globe } });
  document.body.dataset["ready"] = "true";
}

start().catch((error: unknown) => {
  const { message } = error instanceof Error ? error : new Error(String(error));
  const advice = error instanceof ServerProblem ? problemWords(error, []).advice : "The page needs a browser with WebGL 2.";
  byId("column").replaceChildren(h("p", { class: "note warn", role: "alert" }, ...rich(`The page could not start: ${message} ${advice}`)));
});
