"""What attacks share: the list of them, a server that lives through all of those on it, and what every one of them must leave intact."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wire import HONEST, LIMIT, MIB, ROOT, Answer, Honest, Server, exchange, quantile, request, statuses

SEED = 20261118
#: What an honest client asks about a picture: a tenth of a second of work. Places take ten times as long.
CHEAP = "/v1/embed"
LOCATE = "/v1/locate?registration=false"
MADAGASCAR = ROOT / "examples/madagascar.jpg"


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


@dataclass
class Result:
    """What came of an attack."""

    name: str
    how: str
    area: str
    holds: str = ""
    defect: int | None = None
    count: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    panics: int = 0
    seconds: float = 0.0
    peak_over_limit: float | None = None

    @property
    def held(self) -> bool:
        return not self.failed

    def check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.failed.append(otherwise)

    def answered(self, answers: list[Answer], expected: str = "") -> None:
        """Counts answers; any of 5xx but 503 fails. `expected`: the statuses that there may be."""
        self.count += len(answers)
        found = statuses(answers)
        for status, number in found.items():
            self.statuses[status] = self.statuses.get(status, 0) + number
        for answer in answers:
            if answer.status >= 500 and answer.status != 503:
                self.failed.append(f"answered {answer.status}: {answer.body[:200]!r}")
        if expected:
            other = {status: number for status, number in found.items() if status not in expected.split()}
            self.check(not other, f"other answers than {expected}: {other}")


@dataclass
class Attack:
    name: str
    how: str
    area: str
    run: Callable[[Arena, Result], None]
    #: Whether it happens to the server that all share.
    shared: bool
    #: Number of the earlier defect that this attack would find again; `--quick` makes these attacks.
    defect: int | None
    #: When it holds, beside what all have in common.
    holds: str


ATTACKS: list[Attack] = []


def attack(name: str, how: str, *, area: str, shared: bool = False, defect: int | None = None, holds: str = "") -> Callable[[Callable[[Arena, Result], None]], None]:
    """Registers an attack: its name, and how it is made."""

    def register(run: Callable[[Arena, Result], None]) -> None:
        ATTACKS.append(Attack(name, how, area, run, shared, defect, holds))

    return register


class Arena:
    def __init__(self, program: Path, scratch: Path, quick: bool) -> None:
        self.program, self.scratch, self.quick = program, scratch, quick
        self.server: Server | None = None
        self.idle = 0
        self.before: object = None
        self.number = 0
        self.photo = MADAGASCAR.read_bytes()

    def folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def some(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def start(self, *options: str, descriptors: int | None = None) -> Server:
        self.number += 1
        limits = [] if "--max-memory-bytes" in options else ["--max-memory-bytes", str(LIMIT)]
        return Server(self.program, self.scratch, [*limits, *options], descriptors=descriptors, name=f"server-{self.number}")

    def shared(self) -> Server:
        if self.server is None or not self.server.lives():
            self.server = self.start()
            self.warm(self.server)
            self.idle = self.server.memory()
        return self.server

    def warm(self, server: Server) -> None:
        """An answer of each kind, to another client: what is opened or allocated once belongs to the idle server."""
        first = server.post("/v1/locate?density=true", self.photo)
        assert first.status == 200, f"{first.status} {first.body[:300]!r} {server.words()}"
        self.before = content(server.post(CHEAP, self.photo, source=HONEST))
        self.density = json.dumps(first.json()["results"][0]["density"]).encode()
        for form in ("format=grid&width=256", "format=png&width=256", "format=geojson"):
            drawn = server.post(f"/v1/density?{form}", self.density)
            assert drawn.status == 200, drawn

    def asks(self, server: Server) -> list[bytes]:
        """What an honest client asks: a picture, and twice something small."""
        picture = request("POST", CHEAP, self.photo, port=server.port)
        return [picture, request("GET", "/health/ready", port=server.port), request("GET", "/v1/models", port=server.port)]

    def recovers(self, server: Server, result: Result) -> None:
        """After an attack the same request has the same answer, soon."""
        began = time.monotonic()
        answer = Answer()
        while time.monotonic() - began < 30 and server.lives():
            answer = server.post(CHEAP, self.photo, source=HONEST, timeout=20)
            if answer.status == 200:
                break
            time.sleep(0.25)
        seconds = time.monotonic() - began
        result.facts["answers again after s"] = round(seconds, 2)
        result.check(server.lives(), f"the server ended with {server.process.poll()}")
        result.check(answer.status == 200 and content(answer) == self.before, f"after it, an honest request had {answer.status} {answer.reason}")
        result.check(seconds <= 10, f"{seconds:.0f} s until an honest request was answered")

    def perform(self, one: Attack) -> Result:
        result = Result(one.name, one.how, one.area, one.holds, one.defect)
        began = time.monotonic()
        try:
            if one.shared:
                self.on_shared(one, result)
            else:
                one.run(self, result)
        except Exception as error:  # noqa: BLE001: an attack that can't be carried out did not hold
            result.failed.append(f"not carried out: {error!r} {traceback.format_exc(limit=-2)}")
        result.seconds = round(time.monotonic() - began, 1)
        over = "" if result.peak_over_limit is None else f", peak {result.peak_over_limit:.2f}"
        say(f"{'held  ' if result.held else 'FAILED'} {result.name}: {result.count} in {result.seconds} s{over} {result.statuses} {result.facts}")
        for failure in result.failed[:8]:
            say("       ", failure[:600])
        return result

    def on_shared(self, one: Attack, result: Result) -> None:
        server = self.shared()
        panics = server.panics()
        server.forget_peak()
        honest = Honest(server, self.asks(server), 3.0)
        honest.start()
        # The kernel's own peak, and samples of it: for a machine that can't forget the peak.
        try:
            one.run(self, result)
        finally:
            answers = honest.stop()
        if server.lives():
            result.peak_over_limit = round((server.memory("VmHWM") - self.idle) / LIMIT, 3)
            result.check(result.peak_over_limit <= 1.1, f"peak of {result.peak_over_limit} of the limit")
        result.panics = server.panics() - panics
        result.check(result.panics == 0, f"{result.panics} panics: {[line for line in server.words().splitlines() if 'panicked' in line][-3:]}")
        bad = [answer for answer in answers if answer.status >= 500 and answer.status != 503]
        result.check(not bad, f"honest requests meanwhile were answered {statuses(bad)}")
        served = [answer.seconds for answer in answers if answer.status == 200]
        result.facts["honest meanwhile"] = f"{len(served)} of {len(answers)} answered, slowest {1000 * max(served, default=0):.0f} ms"
        self.recovers(server, result)

    def stop(self) -> None:
        if self.server:
            self.server.stop()


def content(answer: Answer) -> object:
    """What doesn't change from answer to answer."""
    return answer.json() if answer.status == 200 else answer.status


def timed(server: Server, requests: list[bytes], rate: float, seconds: float, work: Callable[[], object] | None = None) -> list[Answer]:
    """Answers of an honest client for so long, or for as long as the work takes."""
    client = Honest(server, requests, rate)
    client.start()
    if work is None:
        time.sleep(seconds)
    else:
        work()
    return client.stop()


def milliseconds(answers: list[Answer], share: float) -> float:
    return round(1000 * quantile([answer.seconds for answer in answers if answer.status == 200], share), 1)


def in_background(work: Callable[[], object], count: int = 1) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


__all__ = [
    "ATTACKS", "CHEAP", "HONEST", "LIMIT", "LOCATE", "MADAGASCAR", "MIB", "ROOT", "SEED", "Answer", "Arena", "Result", "Server",
    "attack", "exchange", "in_background", "content", "milliseconds", "request", "say", "timed",
]  # fmt: skip
