import { describe, expect, test } from "vitest";
import { ServerProblem, type ModelEntry } from "../src/api";
import { keptWords } from "../src/constraints";
import { codeParts, escapedRich, withoutTicks } from "../src/html";
import { chooserWords } from "../src/intake";
import { isCovered, labelSize } from "../src/labels";
import { kindOf, offerOf, sceneOf } from "../src/offer";
import { CannotConstrain, problemWords } from "../src/problems";
import { viewRadiusKm } from "../src/view";

const model = (name: string, description = "", scene?: ModelEntry["scene"]): ModelEntry => ({
  name,
  description,
  version: "0",
  calibrated: false,
  prior: null,
  default: false,
  frames: false,
  inference: { sampler: "one-pass", steps: null, samples: 1, guidance: 1, views: 1, seed: 0, decode: "mode", kernel_km: null, registration: false, width_km: null },
  ...(scene === undefined ? {} : { scene }),
});
const earthView = model("earth-view", "search and registration for views of the Earth from above, about 150 to 5000 km wide");
const plonk = model("plonk-yfcc", "plonk, a flow of width 512, trained on YFCC100M, on embeddings of dinov2-l-14");

describe("what the server can locate", () => {
  test("with the model inside the program only", () => {
    const { can, missing } = offerOf([earthView], "unreachable");
    expect(can).toBe("This server locates views of the Earth from above.");
    expect(missing).toMatch(/^For photographs from the ground, run `locdiff model fetch plonk-yfcc`/);
  });

  test("with both kinds nothing is missing", () => {
    expect(offerOf([earthView, model("geoclip"), model("plonk-inaturalist"), plonk], "unreachable")).toEqual({ can: "This server locates views of the Earth from above and photographs from the ground.", missing: "" });
  });

  test("with models for the ground only", () => {
    const { can, missing } = offerOf([model("plonk-osv5m"), model("plonk-inaturalist")], "unreachable");
    expect(can).toBe("This server locates street views and photographs of animals and plants.");
    expect(missing).toContain("`--model earth-view`");
  });

  test("the server's own word on a model counts more than its name", () => {
    expect([sceneOf(plonk), sceneOf({ ...plonk, scene: "orbit" }), sceneOf(model("mine", "", "ground")), sceneOf(model("mine", "", null))]).toEqual(["ground", "orbit", "ground", null]);
    expect(sceneOf(model("earth", "LocDiff, likelihood at L = 31, on embeddings of earth-view"))).toBe("orbit");
    expect(sceneOf(model("hybrid", "product of plonk-yfcc and a gallery of 10 references; plonk-yfcc is plonk, a flow"))).toBe("ground");
    expect(kindOf(model("mine", "", "ground"))).toBe("photographs from the ground");
  });

  test("a model of which nothing is known is described, and nothing is called missing", () => {
    expect(offerOf([model("mine", "LocDiff on embeddings of clip-vit-l-14")], "unreachable")).toEqual({ can: "The server has the model `mine`: LocDiff on embeddings of clip-vit-l-14.", missing: "" });
    expect(offerOf([earthView, model("mine", "a test")], "unreachable").can).toMatch(/from above\. The server also has the model `mine`: a test\.$/);
  });

  test("without a list, why", () => {
    expect(offerOf([], "key").can).toMatch(/needs a key/);
    expect(offerOf([], "starting").can).toMatch(/still opening its models/);
    expect(offerOf([], "unreachable").can).toMatch(/`locdiff serve`/);
  });
});

describe("no answer is explained, with what to do next", () => {
  const rejected = "no suitable model: for earth-view, it is all of one color. For photographs from the ground this server needs a model: `locdiff model fetch plonk-yfcc` or `locdiff model fetch geoclip`, then start it again";

  test("a picture that no model accepts", () => {
    const words = problemWords(new ServerProblem(422, "no-answer", rejected, "Unprocessable Content"), [earthView]);
    expect(words).toMatchObject({ title: "No model on this server fits this picture", detail: rejected, standard: "422 Unprocessable Content", canRetry: true });
    // The command is in the server's words already.
    expect(words.advice).toBe("Choose another picture below. This server locates views of the Earth from above.");
  });

  test("a model that was chosen rejects it: others are offered only if there are others", () => {
    const problem = new ServerProblem(422, "no-answer", "not a picture for this model: it is all of one color", "Unprocessable Content");
    expect(problemWords(problem, [earthView, plonk])).toMatchObject({ title: "The model rejected this picture" });
    expect(problemWords(problem, [earthView, plonk]).advice).toContain("another model under “Settings”");
    expect(problemWords(problem, [earthView]).advice).not.toContain("another model");
    expect(problemWords(problem, [earthView]).advice).toContain("`locdiff model fetch plonk-yfcc`");
    expect(problemWords(problem, []).advice).toBe("Choose another picture below.");
  });

  test("an answer without a candidate, and one outside of an area", () => {
    expect(problemWords(new ServerProblem(200, "no-candidate", "The answer has no candidate"), [earthView])).toMatchObject({ title: "The model returned no place", standard: "" });
    expect(problemWords(new ServerProblem(422, "no-answer", "within Egypt: nothing is left"), []).title).toBe("No part of the answer lies in this area");
  });

  test("statuses, also of proxies that send no kind", () => {
    expect(problemWords(new ServerProblem(429, null, "", "Too Many Requests", 7), [])).toMatchObject({ title: "The server is busy", advice: "Wait a moment, then try again. The server asks for a pause of 7 s.", canRetry: true });
    expect(problemWords(new ServerProblem(415, null, "x"), []).canRetry).toBe(false);
    expect(problemWords(new ServerProblem(418, null, "x"), []).title).toBe("The server rejected the request");
    expect(problemWords(new Error("boom"), [])).toMatchObject({ title: "The answer could not be shown", detail: "boom" });
  });

  test("a constraint that leaves nothing", () => {
    const one = new CannotConstrain(["Portugal"], "nothing is left: the density is zero there").words.replaceAll("\u00a0", " ");
    expect(new CannotConstrain(["Portugal"]).words.replaceAll("\u00a0", " ")).toBe(one);
    expect(one).toBe("Practically no part of the answer lies within “Portugal” (less than 0.0001 %). The map still shows the answer from before. Try a larger area, or check the name or the numbers.");
    expect(new CannotConstrain(["land", "Portugal"], "nothing is left: x").words).toMatch(/within “land” and “Portugal”.*Remove one of the other constraints/);
    expect(new CannotConstrain(["land"], "it would cost more than 3 s").words).toMatch(/could not be computed: it would cost/);
  });
});

test("code in backticks becomes an element, and is heard without them", () => {
  const text = "run `locdiff serve`, then `x`";
  expect(codeParts(text)).toEqual([{ text: "run ", isCode: false }, { text: "locdiff serve", isCode: true }, { text: ", then ", isCode: false }, { text: "x", isCode: true }]);
  expect(withoutTicks(text)).toBe("run locdiff serve, then x");
  expect(escapedRich("`<a>` & b")).toBe("<code>&lt;a&gt;</code> &amp; b");
  // A name may have one.
  expect(codeParts("it`s.jpg")).toEqual([{ text: "it`s.jpg", isCode: false }]);
});

test("how much a constraint keeps, with a warning below 1 %", () => {
  const plain = (kept: number, areas?: string[]) => {
    const { text, warning } = keptWords(kept, areas);
    return [text, warning].map((part) => part.replaceAll("\u00a0", " "));
  };
  expect(plain(0.031, ["Egypt"])).toEqual(["Within Egypt: keeps 3.1 % of the unconstrained answer.", ""]);
  expect(plain(0.01)[1]).toBe("");
  expect(plain(0.0099, ["Egypt", "land"])[0]).toBe("Within Egypt and land: keeps 0.99 % of the unconstrained answer.");
  expect(plain(0.0099)[1]).toMatch(/^Warning: less than 1 % of the unconstrained answer/);
});

test("precise answers are shown close up, vague ones with the Earth around them", () => {
  const view = (radius_50_km: number, isConstrained = false) => viewRadiusKm({ radius_50_km, isConstrained, scale: 1 });
  expect([0.05, 3, 50, 600, 3000].map((radius) => Math.round(view(radius)))).toEqual([1, 18, 300, 3300, 6600]);
  expect([3, 600].map((radius) => Math.round(view(radius, true)))).toEqual([18, 1320]);
  // Never so near that the region of 50 % is not seen, and never a jump.
  for (let radius = 1; radius < 9000; radius *= 1.1) {
    expect(view(radius)).toBeGreaterThanOrEqual(2 * radius);
    expect(view(1.1 * radius) / view(radius)).toBeLessThanOrEqual(1.101);
  }
});

test("names under the title are hidden", () => {
  const size = labelSize({ name: "Greenland", size: 100 }, 1);
  const title = [{ left: 20, top: 20, right: 300, bottom: 120 }];
  expect(isCovered({ x: 100, y: 100 }, size, title)).toBe(true);
  expect(isCovered({ x: 300 + size.width / 2 - 1, y: 60 }, size, title)).toBe(true);
  expect(isCovered({ x: 300 + size.width / 2 + 1, y: 60 }, size, title)).toBe(false);
  expect(isCovered({ x: 100, y: 121 + size.height / 2 }, size, title)).toBe(false);
  const long = labelSize({ name: "Saint Vincent and the Grenadines", size: 1 }, 6);
  expect(long.height).toBeGreaterThan(2 * labelSize({ name: "Chad", size: 1 }, 6).height);
});

test("telephones choose a photo", () => {
  expect(chooserWords(true, true).button).toBe("Choose a photo");
  expect(chooserWords(true, false).button).toBe("Choose another photo");
  expect(chooserWords(false, true).button).toBe("Choose a picture");
  expect(chooserWords(true, true).lead).not.toMatch(/drop/i);
});
