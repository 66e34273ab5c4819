import "@fontsource-variable/instrument-sans/wght.css";
import "@fontsource-variable/newsreader/opsz.css";
import "@fontsource-variable/newsreader/opsz-italic.css";
import "./style.css";
import "./column.css";
import { Server, type PageSettings } from "./api";
import { App } from "./app";
import { Basemap } from "./basemap";
import { Engine } from "./engine";
import { Globe } from "./globe";
import { initialTheme } from "./theme";

const DEFAULTS: PageSettings = { version: "", tiles: null, tiles_attribution: null, references: false, key_required: false, max_image_bytes: 64 * 1024 * 1024 };

async function start(): Promise<void> {
  const server = new Server();
  const engine = new Engine();
  // The page shows the Earth even if the server is gone, and then shows a message.
  const [basemap, settings] = await Promise.all([
    Basemap.load(),
    server.settings().catch(() => DEFAULTS),
    // The map writes with it, and would draw its letters in another font before it is here.
    document.fonts.load('16px "Newsreader Variable"').catch(() => []),
  ]);
  const tiles = settings.tiles === null ? null : { url: settings.tiles, attribution: settings.tiles_attribution ?? "" };
  const theme = initialTheme();
  const stage = document.getElementById("globe")!;
  const globe = new Globe(stage, engine, basemap, theme, tiles);
  const app = new App({ server, engine, globe, basemap, settings });
  await globe.ready;
  await app.begin();
  // For the tests, which ask the engine what the page draws.
  Object.assign(window, { locdiff: { app, engine, globe } });
}

start().catch((error: unknown) => {
  const column = document.getElementById("column")!;
  const text = document.createElement("p");
  text.className = "note warn";
  text.setAttribute("role", "alert");
  text.textContent = `The page could not start: ${error instanceof Error ? error.message : String(error)}. The page needs a browser with WebGL 2 and WebAssembly.`;
  column.append(text);
});
