"""Half an hour of good, bad, slow and hostile load on one server, and how an honest client fares meanwhile.

The honest client asks three times in two seconds from an address of its own: places without registration, embeddings, regions and grids of densities, the list of models. Its times count
from when a request was due. The same is measured for some minutes before and after, on the same server: that is `quiet`. All others come from addresses of
their own, each as fast as its rate says, whatever it is answered.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pictures
from arena import CHEAP, HONEST, LIMIT, LOCATE, MADAGASCAR, MIB, ROOT, SEED, Answer, Arena, exchange, milliseconds, request, say
from on_server import JSON, costly, malformed
from wire import Honest, Server, connected, reset, statuses

RATE = 1.5


class Load:
    """Clients that go on until they are told to stop."""

    def __init__(self, server: Server) -> None:
        self.server, self.over = server, threading.Event()
        self.counted: dict[str, Counter[int]] = {}
        self.bad: list[str] = []
        self.threads: list[threading.Thread] = []

    def note(self, name: str, answer: Answer) -> None:
        self.counted.setdefault(name, Counter())[answer.status] += 1
        if answer.status >= 500 and answer.status != 503:
            self.bad.append(f"{name}: {answer.status} {answer.body[:200]!r}")

    def asking(self, name: str, source: str, rate: float, requests: Iterator[bytes], clients: int = 1, timeout: float = 60.0) -> None:
        """So many requests per second, from so many threads."""
        lock = threading.Lock()

        def work() -> None:
            due = time.monotonic()
            while not self.over.wait(max(0.0, due - time.monotonic())):
                due = max(due + clients / rate, time.monotonic())
                with lock:
                    data = next(requests)
                self.note(name, exchange(self.server.port, data, source=source, timeout=timeout))

        self.start(work, clients)

    def holding(self, name: str, source: str, clients: int, hold: Callable[[socket.socket], None]) -> None:
        """So many connections at a time, each treated by `hold` until it is closed, and opened again a second later."""

        def work() -> None:
            while not self.over.wait(1.0):
                try:
                    stream = connected(self.server.port, source, 5)
                except OSError:
                    continue
                self.counted.setdefault(name, Counter())[-1] += 1
                try:
                    hold(stream)
                except OSError:
                    pass
                finally:
                    reset(stream)

        self.start(work, clients)

    def start(self, work: Callable[[], None], clients: int) -> None:
        for _ in range(clients):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self.threads.append(thread)

    def stop(self) -> None:
        self.over.set()
        until = time.monotonic() + 20
        for thread in self.threads:
            thread.join(max(0.0, until - time.monotonic()))


def honest_requests(arena: Arena, port: int) -> list[bytes]:
    """One in six asks for a place, which takes the longest; the others are small."""
    place = request("POST", LOCATE, arena.photo, port=port)
    other = request("POST", CHEAP, (ROOT / "examples/sinai.jpg").read_bytes(), port=port)
    return [
        place, request("GET", "/v1/models", port=port), other, request("POST", "/v1/density?format=geojson", arena.density, JSON, port=port),
        request("GET", "/health/ready", port=port), request("POST", "/v1/density?format=grid&width=256", arena.density, JSON, port=port),
    ]  # fmt: skip


KINDS = ("place", "list of models", "embedding", "regions", "readiness", "grid")


def by_kind(runs: list[list[Answer]]) -> dict[str, dict[str, object]]:
    """Times of each kind of honest request, and what those were told that were rejected. Each run begins with the first kind."""
    found = {}
    for number, kind in enumerate(KINDS):
        answers = [answer for run in runs for answer in run[number :: len(KINDS)]]
        # Only the beginning of an answer is kept.
        details = (re.search(r'"detail":"([^"]*)', answer.body.decode(errors="replace")) for answer in answers if answer.status >= 400)
        told = Counter(re.sub(r"[0-9.]+", "N", detail[1]) for detail in details if detail)
        found[kind] = {"sent": len(answers), "answered": statuses(answers), "p50_ms": milliseconds(answers, 0.5), "p99_ms": milliseconds(answers, 0.99), "rejected because": dict(told)}
    return found


def mixed(arena: Arena, load: Load) -> None:
    """Everybody but the honest client."""
    port, chance = load.server.port, random.Random(SEED)
    post = lambda target, body, headers=None: request("POST", target, body, headers, port=port)  # noqa: E731
    # Good: whole answers with registration, which take seconds, and plain ones.
    for number in range(3):
        target = ("/v1/locate", LOCATE, CHEAP)[number]
        load.asking(f"good: {target}", f"127.0.1.{number + 1}", (0.05, 0.1, 0.5)[number], itertools.cycle([post(target, arena.photo)]))
    # Bad: mistakes of programs.
    mistakes = [
        request("GET", "/v1/nothing", port=port), post("/v1/locate?tpo=3", arena.photo), post(CHEAP, b"no picture"), post("/v1/density", b"{}", JSON), request("PUT", "/v1/locate", b"x", port=port), post(CHEAP, arena.photo[:5000]), post("/v1/locate?model=none", arena.photo),
    ]  # fmt: skip
    load.asking("bad: mistakes", "127.0.1.11", 5, itertools.cycle(mistakes))
    load.asking("bad: damaged pictures", "127.0.1.12", 3, (post(CHEAP, data) for _, data in itertools.cycle(pictures.mutations(3, SEED))))
    # Hostile.
    bombs = list(pictures.bombs().values()) + list(pictures.giants().values())
    load.asking("hostile: bombs", "127.0.0.2", 2, (post(CHEAP, data) for data in itertools.cycle(bombs)), clients=2)
    densities = [post(f"/v1/density?{query}", body, JSON) for query, body in costly()]
    load.asking("hostile: costly densities", "127.0.0.3", 2, itertools.cycle(densities), clients=4)
    load.asking("hostile: flood", "127.0.0.4", 20, itertools.cycle([post(LOCATE, arena.photo), request("GET", "/v1/models", port=port), post(CHEAP, arena.photo)]), clients=4)
    load.asking("hostile: large bodies", "127.0.0.5", 1, itertools.cycle([post("/v1/density", b'{"kind":"linear","max_degree":127,"coefficients":[' + b"0," * (3 * MIB - 200) + b"0]}", JSON), post(CHEAP, bytes(30 * MIB))]), clients=2)
    wrong = malformed(port, arena.photo)

    def broken() -> Iterator[bytes]:
        while True:
            data = chance.choice(wrong)[:20_000] or b"\0"
            yield pictures.mutated(data, chance)

    load.asking("hostile: malformed HTTP", "127.0.0.6", 4, broken(), clients=4, timeout=3)
    head = request("POST", CHEAP, b"", {"Content-Length": str(30 * MIB)}, port=port)

    def trickle(first: bytes) -> Callable[[socket.socket], None]:
        def hold(stream: socket.socket) -> None:
            stream.sendall(first)
            while not load.over.wait(1.0):
                stream.sendall(b"a")

        return hold

    load.holding("slow: heads", "127.0.0.7", 20, trickle(b"GET /v1/models HTTP/1.1\r\nX-A: "))
    load.holding("slow: bodies", "127.0.0.8", 20, trickle(head))

    def idle(stream: socket.socket) -> None:
        stream.settimeout(1)
        while not load.over.is_set():
            try:
                if not stream.recv(1000):
                    return
            except TimeoutError:
                continue

    load.holding("slow: idle", "127.0.0.9", 50, idle)
    large = post("/v1/density?format=grid&width=1024", arena.density, JSON)

    def reads_slowly(stream: socket.socket) -> None:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stream.sendall(large)
        while not load.over.wait(1.0):
            if not stream.recv(1):
                return

    load.holding("slow: readers", "127.0.0.10", 4, reads_slowly)


def soak(arena: Arena, minutes: float, quiet_minutes: float) -> dict[str, object]:
    with arena.start() as server:
        arena.warm(server)
        idle = server.memory()
        asks = honest_requests(arena, server.port)

        def honest(seconds: float, each: Callable[[float], None] = lambda _: None) -> list[Answer]:
            client = Honest(server, asks, RATE, source=HONEST)
            client.start()
            began = time.monotonic()
            while (now := time.monotonic() - began) < seconds:
                each(now)
                time.sleep(1)
            return client.stop()

        honest(10)
        before = honest(60 * quiet_minutes)
        say(f"quiet: p50 {milliseconds(before, 0.5)} ms, p99 {milliseconds(before, 0.99)} ms")
        server.forget_peak()
        load = Load(server)
        mixed(arena, load)
        memory: list[tuple[int, int, int]] = []

        def watch(now: float) -> None:
            if not server.lives():
                raise SystemExit(f"the server ended: {server.words()[-2000:]}")
            if not memory or now - memory[-1][0] >= 10:
                memory.append((int(now), server.memory() // MIB, server.descriptors_open()))
                if len(memory) % 12 == 0:
                    say(f"{now:.0f} s: {memory[-1][1]} MB, {memory[-1][2]} descriptors, 5xx {len(load.bad)}, {server.panics()} panics")

        # The first two minutes of load fill whatever is kept; then it is measured at rest, and again at the end.
        warming = honest(min(120, 30 * minutes), watch)
        load.stop()
        time.sleep(20)
        early = server.memory()
        load_two = Load(server)
        load_two.counted, load_two.bad = load.counted, load.bad
        load = load_two
        mixed(arena, load)
        main = honest(60 * minutes - min(120, 30 * minutes), watch)
        during = warming + main
        load.stop()
        peak = server.memory("VmHWM")
        time.sleep(20)
        late = server.memory()
        after = honest(60 * quiet_minutes)
        quiet = before + after
        words = server.words()
        p99 = milliseconds(during, 0.99)
        bad = [answer for answer in during + quiet if answer.status >= 500 and answer.status != 503]
        result: dict[str, object] = {
            "minutes": minutes,
            "requests": sum(sum(number for status, number in counted.items() if status >= 0) for counted in load.counted.values()) + len(during),
            "soak_growth_mb": round((late - early) / MIB, 1),
            "soak_5xx": len(load.bad) + len(bad),
            "5xx in the log": words.count("ERROR"),
            "panics": server.panics(),
            "honest_p99_ratio": round(p99 / milliseconds(quiet, 0.99), 2),
            "honest": {"sent": len(during), "answered": statuses(during), "p50_ms": milliseconds(during, 0.5), "p99_ms": p99},
            "honest_kinds": by_kind([warming, main]),
            "quiet_kinds": by_kind([before, after]),
            "quiet": {"sent": len(quiet), "answered": statuses(quiet), "p50_ms": milliseconds(quiet, 0.5), "p99_ms": milliseconds(quiet, 0.99), "p99_before_ms": milliseconds(before, 0.99), "p99_after_ms": milliseconds(after, 0.99)},
            "peak_over_limit": round((peak - idle) / LIMIT, 3),
            "memory_mb": {"idle": idle // MIB, "after two minutes": early // MIB, "end": late // MIB, "peak": peak // MIB},
            "load": {name: {"connections" if status == -1 else "none" if status == 0 else str(status): number for status, number in sorted(counted.items())} for name, counted in sorted(load.counted.items())},
            "failures": load.bad[:10],
            "samples": memory[:: max(1, len(memory) // 60)],
        }
        say(json.dumps({key: value for key, value in result.items() if key != "samples"}, ensure_ascii=False))
        return result


assert MADAGASCAR.exists()
