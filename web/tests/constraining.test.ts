import { expect, test } from "vitest";
import { Constraining } from "../src/constraining";
import type { Constraint } from "../src/constraints";

type Visit = { constraints: Constraint[]; final: boolean };
type Answer = Visit & { coarsely: boolean };
const adding = (label: string) => (known: Constraint[]) => [...known, { label, area: { kind: "circle", latitude: 0, longitude: 0, radius_km: 1 } } as Constraint];
const nameOf = (constraints: Constraint[], coarsely: boolean) => `${coarsely ? "coarse" : "final"} ${constraints.map(({ label }) => label).join("+")}`;

/** An engine whose work is done when the test allows it, and a page that records what it shows. */
function stage(enough: (label: string) => boolean = () => false) {
  const visit: Visit = { constraints: [], final: true };
  const begun = new Map<string, { resolve(): void; reject(error: Error): void }>();
  const log: string[] = [];
  let draw = (): void => undefined;
  const constraining = new Constraining<Visit, Answer>({
    compute: (_, constraints, coarsely) => {
      const name = nameOf(constraints, coarsely);
      const answer = { constraints, coarsely, final: !coarsely || enough(constraints.at(-1)!.label) };
      return new Promise((resolve, reject) => begun.set(name, { resolve: () => resolve(answer), reject }));
    },
    show: (shown, answer) => {
      log.push(nameOf(answer.constraints, answer.coarsely));
      Object.assign(shown, { constraints: answer.constraints, final: answer.final });
      return new Promise((resolve) => (draw = resolve));
    },
    drop: (answer) => log.push(`dropped ${nameOf(answer.constraints, answer.coarsely)}`),
    fail: (_, error, coarsely) => log.push(`${coarsely ? "coarse" : "final"} failed: ${(error as Error).message}`),
  });
  const turn = () => new Promise((resolve) => setTimeout(resolve));
  return {
    visit,
    log,
    begun,
    constraining,
    /** Ends work that was begun. */
    done: (name: string) => (begun.get(name)!.resolve(), turn()),
    failed: (name: string) => (begun.get(name)!.reject(new Error("nowhere")), turn()),
    drawn: () => (draw(), turn()),
    turn,
  };
}

test("a coarse answer is drawn before the final one is begun", async () => {
  const { visit, log, begun, constraining, done, drawn, turn } = stage();
  const all = constraining.change(visit, adding("a"));
  await turn();
  await done("coarse a");
  expect([log, visit.final, begun.has("final a")]).toEqual([["coarse a"], false, false]);
  await drawn();
  await done("final a");
  await all;
  expect([log, visit.final]).toEqual([["coarse a", "final a"], true]);
});

test("nothing is refined that is final already", async () => {
  const { visit, log, begun, constraining, done, drawn, turn } = stage(() => true);
  const all = constraining.change(visit, adding("a"));
  await turn();
  await done("coarse a");
  await drawn();
  await all;
  expect([log, begun.has("final a")]).toEqual([["coarse a"], false]);
});

test("a newer constraint drops the final answer of an older one, in whichever order they come", async () => {
  const { visit, log, constraining, done, drawn, turn } = stage();
  void constraining.change(visit, adding("a"));
  await turn();
  await done("coarse a");
  await drawn();
  const all = constraining.change(visit, adding("b"));
  await turn();
  await done("final a");
  expect(log).toEqual(["coarse a", "dropped final a"]);
  await done("coarse a+b");
  await drawn();
  await done("final a+b");
  await all;
  expect(log).toEqual(["coarse a", "dropped final a", "coarse a+b", "final a+b"]);
});

test("of changes in a row, each begins with the last one's result, without waiting until that is drawn; only the last is refined", async () => {
  const { visit, log, begun, constraining, done, drawn, turn } = stage();
  void constraining.change(visit, adding("a"));
  const all = constraining.change(visit, adding("b"));
  await turn();
  expect([...begun.keys()]).toEqual(["coarse a"]);
  await done("coarse a");
  await done("coarse a+b");
  await drawn();
  await done("final a+b");
  await Promise.all([all, constraining.finished(visit)]);
  expect([log, begun.has("final a")]).toEqual([["coarse a", "coarse a+b", "final a+b"], false]);
});

test("after a change that fails, the one before it is refined", async () => {
  const { visit, log, constraining, done, failed, drawn, turn } = stage();
  void constraining.change(visit, adding("a"));
  await turn();
  await done("coarse a");
  const all = constraining.change(visit, adding("b"));
  await drawn();
  await failed("coarse a+b");
  await done("final a");
  await all;
  expect(log).toEqual(["coarse a", "coarse failed: nowhere", "final a"]);
  expect(visit.constraints.map(({ label }) => label)).toEqual(["a"]);
});

test("if there is no final answer, the coarse one stays", async () => {
  const { visit, log, constraining, done, failed, drawn, turn } = stage();
  const all = constraining.change(visit, adding("a"));
  await turn();
  await done("coarse a");
  await drawn();
  await failed("final a");
  await all;
  expect([log, visit.final]).toEqual([["coarse a", "final failed: nowhere"], false]);
});
