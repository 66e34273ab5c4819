import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { instantOf, passes, placeOf, sorted, statusOf, View, type Picture } from "../src/review/archive";
import { Decisions, Outbox, type DecisionRecord, type OutboxState } from "../src/review/decisions";
import { extentOf, histogram, timeTicks } from "../src/review/timeline";

const picture = (id: string, changes: Partial<Picture> = {}): Picture => ({
  id,
  path: `archive/${id}`,
  name: id,
  time: null,
  kind: "photo",
  gps: null,
  place: [10, 20],
  place_name: null,
  confidence: 0.5,
  radius_68_km: 100,
  radius_90_km: 300,
  candidates: [],
  fused: false,
  influences: [],
  error: null,
  decision: null,
  pin: null,
  ...changes,
});

const archive = () => [
  picture("IMG_10", { confidence: 0.9, time: "2021-03-01T10:00:00" }),
  picture("IMG_9", { confidence: 0.2, time: "2020-01-01T00:00:00Z" }),
  picture("b", { gps: [1, 2], place: null, confidence: null }),
  picture("c", { kind: "graphic", place: null, confidence: null }),
  picture("d", { error: "not an image", place: null, confidence: null }),
  picture("e", { confidence: 0.9, decision: "moved", pin: [-5, 6] }),
  picture("f", { confidence: 0.4, decision: "rejected", time: "2022-01-01T00:00:00+01:00" }),
];
const namesOf = (pictures: Picture[], order: readonly number[]) => order.map((index) => pictures[index]!.name);

describe("pictures", () => {
  test("have one state, and one place", () => {
    expect(archive().map(statusOf)).toEqual(["estimate", "estimate", "gps", "none", "none", "accepted", "rejected"]);
    expect(archive().map(placeOf)).toEqual([[10, 20], [10, 20], [1, 2], null, null, [-5, 6], [10, 20]]);
  });

  test("are sorted; what has no number is last, equals by name", () => {
    const pictures = archive();
    expect(namesOf(pictures, sorted(pictures, "name"))).toEqual(["b", "c", "d", "e", "f", "IMG_9", "IMG_10"]);
    expect(namesOf(pictures, sorted(pictures, "confident"))).toEqual(["e", "IMG_10", "f", "IMG_9", "b", "c", "d"]);
    expect(namesOf(pictures, sorted(pictures, "unsure"))).toEqual(["IMG_9", "f", "e", "IMG_10", "b", "c", "d"]);
    expect(namesOf(pictures, sorted(pictures, "time"))).toEqual(["IMG_9", "IMG_10", "f", "b", "c", "d", "e"]);
  });

  test("pass filters", () => {
    const names = (filter: Parameters<typeof passes>[0]) => archive().filter((one) => passes(filter, one)).map(({ name }) => name).join(" ");
    expect(names("undecided")).toBe("IMG_10 IMG_9");
    expect([names("accepted"), names("rejected"), names("gps"), names("graphics"), names("errors")]).toEqual(["e", "f", "b", "c", "d"]);
  });

  test("have times with and without a zone", () => {
    expect(instantOf("2021-03-01T10:00:00")).toBe(Date.UTC(2021, 2, 1, 10));
    expect(instantOf("2021-03-01T10:00:00+02:00")).toBe(Date.UTC(2021, 2, 1, 8));
    expect(instantOf("2021-03-01")).toBe(Date.UTC(2021, 2, 1));
    expect(instantOf(null)).toBeNaN();
    expect(instantOf("yesterday")).toBeNaN();
  });
});

describe("the view", () => {
  test("begins with what is undecided, the most confident first", () => {
    const pictures = archive();
    const view = new View(pictures);
    expect([view.filter, namesOf(pictures, view.shown), view.current]).toEqual(["undecided", ["IMG_10", "IMG_9"], 0]);
  });

  test("of a range of times leaves out what has no time", () => {
    const pictures = archive();
    const view = new View(pictures);
    view.filter = "all";
    view.range = [Date.UTC(2020, 0, 1), Date.UTC(2021, 11, 31)];
    view.refresh();
    expect(namesOf(pictures, view.shown)).toEqual(["IMG_10", "IMG_9"]);
  });

  test("keeps a decided picture only while it is looked at", () => {
    const pictures = archive();
    const view = new View(pictures);
    pictures[0]!.decision = "accepted";
    view.refresh(0);
    expect(view.shown).toEqual([0, 1]);
    view.refresh();
    expect(view.shown).toEqual([1]);
    expect([view.position(0), view.position(1), view.position(null)]).toEqual([-1, 0, -1]);
  });

  test("selects ranges, everything and nothing, and never what is not shown", () => {
    const view = new View(Array.from({ length: 10 }, (_, k) => picture(`p${k}`)));
    view.extend(3);
    expect([...view.selected]).toEqual([0, 1, 2, 3]);
    view.toggle(2);
    view.toggle(6);
    view.extend(4);
    expect([...view.selected].sort()).toEqual([0, 1, 3, 4, 5, 6]);
    view.selectAll();
    expect(view.subjects).toHaveLength(10);
    view.filter = "rejected";
    view.refresh();
    expect(view.selected.size).toBe(0);
    view.filter = "all";
    view.refresh();
    view.selectAll();
    view.selectAll();
    expect(view.subjects).toEqual([0]);
  });

  test("stays within the list", () => {
    const view = new View(archive());
    expect([view.neighbor(-1), view.neighbor(1), view.neighbor(99)]).toEqual([0, 1, 1]);
    expect(new View([]).neighbor(1)).toBeNull();
  });
});

describe("decisions", () => {
  test("in bulk leave out what has no estimate, what is decided so, and what a person placed", () => {
    const pictures = archive();
    const sent: DecisionRecord[][] = [];
    const decisions = new Decisions(pictures, (records) => sent.push(records));
    expect(decisions.decide(pictures.map((_, index) => index), "accepted")).toEqual([0, 1, 6]);
    // With the places that were shown: a scan may have replaced them.
    expect(sent).toEqual([[0, 1, 6].map((index) => ({ id: pictures[index]!.id, decision: "accepted", latitude: pictures[index]!.place![0], longitude: pictures[index]!.place![1] }))]);
    expect(decisions.withdraw(["IMG_9"])).toEqual([1]);
    expect(pictures[1]).toMatchObject({ decision: null, pin: null });
    expect(decisions.decide([1], "accepted")).toEqual([1]);
    sent.pop();
    expect(decisions.decide([0, 1], "accepted")).toEqual([]);
    expect(sent).toHaveLength(1);
    expect(decisions.undoable).toBe(2);
  });

  test("are taken back one by one, the last first, with their pins", () => {
    const pictures = archive();
    const before = structuredClone(pictures);
    const sent: DecisionRecord[] = [];
    const decisions = new Decisions(pictures, (records) => sent.push(...records));
    decisions.move(0, [48, 2]);
    decisions.move(0, [49, 3]);
    decisions.decide([0, 5], "rejected");
    expect(pictures[5]).toMatchObject({ decision: "rejected", pin: null });
    expect(decisions.undo()).toEqual([0, 5]);
    expect(pictures[0]).toMatchObject({ decision: "moved", pin: [49, 3] });
    expect(sent.slice(-2)).toEqual([{ id: "IMG_10", decision: "moved", latitude: 49, longitude: 3 }, { id: "e", decision: "moved", latitude: -5, longitude: 6 }]);
    decisions.undo();
    expect(decisions.undo()).toEqual([0]);
    expect(sent.at(-1)).toEqual({ id: "IMG_10", decision: null });
    expect(decisions.undo()).toEqual([]);
    expect(pictures).toEqual(before);
  });

  test("can be cleared, also those of an earlier day", () => {
    const pictures = archive();
    const decisions = new Decisions(pictures, () => undefined);
    expect(decisions.decide([5, 6, 0], null)).toEqual([5, 6]);
    expect(pictures.map(statusOf).slice(5)).toEqual(["estimate", "estimate"]);
  });
});

describe("the outbox", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("sends at once, the last decision of each picture, and again after a failure", async () => {
    const [requests, states]: [DecisionRecord[][], OutboxState[]] = [[], []];
    let failures = 2;
    const outbox = new Outbox(
      async (records) => {
        requests.push(records);
        if (failures-- > 0) throw new Error("The connection failed.");
      },
      (state) => states.push(state),
    );
    outbox.put([{ id: "a", decision: "accepted" }]);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(0);
    expect(states.at(-1)).toEqual({ waiting: 1, problem: "The connection failed." });
    outbox.put([{ id: "a", decision: null }, { id: "b", decision: "rejected" }]);
    await vi.advanceTimersByTimeAsync(0);
    expect(requests.at(-1)).toEqual([{ id: "a", decision: null }, { id: "b", decision: "rejected" }]);
    expect(outbox.waiting).toBe(2);
    await vi.advanceTimersByTimeAsync(1999);
    expect(requests).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(requests).toHaveLength(3);
    expect(states.at(-1)).toEqual({ waiting: 0, problem: null });
  });

  test("sends what was decided anew while a request was on its way, a thousand at most", async () => {
    const requests: DecisionRecord[][] = [];
    const outbox = new Outbox(
      async (records) => {
        requests.push(records);
        await new Promise((resolve) => setTimeout(resolve, 50));
      },
      () => undefined,
    );
    outbox.put(Array.from({ length: 1500 }, (_, k) => ({ id: `p${k}`, decision: "accepted" as const })));
    outbox.put([{ id: "p0", decision: "rejected" }]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests.map((records) => records.length)).toEqual([1000, 501]);
    expect(requests[1]![0]).toEqual({ id: "p0", decision: "rejected" });
    expect(outbox.waiting).toBe(0);
  });
});

describe("the timeline", () => {
  test("counts every picture with a time once", () => {
    const times = [0, 5, 10, Number.NaN, 99];
    expect(extentOf([Number.NaN])).toBeNull();
    expect(extentOf(times)).toEqual([0, 60_000]);
    expect(histogram(times, [0, 100], 10, () => true)).toEqual([2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(histogram(times, [0, 100], 10, (index) => index > 0).reduce((a, b) => a + b)).toBe(3);
  });

  test("has a few round ticks from an hour to a century", () => {
    const from = Date.UTC(2003, 4, 17, 3, 12);
    for (const hours of [1, 5, 24, 100, 1000, 10_000, 100_000, 1_000_000]) {
      const ticks = timeTicks([from, from + hours * 3_600_000]);
      expect(ticks.length, `${hours} h: ${ticks.map(({ text }) => text).join(" ")}`).toBeGreaterThan(1);
      expect(ticks.length).toBeLessThan(10);
    }
    expect(timeTicks([from, Date.UTC(2024, 0)]).map(({ text }) => text)).toEqual(["2005", "2010", "2015", "2020"]);
  });
});
