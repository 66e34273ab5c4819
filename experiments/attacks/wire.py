"""A server under attack, and clients that talk to it over sockets of their own, from any address of 127.0.0.0/8."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import queue
import re
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMIT = 512 * MIB
HONEST = "127.0.0.1"


@dataclass
class Answer:
    """What came back. Status 0: nothing, or the connection was closed."""

    status: int = 0
    head: str = ""
    body: bytes = b""
    seconds: float = 0.0
    reason: str = ""

    def json(self) -> dict:
        return json.loads(self.body)


def strangers() -> Iterator[str]:
    """Addresses of clients, one after the other."""
    for number in itertools.cycle(range(60_000)):
        yield f"127.{77 + number % 20}.{1 + number // 250 % 250}.{1 + number % 250}"


STRANGERS = strangers()
LOCK = threading.Lock()


def stranger() -> str:
    with LOCK:
        return next(STRANGERS)


def connected(port: int, source: str | None = None, timeout: float = 10.0) -> socket.socket:
    opened = socket.socket()
    try:
        opened.settimeout(timeout)
        # IP_BIND_ADDRESS_NO_PORT: ports are chosen for each pair of addresses.
        with contextlib.suppress(OSError):
            opened.setsockopt(socket.IPPROTO_IP, 24, 1)
        if source is not None:
            opened.bind((source, 0))
        opened.connect(("127.0.0.1", port))
    except OSError:
        opened.close()
        raise
    return opened


def request(method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None, *, port: int, close: bool = True) -> bytes:
    named = {"Host": f"127.0.0.1:{port}", **(headers or {})}
    if close:
        named["Connection"] = "close"
    if body or method == "POST":
        named.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def answers_in(data: bytes) -> list[Answer]:
    """All complete answers of a connection."""
    found = []
    while b"\r\n\r\n" in data:
        head, rest = data.split(b"\r\n\r\n", 1)
        words = head.split(b" ", 2)
        if not head.startswith(b"HTTP/1.") or len(words) < 2 or not words[1].isdigit():
            break
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
        size = int(length[1]) if length else 0
        if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):
            body, rest = unchunked(rest)
        else:
            body, rest = rest[:size], rest[size:]
        if int(words[1]) != 100:
            found.append(Answer(int(words[1]), head.decode("latin-1"), body))
        data = rest
    return found


def unchunked(data: bytes) -> tuple[bytes, bytes]:
    body = b""
    while b"\r\n" in data:
        size, data = data.split(b"\r\n", 1)
        length = int(size.split(b";")[0], 16)
        body, data = body + data[:length], data[length + 2 :]
        if length == 0:
            break
    return body, data


def length_of(data: bytearray) -> int:
    """How many bytes the first answer has in all; 0 if that isn't known yet, or only by its end."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return 0
    if data.startswith(b"HTTP/1.1 100"):
        del data[: end + 4]
        return length_of(data)
    found = re.search(rb"\r\ncontent-length: *(\d+)", data[:end], re.I)
    return end + 4 + int(found[1]) if found else 0


def exchange(port: int, data: bytes, *, source: str | None = None, timeout: float = 60.0, rest: bool = False) -> Answer:
    """Sends while it reads: a server may answer, and close, before everything was sent. With `rest`, all answers up to the end, the last one
    returned."""
    began, received, reason, needed = time.monotonic(), bytearray(), "", 0
    try:
        with connected(port, source or stranger(), timeout) as stream:
            stream.setblocking(False)
            sent = memoryview(data)
            while time.monotonic() - began < timeout:
                writable = [stream] if sent else []
                readable, writable, _ = select.select([stream], writable, [], 0.5)
                if writable:
                    try:
                        sent = sent[stream.send(sent[: 1 << 18]) :]
                    except (BrokenPipeError, ConnectionResetError) as error:
                        sent, reason = sent[:0], repr(error)
                if readable:
                    part = stream.recv(1 << 18)
                    if not part:
                        break
                    received += part
                    needed = needed or length_of(received)
                    if not rest and needed and len(received) >= needed:
                        break
            else:
                reason = reason or "timed out"
    except OSError as error:
        reason = reason or repr(error)
    found = answers_in(bytes(received))
    answer = found[-1 if rest else 0] if found else Answer(reason=reason or "closed without an answer")
    answer.seconds = time.monotonic() - began
    return answer


def at_once(count: int, jobs: Iterable[Callable[[], Answer]]) -> list[Answer]:
    """Runs jobs in so many threads."""
    waiting: queue.SimpleQueue[Callable[[], Answer]] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    done: list[Answer] = []

    def work() -> None:
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            done.append(job())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def statuses(answers: Iterable[Answer]) -> dict[str, int]:
    counted = Counter(answer.status for answer in answers)
    return {"none" if status == 0 else str(status): number for status, number in sorted(counted.items())}


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


@dataclass
class Server:
    """`locdiff serve` or `locdiff review`, as a process of its own."""

    program: Path
    folder: Path
    options: list[str] = field(default_factory=list)
    command: str = "serve"
    descriptors: int | None = None
    name: str = "server"

    def __post_init__(self) -> None:
        self.log = self.folder / f"{self.name}.log"
        environment = {**os.environ, "LOCDIFF_HOME": str(self.folder / "home"), "HF_HOME": str(self.folder / "hub"), "NO_COLOR": "1"}
        arguments = [str(self.program), self.command, "--port", "0", *self.options]
        if self.command == "serve" and "--model" not in self.options:
            arguments += ["--model", "earth-view"]
        limit = (self.descriptors, self.descriptors) if self.descriptors else None

        def prepared() -> None:
            if limit:
                resource.setrlimit(resource.RLIMIT_NOFILE, limit)

        with self.log.open("wb") as log:
            self.process = subprocess.Popen(arguments, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=log, preexec_fn=prepared)
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.search(r":(\d+)", line.split("//")[-1])
        if found is None:
            raise SystemExit(f"the server does not start: {line} {self.words()}")
        self.port = int(found[1])
        for _ in range(200):
            if self.get("/health/ready").status in (200, 403, 404):
                break
            time.sleep(0.1)

    def get(self, target: str, headers: dict[str, str] | None = None, *, source: str = HONEST, timeout: float = 20.0) -> Answer:
        return exchange(self.port, request("GET", target, headers=headers, port=self.port), source=source, timeout=timeout)

    def post(self, target: str, body: bytes, headers: dict[str, str] | None = None, *, source: str | None = None, timeout: float = 60.0) -> Answer:
        return exchange(self.port, request("POST", target, body, headers, port=self.port), source=source, timeout=timeout)

    def memory(self, which: str = "VmRSS") -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"{which}:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0

    def forget_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def lives(self) -> bool:
        return self.process.poll() is None

    def words(self) -> str:
        return self.log.read_text(errors="replace")

    def panics(self) -> int:
        return self.words().count("panicked")

    def descriptors_open(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> None:
        if self.lives():
            self.process.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Honest:
    """A client that asks one cheap thing after the other, so many times per second, and keeps its times. It is a process of its own, so that attackers
    and it do not wait for each other."""

    def __init__(self, server: Server, requests: list[bytes], rate: float, *, source: str = HONEST) -> None:
        self.said = (server.port, requests, rate, source)

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin
        pickle.dump(self.said, self.process.stdin)
        self.process.stdin.flush()

    def stop(self) -> list[Answer]:
        # The end of its input tells it to stop.
        out, _ = self.process.communicate()
        return [Answer(status, body=body.encode(), seconds=seconds, reason=reason) for status, body, seconds, reason in json.loads(out)]


def honest() -> None:
    """The process of an honest client."""
    port, requests, rate, source = pickle.load(sys.stdin.buffer)
    over = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    answers, due = [], time.monotonic()
    for data in itertools.cycle(requests):
        if over.wait(max(0.0, due - time.monotonic())):
            break
        answer = exchange(port, data, source=source, timeout=60.0)
        # From when it was due: a late answer makes the next request late, which is not that one's merit.
        seconds = time.monotonic() - due
        due += 1 / rate
        answers.append((answer.status, "" if answer.status < 400 else answer.body[:300].decode(errors="replace"), seconds, answer.reason))
    print(json.dumps(answers))


def reset(stream: socket.socket) -> None:
    """Closes without a farewell."""
    with contextlib.suppress(OSError):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def many(port: int, count: int, data: bytes = b"") -> list[socket.socket]:
    """Connections that have sent so much."""
    opened = []
    for _ in range(count):
        with contextlib.suppress(OSError):
            stream = connected(port, stranger(), 5.0)
            if data:
                stream.sendall(data)
            stream.setblocking(False)
            opened.append(stream)
    return opened


def counted(text: str, pattern: str) -> int:
    return len(re.findall(pattern, text))


if __name__ == "__main__":
    honest()
