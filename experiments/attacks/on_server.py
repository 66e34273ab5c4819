"""Attacks on the server: pictures, densities, connections, malformed HTTP, foreign pages, and clients that take more than their share."""

from __future__ import annotations

import json
import math
import os
import random
import re
import select
import socket
import struct
import threading
import time
from itertools import islice

import pictures
from arena import CHEAP, HONEST, LOCATE, ROOT, SEED, Answer, Arena, Result, attack, exchange, in_background, milliseconds, request, timed
from wire import MIB, answers_in, at_once, connected, counted, many, reset, statuses, stranger

JSON = {"Content-Type": "application/json"}


def sent(arena: Arena, bodies: list[tuple[str, bytes]], target: str = CHEAP, width: int = 16, headers: dict[str, str] | None = None, timeout: float = 60.0) -> list[Answer]:
    """Each body as a request from an address of its own, so many at once. What is rejected because the queue is full is sent again for a while, so that
    it reaches what it attacks."""
    server = arena.shared()

    def one(body: bytes) -> Answer:
        until = time.monotonic() + 20
        while True:
            answer = server.post(target, body, headers, timeout=timeout)
            if answer.status not in (0, 429, 503) or time.monotonic() > until:
                return answer
            time.sleep(0.1)

    return at_once(width, [lambda body=body: one(body) for _, body in bodies])


# Pictures.


@attack("decompression bomb", "a 7000 × 7000 16-bit RGBA PNG of 381 kB (392 MB of pixels), 16 at a time", area="pictures", shared=True, defect=1)
def _(arena: Arena, result: Result) -> None:
    bodies = [("", pictures.png_16_bit())] * arena.some(64, 12)
    result.answered(sent(arena, bodies), "200 413 422 429 503")


@attack("bombs of every format", "16 kinds of PNG, JPEG, GIF, TIFF, WebP and BMP at the limit of 50 megapixels, from 32 B to 6 MB, 16 at a time", area="pictures", shared=True)
def _(arena: Arena, result: Result) -> None:
    result.answered(sent(arena, pictures.spread(arena.some(96, 16), pictures.bombs)), "200 400 413 415 422 429 503")


@attack("bombs in forms", "16 bombs in one request, 8 requests at a time", area="pictures", shared=True)
def _(arena: Arena, result: Result) -> None:
    bodies = list(pictures.bombs().values())
    forms = []
    for number in range(arena.some(24, 4)):
        chosen = [bodies[(number + k) % len(bodies)] for k in range(16)]
        parts = b"".join(b'--x\r\nContent-Disposition: form-data; name="image"\r\n\r\n' + body + b"\r\n" for body in chosen)
        forms.append(("", parts + b"--x--\r\n"))
    result.answered(sent(arena, forms, width=8, headers={"Content-Type": "multipart/form-data; boundary=x"}, timeout=130), "200 400 413 415 422 429 503")


@attack("lying headers", "24 pictures whose headers state up to 2³² pixels along a side, or strips, tiles and frames that are not there", area="pictures", shared=True, defect=1)
def _(arena: Arena, result: Result) -> None:
    result.answered(sent(arena, pictures.spread(arena.some(480, 48), pictures.giants)), "200 400 413 415 422 429 503")


@attack("large metadata", "12 small pictures with up to 1 GB of compressed profiles, text, Exif, markers or chunks beside them, 16 at a time", area="pictures", shared=True)
def _(arena: Arena, result: Result) -> None:
    result.answered(sent(arena, pictures.spread(arena.some(72, 12), pictures.metadata)), "200 400 413 415 422 429 503")


@attack("scans", "progressive JPEGs of 7000 × 7000 pixels with up to 400 scans of 2 kB each, 8 at a time", area="pictures", shared=True)
def _(arena: Arena, result: Result) -> None:
    kinds = [pictures.jpeg(pictures.SIDE, scans=scans) for scans in (10, 100, 101, 189)] + [pictures.jpeg(4000, scans=100, components=1)]
    bodies = [("", kinds[number % len(kinds)]) for number in range(arena.some(40, 5))]
    result.answered(sent(arena, bodies, width=8, timeout=130), "200 400 413 415 422 429 503")


@attack("mutated pictures", "one to three changes in each picture of the tests: bits, lengths, bytes removed, repeated, inserted or swapped (seeded)", area="pictures", shared=True)
def _(arena: Arena, result: Result) -> None:
    bodies = list(pictures.mutations(arena.some(14, 1), SEED))
    result.answered(sent(arena, bodies, width=8), "200 400 413 415 422 429 503")
    result.answered(sent(arena, bodies[::40], LOCATE, width=8), "200 400 413 415 422 429 503")


@attack("truncated pictures", "each picture of the tests, cut at random lengths (seeded)", area="pictures", shared=True)
def _(arena: Arena, result: Result) -> None:
    result.answered(sent(arena, list(pictures.truncations(arena.some(10, 1), SEED)), "/v1/embed", width=8), "200 400 413 415 422 429 503")


# Densities.


def numbers(count: int, text: str = "0") -> str:
    return ",".join([text] * count)


@attack("large bodies of densities", "16 MB of JSON, and 6 MB at the limit in the shapes that take most memory, 16 at a time", area="densities", shared=True, defect=1)
def _(arena: Arena, result: Result) -> None:
    most = 6 * MIB - 200
    kinds = [
        b'{"kind":"linear","max_degree":127,"coefficients":[' + numbers(8 * MIB).encode() + b"]}",
        b'{"kind":"linear","max_degree":127,"coefficients":[' + numbers(most // 2).encode() + b"]}",
        b'{"kind":"cells","cells":[' + numbers(most // 3, '""').encode() + b'],"masses":[]}',
        b'{"kind":"mixture","parts":[' + numbers(most // 3, "{}").encode() + b"]}",
        b'{"kind":"mixture","parts":[' + numbers(most // 62, '{"weight":1,"density":{"kind":"cells","cells":[],"masses":[]}}').encode() + b"]}",
        b'{"other":[' + numbers(most // 3, "[]").encode() + b'],"kind":"linear"}',
        b'{"kind":"points","kernel_km":100,"latitudes":[' + numbers(most // 6).encode() + b'],"longitudes":[' + numbers(most // 6).encode() + b'],"masses":[' + numbers(most // 6).encode() + b"]}",
        b'{"density":' + b" " * most + b"}",
    ]
    for width in (8, 16):
        bodies = [("", kinds[number % len(kinds)]) for number in range(arena.some(96, 16) // 2)]
        result.answered(sent(arena, bodies, "/v1/density", width=width, headers=JSON), "200 400 413 422 429 503")


@attack("nested JSON", "densities nested up to 1,000,000 deep, as records, arrays, objects and strings", area="densities", shared=True, defect=4)
def _(arena: Arena, result: Result) -> None:
    inner, kinds = '{"kind":"exponential","max_degree":0,"coefficients":[0]}', []
    for depth in (3, 4, 5, 100, 127, 128, 1_000, 50_000):
        kinds.append('{"kind":"mixture","parts":[{"weight":1,"density":' * depth + inner + "}]}" * depth)
        kinds.append('{"kind":"product","factors":[{"exponent":1,"density":' * depth + inner + "}]}" * depth)
    kinds += ["[" * 1_000_000, '{"a":' * 1_000_000, '{"kind":' * 700_000, '{"kind":"' + '\\"' * 1_000_000]
    bodies = [("", kinds[number % len(kinds)].encode()) for number in range(arena.some(200, 20))]
    result.answered(sent(arena, bodies, "/v1/density", headers=JSON), "200 400 413 422 429 503")


@attack("long strings", "`kind`, field names, cells and numbers of 5 MB: errors must be short", area="densities", shared=True, defect=3, holds="no answer is longer than 5 kB")
def _(arena: Arena, result: Result) -> None:
    long = "\x1b[31m" .replace("\x1b", "\\u001b") + "k" * (5 * MIB)
    kinds = [
        f'{{"kind":"{long}"}}', f'{{"{long}":1}}', f'{{"kind":"cells","cells":["{long}"],"masses":[1]}}', f'{{"kind":"linear","max_degree":{"9" * 5 * MIB}}}',
        f'{{"kind":"linear","max_degree":1,"coefficients":[1e{"9" * 5 * MIB}]}}', f'"{long}"', "é" * 2 * MIB, f'{{"kind":"linear","max_degree":"{long}"}}',
        f'{{"kind":"exponential","max_degree":0,"coefficients":[0],"{long}":0}}',
    ]  # fmt: skip
    answers = sent(arena, [("", kinds[number % len(kinds)].encode()) for number in range(arena.some(90, 9))], "/v1/density", width=8, headers=JSON)
    result.answered(answers, "400 413 422 429 503")
    longest = max(len(answer.body) for answer in answers)
    result.facts["longest answer"] = f"{longest} B"
    result.check(longest <= 5000, f"an error of {longest} bytes")
    result.check(not any(byte < 32 and byte not in b"\n\t\r" for answer in answers for byte in answer.body), "control bytes in an error")


@attack("odd densities", "numbers that are none, huge, zero or negative; wrong types; missing, repeated and unknown fields; strings with halves of characters", area="densities", shared=True)
def _(arena: Arena, result: Result) -> None:
    values = ["NaN", "Infinity", "1e999", "-1e999", "1e308", "-1", "-0.0", "0", "1e-320", "null", "true", '"1"', "[]", "{}", "18446744073709551616", "0x1", "1.", '"\\ud800"']
    fields = {
        "exponential": {"max_degree": "1", "coefficients": "[0,0.5,2,-1]"},
        "linear": {"max_degree": "1", "coefficients": "[0.28,0.1,0.7,-0.2]"},
        "points": {"kernel_km": "25", "latitudes": "[38.7]", "longitudes": "[-9.1]", "masses": "[1]"},
        "cells": {"cells": '["03"]', "masses": "[1]"},
        "mixture": {"parts": '[{"weight":1,"density":{"kind":"cells","cells":["2"],"masses":[1]}}]'},
        "product": {"factors": '[{"exponent":1,"density":{"kind":"cells","cells":["2"],"masses":[1]}}]'},
    }
    kinds = []
    for kind, plain in fields.items():
        for name in plain:
            for value in values:
                for wrapped in (value, f"[{value}]", f"[{value},{value},{value},{value}]"):
                    whole = {**plain, name: wrapped}
                    kinds.append(f'{{"kind":"{kind}",' + ",".join(f'"{key}":{text}' for key, text in whole.items()) + "}")
            kinds.append(f'{{"kind":"{kind}"}}')
            kinds.append(f'{{"kind":"{kind}","{name}":{plain[name]},"{name}":{plain[name]}}}')
    kinds += ["", "null", "[]", "{", '{"kind":"cells","cells":["' + "0" * 20 + '"],"masses":[1]}', '{"kind":"cells","cells":["9","-1","é"],"masses":[1,1,1]}', "\ufeff{}", '{"kind":"points"' + "\0" + "}"]
    bodies = [(text, text.encode()) for text in kinds]
    bodies = bodies[:: arena.some(2, 12)]
    forms = ["format=grid&width=64", "format=png&width=64", "format=geojson"]
    for number, form in enumerate(forms):
        result.answered(sent(arena, bodies[number :: len(forms)], f"/v1/density?{form}", width=8, headers=JSON), "200 400 413 422 429 503")


def everywhere(count: int) -> tuple[list[float], list[float]]:
    golden = 180 * (3 - math.sqrt(5))
    heights = [1 - (k + 0.5) / (count / 2) for k in range(count)]
    return [round(math.degrees(math.asin(height)), 4) for height in heights], [round(golden * k % 360 - 180, 4) for k in range(count)]


def costly() -> list[tuple[str, bytes]]:
    """The most expensive that we can think of, with the queries that make them so."""
    chance = random.Random(SEED)

    def noise(degree: int, size: float) -> list[float]:
        return [round(chance.gauss(0, size), 4) for _ in range((degree + 1) ** 2)]

    def points(kernel: float, count: int) -> dict[str, object]:
        latitudes, longitudes = everywhere(count)
        return {"kind": "points", "kernel_km": kernel, "latitudes": latitudes, "longitudes": longitudes, "masses": [1] * count}

    exponential = [{"kind": "exponential", "max_degree": degree, "coefficients": noise(degree, size)} for degree, size in ((127, 1.0), (127, 100.0), (60, 1.0), (30, 1.0))]
    poles = {"kind": "points", "kernel_km": 1.0, "latitudes": [90, -90], "longitudes": [0, 0], "masses": [1, 1]}
    mixture = {"kind": "mixture", "parts": [{"weight": 1, "density": {"kind": "exponential", "max_degree": 47, "coefficients": noise(47, 1.0)}} for _ in range(30)]}
    product = {"kind": "product", "factors": [{"exponent": 100, "density": points(300, 500)} for _ in range(8)]}
    linear = {"kind": "linear", "max_degree": 127, "coefficients": noise(127, 1.0)}
    cells = {"kind": "cells", "cells": [format(k // 4**7, "d") + "".join(str(k >> (2 * j) & 3) for j in range(7)) for k in range(0, 6 * 4**7, 2)], "masses": [1] * (3 * 4**7)}
    records = [
        ("format=geojson", poles), ("format=geojson", points(1.0, 100_000)), ("format=geojson", points(200.0, 100_000)), ("format=geojson", points(60.0, 3_000)),
        ("format=geojson", exponential[0]), ("format=geojson", exponential[1]), ("format=geojson&within=land", exponential[2]), ("format=png&width=2048", exponential[3]),
        ("format=png&width=2048", linear), ("format=geojson&within=land", mixture), ("format=geojson", product), ("format=grid&width=2048", cells), ("format=geojson&within=land&within=Russia", cells),
        ("format=grid&width=2048", exponential[0]), ("format=geojson&levels=0.01,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.99", points(100.0, 2_000)),
    ]  # fmt: skip
    return [(query, json.dumps(record, separators=(",", ":")).encode()) for query, record in records]


@attack("costly densities", "15 kinds as expensive as their limits allow: high degrees, 100,000 points, mixtures, products, cells; 8 at a time", area="densities", shared=True)
def _(arena: Arena, result: Result) -> None:
    server, made = arena.shared(), costly()
    if arena.quick:
        made = made[:5]
    jobs = [lambda query=query, body=body: server.post(f"/v1/density?{query}", body, JSON, timeout=130) for query, body in made * arena.some(3, 1)]
    answers = at_once(8, jobs)
    result.answered(answers, "200 400 413 422 429 503")
    slowest = max((answer.seconds for answer in answers if answer.status == 200), default=0)
    result.facts["slowest answer"] = f"{slowest:.1f} s"


# Connections.


def dropped(streams: list[socket.socket], seconds: float) -> int:
    """How many of them the server closes within that time."""
    began, gone = time.monotonic(), 0
    poll, left = select.poll(), {stream.fileno(): stream for stream in streams}
    for stream in streams:
        poll.register(stream, select.POLLIN)
    while left and time.monotonic() - began < seconds:
        for number, _ in poll.poll(500):
            stream = left[number]
            try:
                over = not stream.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                over = True
            if over:
                poll.unregister(number)
                del left[number]
                gone += 1
    return gone


def trickled(arena: Arena, result: Result, streams: list[socket.socket], piece: bytes, seconds: int) -> None:
    """Sends a piece each second on all connections, which the server has to close."""
    result.count, began, gone = len(streams), time.monotonic(), 0
    while time.monotonic() - began < arena.some(seconds, 3):
        for stream in list(streams):
            try:
                stream.send(piece)
            except BlockingIOError:
                pass
            except OSError:
                streams.remove(stream)
                stream.close()
                gone += 1
        time.sleep(1)
    gone += dropped(streams, 0.5)
    result.facts["closed by the server"] = "not waited for" if arena.quick else gone
    result.check(arena.quick or gone == result.count, f"{result.count - gone} of {result.count} were still open after {seconds} s")
    [reset(stream) for stream in streams]


@attack("slow heads", "300 connections that send a header byte each second", area="connections", shared=True, holds="the server closes all of them within 40 s")
def _(arena: Arena, result: Result) -> None:
    head = b"POST /v1/locate HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "
    trickled(arena, result, many(arena.shared().port, arena.some(300, 50), head), b"a", 40)


@attack("slow bodies", "300 requests that announce 30 MB and send 100 bytes each second", area="connections", shared=True, holds="the server closes all of them within 45 s")
def _(arena: Arena, result: Result) -> None:
    port = arena.shared().port
    head = request("POST", CHEAP, b"", {"Content-Length": str(30 * MIB)}, port=port)
    trickled(arena, result, many(port, arena.some(300, 50), head), b"\xff" * 100, 45)


@attack("fast bodies that stop", "64 requests that send 20 MB of 30 MB and wait", area="connections", shared=True, holds="each has an answer, or its connection is closed")
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()
    head = request("POST", CHEAP, b"", {"Content-Length": str(30 * MIB)}, port=server.port)
    piece = pictures.png_16_bit()[:100] + bytes(20 * MIB)

    def one() -> Answer:
        return exchange(server.port, head + piece, timeout=arena.some(60, 3))

    answers = at_once(arena.some(64, 16), [one] * arena.some(64, 16))
    result.answered(answers)
    result.check(arena.quick or all(answer.status in (408, 413, 415, 429, 503) for answer in answers if answer.status), f"{statuses(answers)}")


@attack("slow readers", "128 clients that ask for grids of 2048 × 1024 values (up to 20 MB) and read one byte each second", area="connections", shared=True, defect=1, holds="the server closes all of them within 75 s")
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()
    data = request("POST", "/v1/density?format=grid&width=2048", arena.density, JSON, port=server.port)
    streams, stop, opened = [], threading.Event(), server.descriptors_open()

    def ask(count: int) -> None:
        for _ in range(count):
            if stop.is_set():
                return
            try:
                stream = connected(server.port, stranger(), 10)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                stream.sendall(data)
                streams.append(stream)
            except OSError:
                pass
            time.sleep(0.05)

    threads = in_background(lambda: ask(arena.some(16, 3)), 8)
    began = time.monotonic()
    while time.monotonic() - began < arena.some(75, 7):
        for stream in list(streams):
            stream.setblocking(False)
            try:
                stream.recv(1)
            except OSError:
                pass
        time.sleep(1)
    stop.set()
    [thread.join() for thread in threads]
    result.count = len(streams)
    left = server.descriptors_open() - opened
    result.facts["connections left"] = "not waited for" if arena.quick else left
    result.check(arena.quick or left <= 8, f"{left} of {result.count} answers were still being written after 75 s")
    for stream in streams:
        reset(stream)


@attack("answers that nobody reads", "512 clients that ask for a large answer and go away, by closing or by resetting the connection", area="connections", shared=True)
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()
    data = request("POST", "/v1/density?format=grid&width=1024", arena.density, JSON, port=server.port)

    def one(number: int) -> Answer:
        try:
            stream = connected(server.port, stranger(), 10)
            stream.sendall(data)
            time.sleep(number % 8 * 0.03)
            stream.close() if number % 2 else reset(stream)
        except OSError:
            pass
        return Answer()

    count = arena.some(512, 32)
    at_once(16, [lambda number=number: one(number) for number in range(count)])
    result.count = count


@attack("idle connections", "2,000 connections that send nothing, or half of a request line", area="connections", shared=True, holds="the server closes all of them within 60 s")
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()
    streams = many(server.port, arena.some(1000, 100)) + many(server.port, arena.some(1000, 100), b"GET /health/re")
    result.count = len(streams)
    gone = dropped(streams, arena.some(60, 1))
    result.facts["closed by the server"] = "not waited for" if arena.quick else gone
    result.check(arena.quick or gone == result.count, f"{result.count - gone} of {result.count} were still open after 60 s")
    [reset(stream) for stream in streams]


@attack("churn", "10,000 connections that are opened and closed at once, a third of them reset, a third half open", area="connections", shared=True, holds="afterwards less than 200 descriptors are open")
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()

    def one(number: int) -> Answer:
        try:
            stream = connected(server.port, stranger(), 5)
        except OSError:
            return Answer()
        try:
            if number % 3 == 0:
                reset(stream)
            elif number % 3 == 1:
                stream.sendall(b"POST /v1/locate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nabc")
                stream.shutdown(socket.SHUT_WR)
                stream.settimeout(0.2)
                stream.recv(1000)
        except OSError:
            pass
        finally:
            stream.close()
        return Answer()

    count = arena.some(10_000, 600)
    at_once(24, [lambda number=number: one(number) for number in range(count)])
    result.count = count
    time.sleep(2)
    opened = server.descriptors_open()
    result.facts["descriptors afterwards"] = opened
    result.check(opened < 200, f"{opened} descriptors are open after all connections were closed")


@attack("pipelined requests", "connections with 2,000 requests in one write, read and unread", area="connections", shared=True)
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()
    one = request("GET", "/v1/models", port=server.port, close=False)
    last = request("GET", "/v1/models", port=server.port)
    picture = request("POST", CHEAP, arena.photo, port=server.port, close=False)
    each = arena.some(2000, 100)
    answers = at_once(4, [lambda: exchange(server.port, one * each + last, rest=True, timeout=60)] * 8)
    result.answered(answers)
    unread = many(server.port, arena.some(64, 8), b"")
    for stream in unread:
        try:
            stream.send(one * each)
            stream.send(picture)
        except OSError:
            pass
    time.sleep(arena.some(5, 1))
    result.count = 8 * each + len(unread) * each
    [reset(stream) for stream in unread]


# HTTP that is not.


def malformed(port: int, photo: bytes) -> list[bytes]:
    host = f"Host: 127.0.0.1:{port}\r\n".encode()
    post = b"POST /v1/embed HTTP/1.1\r\n" + host
    get = b"GET /v1/models HTTP/1.1\r\n" + host
    chunked = post + b"Transfer-Encoding: chunked\r\n\r\n"
    return [
        b"", b"\r\n" * 1000, b"\0" * 1000, b"\xff" * 1000, b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, b"SSH-2.0-OpenSSH_9.0\r\n", b"G" * 100_000, b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n" + host + b"\r\n",
        get + b"X: " + b"a" * 1_000_000 + b"\r\n\r\n", get + b"X: a\r\n" * 10_000 + b"\r\n", get + b": a\r\n\r\n", get + b"X\r\n\r\n", get + b"X : a\r\n\r\n", get + b" X: a\r\n\r\n", get + b"X: a\r\n folded\r\n\r\n",
        get + b"X: \0\r\n\r\n", get + b"X\0: a\r\n\r\n", get + b"X: a\nY: b\n\n", get.replace(b"\r\n", b"\n") + b"\n", get.replace(b"\r\n", b"\r") + b"\r\r", get + host + b"\r\n", get + b"Host: evil.example\r\n\r\n",
        b"GET http://evil.example/v1/models HTTP/1.1\r\n" + host + b"\r\n", b"GET http://127.0.0.1:1/../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b"GET * HTTP/1.1\r\n" + host + b"\r\n", b"OPTIONS * HTTP/1.1\r\n" + host + b"\r\n",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + host + b"\r\n", b"TRACE / HTTP/1.1\r\n" + host + b"\r\n", b"DELETE /v1/models HTTP/1.1\r\n" + host + b"\r\n", b"A" * 5000 + b" / HTTP/1.1\r\n" + host + b"\r\n", b"G\xc3\x89T / HTTP/1.1\r\n" + host + b"\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\n" + host + b"\r\n", b"GET /%00%ff%zz HTTP/1.1\r\n" + host + b"\r\n", b"GET /v1/models?" + b"%" * 5000 + b" HTTP/1.1\r\n" + host + b"\r\n", b"GET  /  HTTP/1.1\r\n" + host + b"\r\n",
        get + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: a\r\n\r\n", get + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAAA\r\n\r\n", get + b"Range: bytes=0-,0-,0-" + b",0-" * 5000 + b"\r\n\r\n",
        get + b"Accept-Encoding: " + b"gzip;q=1," * 3000 + b"\r\n\r\n", get + b"Expect: 100-continue\r\n\r\n", get + b"Expect: 999-never\r\n\r\n", get + b"Content-Length: 5\r\n\r\nab",
        post + b"Content-Length: -1\r\n\r\n", post + b"Content-Length: 1e3\r\n\r\n", post + b"Content-Length: 0x10\r\n\r\n", post + b"Content-Length: 99999999999999999999999\r\n\r\n", post + b"Content-Length: 18446744073709551615\r\n\r\n",
        post + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", post + b"Content-Length: 4, 5\r\n\r\nabcde", post + b"Content-Length: +4\r\n\r\nabcd", post + b"Content-Length:\r\n\r\n", post + b"\r\n",
        post + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/models HTTP/1.1\r\n" + host + b"\r\n", post + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n" + host + b"\r\n",
        post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", post + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", post + b"Transfer-Encoding: identity\r\n\r\nabc", post + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        post + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", post + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", chunked + b"zz\r\n", chunked + b"-1\r\nabc\r\n0\r\n\r\n", chunked + b"ffffffffffffffffff\r\nabc", chunked + b"7fffffffffffffff\r\nabc",
        chunked + b"3\r\nabcd\r\n0\r\n\r\n", chunked + b"3;" + b"e" * 200_000 + b"\r\nabc\r\n0\r\n\r\n", chunked + b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n", chunked + b"0\r\n" + b"T: v\r\n" * 20_000 + b"\r\n", chunked + b"0\r\nContent-Length: 9\r\n\r\n",
        chunked + b"3\nabc\n0\n\n", chunked + b"00000000000000000000000000003\r\nabc\r\n0\r\n\r\n", chunked + b"0x3\r\nabc\r\n0\r\n\r\n", chunked + b"3\r\nabc", b"POST /v1/embed HTTP/1.0\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        post + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + b"\x1f\x8b\x08" + bytes(17), post + b"Content-Type: " + b"a" * 20_000 + b"\r\nContent-Length: 3\r\n\r\nabc",
        post + b"Content-Length: " + str(len(photo)).encode() + b"\r\n\r\n" + photo + b"extra bytes that are no request\r\n\r\n",
    ]  # fmt: skip


@attack("malformed HTTP", "84 requests that break the protocol: chunks, lengths that contradict each other, huge heads, methods, NULs, other protocols; whole, cut and mutated", area="HTTP", shared=True, holds="no request inside of another is answered")
def _(arena: Arena, result: Result) -> None:
    server, chance = arena.shared(), random.Random(SEED)
    plain = malformed(server.port, arena.photo)
    jobs = [data for data in plain]
    for _ in range(arena.some(6, 0)):
        for data in plain:
            short = data[:20_000]
            jobs.append(pictures.mutated(short, chance) if short else b"\0")
            jobs.append(short[: chance.randrange(len(short) + 1)])

    def one(data: bytes) -> Answer:
        try:
            with connected(server.port, stranger(), 5) as stream:
                stream.settimeout(1.5)
                received = b""
                try:
                    stream.sendall(data)
                except OSError:
                    pass
                try:
                    stream.shutdown(socket.SHUT_WR)
                    while part := stream.recv(65536):
                        received += part
                except OSError:
                    pass
        except OSError:
            return Answer()
        found = answers_in(received)
        return found[0] if found else Answer()

    answers = at_once(24, [lambda data=data: one(data) for data in jobs])
    result.answered(answers)
    smuggled = 0
    for data in plain:
        if b"Transfer-Encoding" in data and b"Content-Length: 4" in data:
            found = exchange(server.port, data, rest=True, timeout=3)
            smuggled += found.status == 200
    result.check(smuggled == 0, "a request inside of another with two lengths was answered")


@attack("hostile queries", "unknown, repeated, long and badly encoded parameters of every endpoint; 30 kB of `%`; `within` with NaN, infinities and thousands of repetitions", area="HTTP", shared=True, holds="no error is longer than 5 kB, or has control characters")
def _(arena: Arena, result: Result) -> None:
    server = arena.shared()
    names = ["model", "top", "within", "density", "draws", "frames", "sampler", "steps", "samples", "guidance", "views", "seed", "decode", "kernel_km", "registration", "width_km", "format", "width", "projection", "levels", "id", "x"]
    values = ["", "0", "-1", "18446744073709551616", "1e308", "NaN", "inf", "-inf", "%00", "%ff%fe", "%f0%9f%98%80", "\u202e", "a" * 20_000, "%" * 20_000, "%41" * 6_000, "../" * 5_000, "'; DROP TABLE", "{}", "0,0,0,0", "-90,-180,90,180", "NaN,NaN,NaN,NaN",
              "0,0,1e308km", "0,0,-5km", "0,0,NaNkm", "91,181,5km", "0.5,0.9", "0," * 5_000, "true", "Land", "%1b%5b31m"]  # fmt: skip
    queries = [f"{name}={value}" for name in names for value in values]
    queries += ["&" * 20_000, "=" * 20_000, "&".join(["within=land"] * 2_000), "&".join(["top=1"] * 2_000), "&".join(f"within={k},0,{k + 1},1" for k in range(8)), "within=land&within=Peru&within=Chad", "draws=10000&density=true&frames=201&top=100", "samples=32&views=32&steps=10000"]
    queries = queries[:: arena.some(3, 11)]
    jobs = []
    for number, query in enumerate(queries):
        target = ("/v1/locate", "/v1/density", "/v1/embed", "/v1/thumbnail", "/v1/models", "/metrics", "/")[number % 7]
        method, body = ("POST", arena.density if target == "/v1/density" else arena.photo) if number % 7 < 3 else ("GET", b"")
        jobs.append(lambda method=method, target=target, query=query, body=body: exchange(server.port, request(method, f"{target}?{query}", body, port=server.port), timeout=60))
        if number % 7:
            more = f"{LOCATE}&{query}"
            jobs.append(lambda more=more: server.post(more, arena.photo))
    answers = at_once(8, jobs)
    result.answered(answers)
    longest = max((len(answer.body) for answer in answers if answer.status >= 400), default=0)
    result.facts["longest error"] = f"{longest} B"
    result.check(longest <= 5000, f"an error of {longest} bytes")
    result.check(not any(byte < 32 and byte not in b"\n\t\r" for answer in answers if answer.status >= 400 for byte in answer.body), "control bytes in an error")


@attack("odd forms", "multipart bodies without end, with 10,000 parts, with huge names, nested or missing boundaries, and mutated", area="HTTP", shared=True, holds="no error is longer than 5 kB")
def _(arena: Arena, result: Result) -> None:
    server, chance = arena.shared(), random.Random(SEED)
    part = b'Content-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
    photo = (ROOT / "parity/photo/files/rgb.jpg").read_bytes()
    whole = b"--x\r\n" + part + photo + b"\r\n--x--\r\n"
    forms = [
        whole, whole[:-6], b"", b"--x--", b"--x", b"--x\r\n", b"--x\r\n\r\n--x--", b"--x\r\n" * 100_000, (b"--x\r\n" + part + b"\r\n") * 10_000 + b"--x--", b"--x\r\n" + part * 1000 + b"\r\n--x--",
        whole.replace(b"a.jpg", b"a" * 1_000_000), whole.replace(b"a.jpg", b"\x1b[31m\0../../etc/passwd"), whole.replace(b'"image"', b'"' + b"i" * 1_000_000 + b'"'), whole.replace(b'"image"', b'"\\"\\\\' * 1000), whole.replace(b"a.jpg", b"\xff\xfe"),
        whole.replace(b"form-data", b"form-data;" * 10_000), b"--x\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\n" + part + photo + b"\r\n--y--\r\n--x--", b"\r\n--" * 500_000, b"\r\n--x" * 300_000, b"--x\r\nA: " + b"b" * 3_000_000 + b"\r\n\r\n--x--",
    ]  # fmt: skip
    forms += [pictures.mutated(whole, chance) for _ in range(arena.some(200, 4))]
    kinds = ["multipart/form-data; boundary=x"] * 3 + ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "x" * 5000, 'multipart/form-data; boundary="x', "multipart/form-data; boundary=x; boundary=y", "multipart/mixed; boundary=x"]
    jobs = [lambda body=body, kind=kinds[number % len(kinds) if number >= 20 else 0]: server.post("/v1/embed", body, {"Content-Type": kind}) for number, body in enumerate(forms)]
    answers = at_once(8, jobs)
    result.answered(answers, "200 400 413 415 422 429 503")
    longest = max((len(answer.body) for answer in answers if answer.status >= 400), default=0)
    result.check(longest <= 5000, f"an error of {longest} bytes")


# Who may ask.


@attack("foreign pages", "requests of other sites in a browser and of DNS rebinding: foreign `Host`, `Origin` and `Sec-Fetch-Site` to every endpoint on loopback", area="access", defect=2, holds="none is answered; eight kinds of requests of the server's own page and of programs are")
def _(arena: Arena, result: Result) -> None:
    with arena.start("--allowed-host", "maps.example.org") as server:
        own, port = f"127.0.0.1:{server.port}", server.port
        hosts = ["evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", f"localhost.evil.example:{port}", "127.0.0.1@evil.example", "192.168.1.1", "[::2]", f"xn--lcalhost-54a:{port}", "maps.example.org.evil.example", "0x7f.1", "a" * 3000, "127.0.0.1, evil.example"]
        origins = ["http://evil.example", "https://evil.example", "null", f"http://evil.example:{port}", f"http://127.0.0.1.evil.example:{port}", f"http://{own}.evil.example", f"http://evil.example/{own}", f"http://{own}@evil.example", "file://", "chrome-extension://aaaa", "", "http://127.0.0.1:1"]
        # Links to the page may come from anywhere; what computes or tells something may not be asked from elsewhere.
        refused = {"Host": [], "Origin": [], "Sec-Fetch-Site": []}
        targets = [("POST", CHEAP, arena.photo), ("POST", "/v1/embed", arena.photo), ("POST", "/v1/density?format=grid&width=64", b'{"kind":"cells","cells":["2"],"masses":[1]}')]
        shown = [("GET", "/v1/models", b""), ("GET", "/metrics", b""), ("GET", "/", b""), ("GET", "/v1/page", b"")]
        for method, target, body in targets + shown:
            refused["Host"] += [(method, target, body, {"Host": host}) for host in hosts]
        for method, target, body in targets:
            refused["Origin"] += [(method, target, body, {"Origin": origin}) for origin in origins]
            refused["Sec-Fetch-Site"] += [(method, target, body, {"Sec-Fetch-Site": site}) for site in ("cross-site", "same-site", "CROSS-SITE", "x")]
        for kind, wanted in refused.items():
            answers = at_once(4, [lambda w=w: exchange(port, request(w[0], w[1], w[2], w[3], port=port), source=stranger()) for w in wanted])
            result.answered(answers)
            # In the order in which they ended: which one it was is found again below.
            wrong = [w for w in wanted if exchange(port, request(w[0], w[1], w[2], w[3], port=port), source=stranger()).status == 200] if any(a.status == 200 for a in answers) else []
            result.facts[f"answered in spite of foreign {kind}"] = len(wrong)
            for method, target, _, headers in wrong[:6]:
                result.failed.append(f"{method} {target} with {str(headers)[:90]} was answered")
        good = [{}, {"Host": f"localhost:{port}"}, {"Host": f"LOCALHOST:{port}"}, {"Origin": f"http://{own}"}, {"Origin": f"http://localhost:{port}", "Host": f"localhost:{port}"}, {"Sec-Fetch-Site": "same-origin", "Origin": f"http://{own}"}, {"Sec-Fetch-Site": "none"}, {"Host": "maps.example.org"}]
        for headers in good:
            answer = exchange(port, request("POST", CHEAP, arena.photo, headers, port=port), source=HONEST)
            result.check(answer.status == 200, f"own request with {headers} had {answer.status} {answer.body[:160]!r}")
        result.facts["own requests"] = len(good)
        result.check(server.lives() and not server.panics(), "the server did not live through it")
        result.panics = server.panics()


@attack("wrong keys", "missing, wrong, cut, doubled and huge keys to every guarded path; paths that look like unguarded ones", area="access", holds="none is answered or computed; no key is in the log")
def _(arena: Arena, result: Result) -> None:
    keys = arena.folder() / "keys"
    keys.write_text("swordfish-0123456789\nhaddock-0123456789\n")
    with arena.start("--api-key-file", str(keys)) as server:
        port = server.port
        values = ["", "Bearer", "Bearer ", "Bearer swordfish", "Bearer swordfish-012345678", "Bearer swordfish-01234567890", "Bearer SWORDFISH-0123456789", "Basic c3dvcmRmaXNo", "swordfish-0123456789", "Bearer swordfish-0123456789,haddock-0123456789", "Bearer \t", "Bearer " + "a" * 20_000, "Bearer swordfish-0123456789\xe9", "Bearer null", "Bearer haddock-0123456789 x"]  # fmt: skip
        targets = [("GET", "/v1/models"), ("GET", "/metrics"), ("POST", CHEAP), ("POST", "/v1/embed"), ("POST", "/v1/density"), ("GET", "/v1/thumbnail?id=a"), ("HEAD", "/v1/models"), ("OPTIONS", "/v1/locate")]
        odd = ["/v1/../v1/models", "//v1/models", "/V1/models", "/v1//models", "/./v1/models", "/v1/%6dodels", "/%76%31/models", "/v1/models/", "/v1/models;a=b", "/docs/../v1/models", "/health/../metrics", "http://x/v1/models"]
        wanted = [(method, target, {"Authorization": value}) for method, target in targets for value in values] + [(method, target, {}) for method, target in targets] + [("GET", target, {}) for target in odd]
        jobs = [lambda w=w: exchange(port, request(w[0], w[1], arena.photo if w[0] == "POST" else b"", w[2], port=port)) for w in wanted]
        answers = at_once(8, jobs)
        result.answered(answers)
        opened = sum(answer.status == 200 and (b"earth-view" in answer.body or b"locdiff_" in answer.body) for answer in answers)
        result.facts["opened"] = opened
        result.check(opened == 0, f"{opened} requests without a key were answered")
        result.check(not any(answer.status == 200 and b"results" in answer.body for answer in answers), "a request was computed without a key")
        right = exchange(port, request("GET", "/v1/models", headers={"Authorization": "Bearer haddock-0123456789"}, port=port), source=HONEST)
        result.check(right.status == 200, f"the right key had {right.status}")
        result.check("swordfish" not in server.words() and "haddock" not in server.words(), "a key is in the log")
        result.panics = server.panics()
        result.check(result.panics == 0 and server.lives(), "panicked")


def paths() -> list[str]:
    ups = ["../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..\\", "..%5c", "....//", "..%252f", "%c0%ae%c0%ae/", "..%00/", ".%2e/", "/", "//", "file:///", "\\\\", "~/"]
    ends = ["etc/passwd", "etc%2fpasswd", "proc/self/environ", "proc/self/mem", "dev/zero", "secret.jpg", "secret.jpg%00.png", "."]
    return [up * depth + end for up in ups for depth in (1, 2, 8) for end in ends]


@attack("path traversal", "`..`, encoded and absolute paths, links, devices and NULs at the page and at `/v1/thumbnail`", area="access", holds="no file outside is shown; pictures inside are, also after requests for a named pipe")
def _(arena: Arena, result: Result) -> None:
    folder = arena.folder()
    inside = folder / "references"
    inside.mkdir()
    photo = (ROOT / "parity/photo/files/rgb.jpg").read_bytes()
    (folder / "secret.jpg").write_bytes(photo)
    (inside / "a.jpg").write_bytes(photo)
    (inside / "link.jpg").symlink_to(folder / "secret.jpg")
    (inside / "zero.jpg").symlink_to("/dev/zero")
    os.mkfifo(inside / "pipe.jpg")
    with arena.start("--references", str(inside)) as server:
        port = server.port
        wanted = [f"/v1/thumbnail?id={path}" for path in [*paths(), "link.jpg", "zero.jpg", "", "a.jpg/", "a.jpg/../../secret.jpg", str(folder / "secret.jpg"), "a" * 5000, "%ff"]]
        wanted += [f"/{path}" for path in paths()] + [f"/assets/{path}" for path in paths()[::3]]
        if arena.quick:
            wanted = wanted[::15]
        jobs = [lambda target=target: exchange(port, request("GET", target, port=port), timeout=30) for target in wanted]
        answers = at_once(8, jobs)
        result.answered(answers)
        leaked = [answer for answer in answers if answer.status == 200 and (b"root:" in answer.body or "image/jpeg" in answer.head.lower() or b"PATH=" in answer.body)]
        result.facts["files shown"] = len(leaked)
        result.check(not leaked, f"{len(leaked)} files outside of the folder were shown: {[answer.head[:60] for answer in leaked[:3]]}")
        own = server.get("/v1/thumbnail?id=a.jpg", source=HONEST)
        result.check(own.status == 200, f"a picture of the folder had {own.status}")
        # A pipe that nobody writes to must not take a turn for ever.
        pipe = at_once(3, [lambda: exchange(port, request("GET", "/v1/thumbnail?id=pipe.jpg", port=port), timeout=5)] * 3)
        result.count += len(pipe)
        own = server.get("/v1/thumbnail?id=a.jpg", source=HONEST, timeout=10)
        result.check(own.status == 200, f"after a request for a named pipe, pictures are not shown any more ({own.status} {own.reason})")
        result.panics = server.panics()
        result.check(result.panics == 0 and server.lives(), "panicked")


@attack("review server", "foreign pages, traversal and 16 MB of decisions at `locdiff review`", area="access", holds="none is answered; nothing is decided")
def _(arena: Arena, result: Result) -> None:
    from wire import Server

    folder = arena.folder()
    (folder / "few").mkdir()
    (folder / "few/a.jpg").write_bytes((ROOT / "parity/photo/files/gps-paris.jpg").read_bytes())
    import subprocess

    subprocess.run([str(arena.program), "scan", "few", "--library", "library.sqlite", "--no-predict"], cwd=folder, check=True, capture_output=True)
    with Server(arena.program, folder, [str(folder / "library.sqlite")], command="review", name="review") as server:
        port, own = server.port, f"127.0.0.1:{server.port}"
        listed = server.get("/v1/archive", source=HONEST)
        result.check(listed.status == 200, f"the page's own request had {listed.status}")
        identity = listed.json()["pictures"][0]["id"]
        decision = json.dumps({"decisions": [{"id": identity, "decision": "moved", "pin": [1, 2]}]}).encode()
        foreign = [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Host": f"evil.example:{port}"}]
        targets = [("GET", "/v1/archive", b""), ("POST", "/v1/archive/decisions", decision), ("GET", f"/v1/archive/thumbnail/{identity}", b"")]
        answers = [exchange(port, request(method, target, body, {**JSON, **headers}, port=port)) for method, target, body in targets for headers in foreign]
        result.answered(answers)
        result.check(not any(answer.status == 200 for answer in answers), f"a foreign page was answered: {statuses(answers)}")
        bodies = [b"[" * 1_000_000, b'{"decisions":[' + b"{}," * 1_000_000 + b"{}]}", b"\0" * (15 << 20), b'{"decisions":[{"id":"' + b"f" * 5_000_000 + b'"}]}', b'{"decisions":[{"id":"\\u001b","decision":"moved","pin":[1e999,NaN]}]}', b"a" * (17 << 20),
                  json.dumps({"decisions": [{"id": identity, "decision": "moved", "pin": [91, 181]}]}).encode(), json.dumps({"decisions": [{"id": "0" * 64, "decision": "accepted"}] * 100_000}).encode()]  # fmt: skip
        answers = at_once(4, [lambda body=body: exchange(port, request("POST", "/v1/archive/decisions", body, JSON, port=port)) for body in bodies])
        result.answered(answers)
        longest = max(len(answer.body) for answer in answers)
        result.check(longest <= 5000, f"an error of {longest} bytes")
        answers = at_once(8, [lambda path=path: exchange(port, request("GET", f"/{start}{path}", port=port)) for start in ("v1/archive/thumbnail/", "") for path in paths()[::4]])
        result.answered(answers)
        result.check(not any(b"root:" in answer.body for answer in answers), "a file was shown")
        again = server.get("/v1/archive", source=HONEST)
        result.check(again.status == 200 and again.json()["pictures"][0]["pin"] is None, "a foreign page decided something")
        result.panics = server.panics()
        result.check(result.panics == 0 and server.lives(), "panicked")


# More than a share.


@attack("flood by one client", "32 connections of one address that ask as fast as they can (pictures and densities), beside an honest client of another address", area="shares", defect=5, holds="more than half of the flood is rejected with 429, every honest request is answered")
def _(arena: Arena, result: Result) -> None:
    with arena.start() as server:
        arena.warm(server)
        honest, seconds = arena.asks(server), arena.some(30, 5)
        quiet = timed(server, honest, 1.5, seconds)
        stop, answers = threading.Event(), []
        kinds = [request("POST", LOCATE, arena.photo, port=server.port), request("POST", "/v1/density?format=png&width=512", arena.density, JSON, port=server.port)]

        def flood() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                # A flooder that waits for nothing, but leaves this machine's processors to the server.
                answers.append(exchange(server.port, kinds[number % len(kinds)], source="127.0.0.2", timeout=20))
                if answers[-1].status in (0, 429):
                    time.sleep(0.02)

        threads = in_background(flood, 32)
        beside = timed(server, honest, 1.5, seconds)
        stop.set()
        [thread.join() for thread in threads]
        result.answered(answers)
        rejected = sum(answer.status == 429 for answer in answers)
        served = sum(answer.status == 200 for answer in beside)
        result.facts |= {"rejected": rejected, "honest": f"{served} of {len(beside)} answered", "honest p99 quiet": milliseconds(quiet, 0.99), "honest p99 meanwhile": milliseconds(beside, 0.99)}
        result.check(rejected > len(answers) / 2, f"only {rejected} of {len(answers)} requests of the flood were rejected")
        why = sorted({answer.body[-200:].decode(errors="replace") for answer in beside if answer.status != 200})
        result.check(served == len(beside), f"{len(beside) - served} of {len(beside)} honest requests were not answered: {statuses(beside)} {why[:3]}")
        result.panics = server.panics()
        result.check(result.panics == 0 and server.lives(), "panicked")
        arena.recovers(server, result)


@attack("flood by one key", "32 connections with one key, beside an honest client of the same address with another", area="shares", holds="more than half of the flood is rejected with 429, every honest request is answered")
def _(arena: Arena, result: Result) -> None:
    keys = arena.folder() / "keys"
    keys.write_text("swordfish-0123456789\nhaddock-0123456789\n")
    with arena.start("--api-key-file", str(keys)) as server:
        time.sleep(0.5)
        first, second = ({"Authorization": f"Bearer {key}"} for key in keys.read_text().split())
        honest = [request("POST", CHEAP, arena.photo, first, port=server.port), request("GET", "/v1/models", b"", first, port=server.port)]
        hostile = request("POST", LOCATE, arena.photo, second, port=server.port)
        seconds = arena.some(20, 4)
        quiet = timed(server, honest, 1.5, seconds)
        stop, answers = threading.Event(), []

        def flood() -> None:
            while not stop.is_set():
                answers.append(exchange(server.port, hostile, source=HONEST, timeout=20))
                if answers[-1].status in (0, 429):
                    time.sleep(0.02)

        threads = in_background(flood, 32)
        beside = timed(server, honest, 1.5, seconds)
        stop.set()
        [thread.join() for thread in threads]
        result.answered(answers)
        rejected, served = sum(answer.status == 429 for answer in answers), sum(answer.status == 200 for answer in beside)
        result.facts |= {"rejected": rejected, "honest": f"{served} of {len(beside)} answered", "honest p99 quiet": milliseconds(quiet, 0.99), "honest p99 meanwhile": milliseconds(beside, 0.99)}
        result.check(rejected > len(answers) / 2, f"only {rejected} of {len(answers)} requests of the flood were rejected")
        why = sorted({answer.body[-200:].decode(errors="replace") for answer in beside if answer.status != 200})
        result.check(served == len(beside), f"{len(beside) - served} of {len(beside)} honest requests were not answered: {statuses(beside)} {why[:3]}")
        result.panics = server.panics()


@attack("64 file descriptors", "`ulimit -n 64`, and 100 connections of one address, then of 100 addresses, that are opened again whenever they are closed", area="shares", defect=6, holds="every honest request is answered, within 2 s beside one address and 10 s beside 100; at most one warning per second")
def _(arena: Arena, result: Result) -> None:
    # Who asks more often than each request takes would wait for its own.
    for name, source, patience, rate in (("one address", lambda: "127.0.0.2", 2, 2.0), ("100 addresses", stranger, 10, 0.3)):
        with arena.start(descriptors=64) as server:
            arena.warm(server)
            stop, opened = threading.Event(), [0]

            def hold(source=source, server=server, stop=stop, opened=opened) -> None:
                address = source()
                while not stop.is_set():
                    try:
                        with connected(server.port, address, 2) as stream:
                            opened[0] += 1
                            stream.settimeout(1)
                            while not stop.is_set():
                                try:
                                    if not stream.recv(100):
                                        break
                                except TimeoutError:
                                    continue
                    except OSError:
                        pass
                    stop.wait(0.2)

            threads = in_background(hold, 100)
            time.sleep(2)
            lines, began = len(server.words().splitlines()), time.monotonic()
            answers = timed(server, arena.asks(server), rate, arena.some(20, 5))
            seconds = time.monotonic() - began
            warnings = counted("\n".join(server.words().splitlines()[lines:]), r"\bWARN\b")
            stop.set()
            [thread.join() for thread in threads]
            served = [answer.seconds for answer in answers if answer.status == 200]
            slowest = max((answer.seconds for answer in answers), default=0)
            result.count += opened[0]
            result.facts[name] = f"{len(served)} of {len(answers)} honest requests answered, slowest {slowest:.2f} s, {warnings} warnings in {seconds:.0f} s"
            result.check(len(served) == len(answers), f"{name}: {len(answers) - len(served)} honest requests were not answered: {statuses(answers)}")
            result.check(slowest <= patience, f"{name}: an honest request took {slowest:.1f} s")
            result.check(warnings <= seconds + 2, f"{name}: {warnings} warnings in {seconds:.0f} s")
            result.panics += server.panics()
            result.check(server.lives() and not server.panics(), f"{name}: the server did not live through it")


@attack("ends in order", "SIGTERM in the middle of 64 requests, good and hostile", area="shares", holds="exit code 0")
def _(arena: Arena, result: Result) -> None:
    server = arena.start()
    arena.warm(server)
    bodies = [arena.photo, pictures.webp(7000, 7000), pictures.png(5000, 8, 2), b"\0" * 1000]
    answers: list[Answer] = []

    def ask(number: int) -> None:
        answers.append(server.post(CHEAP, bodies[number % len(bodies)]))

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(64)]
    idle = many(server.port, 50, b"GET / HT")
    [thread.start() for thread in threads]
    time.sleep(0.3)
    began = time.monotonic()
    server.process.terminate()
    code = server.process.wait(60)
    [thread.join() for thread in threads]
    result.facts |= {"exit code": code, "stopped after s": round(time.monotonic() - began, 1)}
    result.answered(answers)
    result.check(code == 0, f"exit code {code}")
    result.panics = server.panics()
    result.check(result.panics == 0, "panicked")
    [reset(stream) for stream in idle]
    server.stop()
