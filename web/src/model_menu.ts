// What the server can locate, which of its models is asked, and its key: the part of the page above and below the button.

import { ServerProblem, type ModelEntry, type Server } from "./api";
import { byId, h, rich } from "./html";
import { kindOf, offerOf, sceneOf, type NoModels } from "./offer";

/** A server that is opening its models is asked again after this time. */
const AGAIN_MS = 3000;
/** A key is tried when nobody has typed for this time. */
const TYPED_MS = 400;

export class ModelMenu {
  models: ModelEntry[] = [];
  readonly #server: Server;
  readonly #select = byId<HTMLSelectElement>("model");
  #again: ReturnType<typeof setTimeout> | undefined;

  constructor(server: Server) {
    this.#server = server;
    this.#select.addEventListener("change", () => this.#describe());
    const key = byId<HTMLInputElement>("key");
    key.addEventListener("input", () => {
      server.key = key.value;
      this.#loadAfter(TYPED_MS);
    });
  }

  /** The model to ask; null if the server chooses. */
  get chosen(): string | null {
    return this.#select.value || null;
  }

  askForKey(): void {
    byId("key-field").hidden = false;
    byId("settings").hidden = false;
    byId<HTMLDetailsElement>("settings").open = true;
  }

  /** Asks the server for its models, and shows them. */
  async load(): Promise<void> {
    clearTimeout(this.#again);
    let none: NoModels = "unreachable";
    try {
      this.models = await this.#server.models();
    } catch (error) {
      this.models = [];
      const status = error instanceof ServerProblem ? error.status : 0;
      if (status === 401) none = "key";
      if (status === 503) none = "starting";
    }
    if (none === "key") this.askForKey();
    if (none === "starting") this.#loadAfter(AGAIN_MS);
    this.#show(none);
  }

  #loadAfter(ms: number): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => void this.load(), ms);
  }

  #show(none: NoModels): void {
    const { models } = this;
    const { can, missing } = offerOf(models, none);
    byId("offer").replaceChildren(h("p", { id: "offer-can" }, ...rich(can)), ...(missing === "" ? [] : [h("p", { class: "note", id: "offer-missing" }, ...rich(missing))]));
    const before = this.#select.value;
    const options = models.map((model) => {
      const kind = kindOf(model);
      return h("option", { value: model.name }, kind === null ? model.name : `${model.name}: ${kind}`);
    });
    this.#select.replaceChildren(h("option", { value: "" }, "Automatic: the server chooses"), ...options);
    this.#select.value = models.some(({ name }) => name === before) ? before : "";
    // There is nothing to choose from one.
    byId("model-field").hidden = models.length < 2;
    byId("settings").hidden = models.length < 2 && byId("key-field").hidden;
    // The examples are views from above: a model for the ground would only guess.
    byId("examples").hidden = models.length > 0 && models.every((model) => sceneOf(model) === "ground");
    this.#describe();
  }

  #describe(): void {
    const model = this.models.find(({ name }) => name === this.#select.value);
    byId("model-note").replaceChildren(...rich(model?.description ?? ""));
  }
}
