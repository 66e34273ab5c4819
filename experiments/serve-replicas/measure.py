"""Several `locdiff serve` behind HAProxy: what a request costs, whether two replicas do twice as much as one, and whether requests
are lost when a replica is killed, drained, stopped or added.

1. Cost: CPU time and memory of three kinds of requests, one at a time, on one replica of one thread.
2. Throughput of one and of two replicas of one thread each, from clients that ask again as soon as they are answered; in turns, so that
   both meet the same machine.
3. Queue: how many images wait (`locdiff_waiting_images`) at half to five fourths of what one replica can answer.
4. Events: requests at random moments to three replicas. In each round one replica is killed (SIGKILL) while it computes, one is drained
   by HAProxy and then stopped, one is stopped (SIGTERM) without HAProxy being told, and each is replaced by a new one. A client sends a
   request again at most three times.
"""

import http.client
import json
import math
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from client import RETRIES, Client, Schedule, saturate
from replicas import Proxy, Replica, wait_until

PATH = "/v1/embed"
KINDS = {"embedding": PATH, "place without registration": "/v1/locate?registration=false", "place with registration": "/v1/locate"}
IMAGES = ["madagascar", "sinai"]
# Enough for two replicas: each has images that wait while it computes a batch.
CLIENTS = 8
# Of what two replicas can answer: with one of them gone the other has room.
LOAD = 0.4
# Processors in use.
QUIET = 0.5
LEVELS = [0.5, 0.7, 0.9, 1.25]
FOLDER = Path("experiments/serve-replicas")


def quantile(times, share):
    return sorted(times)[math.ceil(share * len(times)) - 1]


def busy_seconds():
    """Of all processors, by everybody."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


class Patience:
    """Waits until other programs leave the processors alone, for so many seconds in the whole run."""

    def __init__(self, seconds):
        self.seconds = seconds

    def wait(self):
        while self.seconds > 0:
            busy, began = busy_seconds(), time.monotonic()
            time.sleep(2)
            if (busy_seconds() - busy) / (time.monotonic() - began) < QUIET:
                return
            self.seconds -= 2


def costs(replica, bodies, count, kinds):
    """Of each kind of request: number, CPU seconds each, median time, memory of the replica afterwards."""
    connection = http.client.HTTPConnection(replica.address, timeout=120)
    rows = {}
    for kind, path in kinds.items():
        number = count if path == PATH else max(1, count // 5)
        times, before = [], replica.cpu_seconds()
        for k in range(number):
            began = time.monotonic()
            connection.request("POST", path, bodies[k % len(bodies)])
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{path}: status {answer.status}")
            times.append(time.monotonic() - began)
        rows[kind] = (number, (replica.cpu_seconds() - before) / number, statistics.median(times), replica.resident_mb())
    return rows


def throughputs(proxy, pair, bodies, turns, seconds, patience):
    """Turns of one replica and of two: answers per second, processors that the replicas used, those that others used, requests that were
    sent again."""
    turns_of = {1: [], 2: []}
    failed = 0

    def look():
        return time.monotonic(), sum(replica.cpu_seconds() for replica in pair), time.process_time(), busy_seconds()

    for turn in range(2 * turns):
        # One first, then two first: a machine that becomes slower must not favor either.
        count = (1, 2, 2, 1)[turn % 4]
        proxy.set_state(pair[1], "ready" if count == 2 else "drain")
        proxy.wait_for({replica.name for replica in pair[:count]})
        patience.wait()
        per_s, lost, again, first, last = saturate(proxy.port, PATH, bodies, seconds, CLIENTS, look)
        time_s, replicas, own, busy = (after - before for before, after in zip(first, last))
        turns_of[count].append((per_s, replicas / time_s, (busy - replicas - own) / time_s, again))
        failed += lost
    return turns_of, failed


def queue(proxy, replica, bodies, per_s, seconds):
    """At each level: mean and largest number of images that wait, and the share of requests that were rejected at least once."""
    rows = {}
    for level in LEVELS:
        schedule, seen = Schedule(proxy.port, PATH, bodies, level * per_s), []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.25)
            seen.append(replica.waiting_images())
        outcomes = schedule.stop()
        rows[level] = (statistics.mean(seen), max(seen), sum(outcome.retries > 0 for outcome in outcomes) / len(outcomes))
    return rows


class Events:
    """What happens to replicas while requests come; each phase has a name and a time."""

    def __init__(self, start, proxy, replicas, window):
        self.start, self.proxy, self.replicas, self.window = start, proxy, list(replicas), window
        self.phases, self.exit_codes, self.seconds_to_use = [], [], []

    def phase(self, name, event, share=1.0):
        began = time.monotonic()
        event()
        time.sleep(max(0.0, began + share * self.window - time.monotonic()))
        self.phases.append((name, began, time.monotonic()))

    def by_phase(self, outcomes):
        """Requests that were due in a phase, or not yet answered when it began if a replica went away then: those feel it most."""
        of_phase = {name: [] for name, _, _ in self.phases}
        for outcome in outcomes:
            met = [name for name, began, end in self.phases if outcome.due < end and outcome.due + outcome.seconds > began]
            felt = [name for name in met if name in ("killed", "drained", "stopped")]
            # None was met by a request that was due at the very end.
            for name in (felt or met)[:1]:
                of_phase[name].append(outcome)
        return of_phase

    def kill(self):
        victim = self.replicas.pop(0)
        wait_until(lambda: self.proxy.table()[victim.name][1] > 0, "no request came to the replica")
        victim.stop(signal.SIGKILL)

    def drain(self):
        leaving = self.replicas.pop(0)
        self.proxy.drain(leaving)
        self.exit_codes.append(leaving.stop())

    def terminate(self):
        leaving = self.replicas.pop(0)
        wait_until(lambda: self.proxy.table()[leaving.name][1] > 0, "no request came to the replica")
        self.exit_codes.append(leaving.stop())

    def add(self):
        """Before its models are open: HAProxy has to wait until it is ready."""
        replica = self.start()
        self.replicas.append(replica)
        self.proxy.add(replica)
        self.proxy.wait_for({replica.name for replica in self.replicas})
        self.seconds_to_use.append(time.monotonic() - replica.began)

    def round(self):
        self.phase("before", lambda: None)
        self.phase("killed", self.kill)
        for name, event in [("drained", self.drain), ("stopped", self.terminate)]:
            self.phase("added", self.add, 0.5)
            self.phase(name, event, 0.5)
        self.phase("added", self.add, 0.5)


def main():
    program, quick = sys.argv[1], "--quick" in sys.argv
    # So that `finally` ends the replicas.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    number_of_costs, turns, turn, rounds, window = (5, 1, 3, 1, 5) if quick else (40, 6, 6, 5, 10)
    patience = Patience(0 if quick else 300)
    bodies = [Path(f"examples/{name}.jpg").read_bytes() for name in IMAGES]
    with tempfile.TemporaryDirectory() as folder:
        started, proxy = [], None

        def start():
            started.append(Replica(program, folder, f"replica{len(started) + 1}"))
            return started[-1]

        try:
            # By a replica of its own: one that has just registered images expects the next to be as slow, and rejects more.
            kinds = {"embedding": PATH} if quick else KINDS
            alone = start()
            alone.wait()
            cost = costs(alone, bodies, number_of_costs, kinds)
            alone.stop()
            print(f"cost: {cost}", file=sys.stderr)
            replicas = [start() for _ in range(3)]
            for replica in replicas:
                replica.wait()
            proxy = Proxy(Path(folder), replicas)
            # The same from every replica, whatever shares its batch.
            right = {Client(proxy.port).ask(PATH, body, 0.0).answer for body in bodies}
            proxy.set_state(replicas[2], "drain")
            turns_of, failed = throughputs(proxy, replicas[:2], bodies, turns, turn, patience)
            print(f"throughput: {turns_of}", file=sys.stderr)
            one, two = (statistics.mean(turn[0] for turn in turns_of[count]) for count in (1, 2))
            if one == 0:
                raise RuntimeError("a replica answered nothing: other programs use all processors")
            cpu_each = {count: sum(turn[1] for turn in of) / sum(turn[0] for turn in of) for count, of in turns_of.items()}
            waiting = {}
            if not quick:
                proxy.set_state(replicas[1], "drain")
                patience.wait()
                waiting = queue(proxy, replicas[0], bodies, one, 15)
                print(f"queue: {waiting}", file=sys.stderr)
            for replica in replicas:
                proxy.set_state(replica, "ready")
            proxy.wait_for({replica.name for replica in replicas})
            patience.wait()
            events = Events(start, proxy, replicas, window)
            schedule = Schedule(proxy.port, PATH, bodies, LOAD * two)
            for _ in range(rounds):
                events.round()
            outcomes = schedule.stop()
        finally:
            if proxy is not None:
                proxy.stop()
            for replica in started:
                replica.process.kill()
                replica.process.wait()

    lost = sum(outcome.status != 200 for outcome in outcomes) + failed
    of_phase = events.by_phase(outcomes)
    p99 = {name: quantile([outcome.seconds for outcome in of], 0.99) for name, of in of_phase.items() if of}
    figures = {
        "lost_after_retry": lost,
        "p99_ratio": round(p99["killed"] / p99["before"], 3),
        "throughput_2_over_1": round(two / one, 3),
        "cpu_per_answer_2_over_1": round(cpu_each[2] / cpu_each[1], 3),
        "n": len(outcomes),
        "n_killed": len(of_phase["killed"]),
        "retried": sum(outcome.retries > 0 for outcome in outcomes),
        "most_retries": max(outcome.retries for outcome in outcomes),
        "answers_that_differ": sum(outcome.status == 200 and outcome.answer not in right for outcome in outcomes),
        "exit_codes_not_zero": sum(code != 0 for code in events.exit_codes),
    }
    if not quick:
        write_result(figures, cost, turns_of, waiting, of_phase, p99, LOAD * two, events.seconds_to_use, rounds)
    print(json.dumps(figures))
    return 0 if lost == figures["answers_that_differ"] == figures["exit_codes_not_zero"] == 0 else 1


def write_result(figures, cost, turns_of, waiting, of_phase, p99, rate, to_use, rounds):
    lines = [(FOLDER / "about.md").read_text()]
    lines += ["| one request at a time, one thread | n | CPU time each | median time | memory of the replica afterwards |", "|---|---|---|---|---|"]
    for kind, (number, cpu, median, memory) in cost.items():
        lines.append(f"| {kind} (`{KINDS[kind]}`) | {number} | {cpu:.2f} s | {median:.2f} s | {memory:.0f} MB |")
    lines += ["", "| throughput | answers per second, mean (least to most) | processors that replicas used | that others used | requests sent again |", "|---|---|---|---|---|"]
    for count, turns in turns_of.items():
        per_s, used, others, again = zip(*turns)
        name = ["one replica", "two replicas"][count - 1]
        spread = f"{statistics.mean(per_s):.2f} ({min(per_s):.2f} to {max(per_s):.2f})"
        lines.append(f"| {name}, {len(turns)} turns | {spread} | {statistics.mean(used):.2f} | {statistics.mean(others):.2f} | {sum(again)} |")
    lines += ["", "| load on one replica | images that wait: mean, most | sent again after a rejection |", "|---|---|---|"]
    for level, (mean, most, again) in waiting.items():
        lines.append(f"| {100 * level:.0f} % | {mean:.1f}, {most:.0f} | {100 * again:.0f} % |")
    lines += ["", f"{rounds} rounds, {rate:.2f} requests per second, three replicas, at most {RETRIES} retries:", ""]
    lines += ["| requests that were due | n | sent again once, more often | without an answer | median | p99 |", "|---|---|---|---|---|---|"]
    names = {
        "before": "before the kill",
        "killed": "after the kill (SIGKILL)",
        "drained": "while one is drained and stopped",
        "stopped": "while one is stopped (SIGTERM) and HAProxy not told",
        "added": "while one is added",
    }
    for key, name in names.items():
        of = of_phase[key]
        if not of:
            continue
        once, more = sum(outcome.retries == 1 for outcome in of), sum(outcome.retries > 1 for outcome in of)
        unanswered = sum(outcome.status != 200 for outcome in of)
        median = statistics.median(outcome.seconds for outcome in of)
        lines.append(f"| {name} | {len(of)} | {once}, {more} | {unanswered} | {median:.2f} s | {p99[key]:.2f} s |")
    lines += ["", f"From the start of a process to its first request: median {statistics.median(to_use):.1f} s, longest {max(to_use):.1f} s (n {len(to_use)}, under this load)."]
    lines += ["", "```json", json.dumps(figures), "```", ""]
    (FOLDER / "result.md").write_text("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
