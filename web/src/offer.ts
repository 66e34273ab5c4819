// What this server can locate, from its list of models: shown before the first picture, and again if a picture is rejected.

import type { ModelEntry, Scene } from "./api";
import { inWords } from "./format";

/** Why there is no list of models. */
export type NoModels = "key" | "starting" | "unreachable";

export interface Offer {
  /** What the server locates, or why that is not known. May contain `code`. */
  can: string;
  /** What is missing, and how to get it; empty if nothing is. May contain `code`. */
  missing: string;
}

const KINDS: Record<string, string> = {
  "plonk-inaturalist": "photographs of animals and plants",
  "plonk-osv5m": "street views",
};
const GROUND_NAMES = ["geoclip", "geoclip-even", "plonk-yfcc", ...Object.keys(KINDS)];
const SCENES: Record<Scene, string> = { orbit: "views of the Earth from above", ground: "photographs from the ground" };

type Known = Pick<ModelEntry, "name" | "description" | "scene">;

/** For which pictures a model is. Servers that do not return it have it in the name or the description. */
export function sceneOf({ name, description, scene }: Known): Scene | null {
  if (scene === "orbit" || scene === "ground") return scene;
  if (GROUND_NAMES.includes(name)) return "ground";
  if (/earth-view|from above/i.test(`${name} ${description}`)) return "orbit";
  return /plonk|geoclip|from the ground|street/i.test(description) ? "ground" : null;
}

/** “views of the Earth from above”; null if it is unknown. */
export function kindOf(model: Known): string | null {
  const scene = sceneOf(model);
  return KINDS[model.name] ?? (scene === null ? null : SCENES[scene]);
}

export function offerOf(models: readonly Known[], none: NoModels): Offer {
  if (models.length === 0) return { can: WITHOUT_MODELS[none], missing: "" };
  const kinds = [...new Set(models.map(kindOf))].filter((kind): kind is string => kind !== null);
  // A more special kind adds nothing to all photographs from the ground.
  const listed = kinds.includes(SCENES.ground) ? kinds.filter((kind) => !Object.values(KINDS).includes(kind)) : kinds;
  const others = models.filter((model) => kindOf(model) === null);
  const sentences = [
    ...(listed.length > 0 ? [`This server locates ${inWords(listed)}.`] : []),
    ...others.map(({ name, description }) => `The server ${listed.length > 0 ? "also " : ""}has the model \`${name}\`: ${description}.`),
  ];
  return { can: sentences.join(" "), missing: missingFrom(models.map(sceneOf)) };
}

const WITHOUT_MODELS: Record<NoModels, string> = {
  key: "This server needs a key. Enter the key under “Settings”. Then this page lists what the server can locate.",
  starting: "The server is still opening its models. This page asks again every few seconds.",
  unreachable: "The server does not answer. Start it with `locdiff serve`, then reload this page.",
};

function missingFrom(scenes: readonly (Scene | null)[]): string {
  // Of a model that nothing is known of, nothing is known to be missing.
  if (scenes.includes(null)) return "";
  if (!scenes.includes("ground")) return "For photographs from the ground, run `locdiff model fetch plonk-yfcc` (1.4 GB) on the computer of the server. Then start the server again.";
  if (!scenes.includes("orbit")) return "For views of the Earth from above, add `--model earth-view` to the command that starts the server.";
  return "";
}
