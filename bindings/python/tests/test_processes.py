"""Threads, forks, pickles, Ctrl-C, and the command."""

from __future__ import annotations

import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import EXAMPLES, REJECTED

import locdiff


def python(code: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_threads_get_the_same_answers(model: locdiff.Model, answer: locdiff.Answer) -> None:
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(model.locate, [EXAMPLES[0]] * 6))
    assert all(one.to_dict() == answer.to_dict() for one in answers)


def test_calls_with_threads_of_their_own(answer: locdiff.Answer) -> None:
    model = locdiff.open("earth-view", registration=False, threads=1)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(model.locate, [EXAMPLES[0]] * 2))
    answers.append(pickle.loads(pickle.dumps(model)).locate(EXAMPLES[0]))
    assert all(one.to_dict() == answer.to_dict() for one in answers)
    with pytest.raises(locdiff.OptionError, match="threads is 0: use at least 1"):
        locdiff.open("earth-view", threads=0)


def test_other_threads_run_meanwhile(model: locdiff.Model) -> None:
    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    model.locate(EXAMPLES[0])
    done.set()
    thread.join()
    assert turns > 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_is_told_why(model: locdiff.Model) -> None:
    code = """
import os, sys, locdiff
model = locdiff.open("earth-view", registration=False)
child = os.fork()
if child == 0:
    try:
        model.locate(sys.argv[1])
    except locdiff.ForkError as error:
        print(error, flush=True)
        os._exit(7)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = python(code, str(EXAMPLES[0]))
    assert done.returncode == 7 and "spawn" in done.stdout, done


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_model_can_be_opened_after_a_fork() -> None:
    code = """
import os, sys, locdiff
child = os.fork()
if child == 0:
    print(locdiff.open("earth-view", registration=False).locate(sys.argv[1]).best.country, flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = python(code, str(EXAMPLES[0]))
    assert done.returncode == 0 and done.stdout.strip() == "Madagascar", done


def test_models_go_to_other_processes(model: locdiff.Model) -> None:
    copy = pickle.loads(pickle.dumps(model.within("Madagascar")))
    assert copy.describe() == model.describe()
    assert copy.locate(EXAMPLES[0]).to_dict()["within"] == ["Madagascar"]


def test_answers_come_back_from_other_processes(model: locdiff.Model, answer: locdiff.Answer) -> None:
    box = {"type": "Polygon", "coordinates": [[[40, -30], [55, -30], [55, -10], [40, -10], [40, -30]]]}
    for sent in (answer, answer.within(box), model.within("Madagascar", box).locate(EXAMPLES[0])):
        copy = pickle.loads(pickle.dumps(sent))
        assert copy.to_dict() == sent.to_dict() and copy.best == sent.best
        best = (sent.best.latitude, sent.best.longitude)
        assert abs(copy.density.log_density(*best) - sent.density.log_density(*best)) < 1e-4
        assert abs(copy.region(0.9).area_km2 / sent.region(0.9).area_km2 - 1) < 1e-3
        again = pickle.loads(pickle.dumps(sent.density))
        assert abs(again.log_density(*best) - sent.density.log_density(*best)) < 1e-4
        assert again.log_density(38.7, -9.1) == sent.density.log_density(38.7, -9.1) or sent is answer
        assert copy.plot().startswith(b"\x89PNG") and copy.within("Madagascar").best.country == "Madagascar"
    part = locdiff.Density.uniform().within("Madagascar")
    with pytest.raises(locdiff.OptionError, match="pickled"):
        pickle.dumps(locdiff.Density.mixture([(1, part), (1, locdiff.Density.uniform())]))


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_ctrl_c_ends_a_batch() -> None:
    code = """
import sys, time, locdiff
model = locdiff.open("earth-view", registration=False)
print("ready", flush=True)
try:
    model.locate([sys.argv[1]] * 100_000)
except KeyboardInterrupt:
    print("stopped", flush=True)
    sys.exit(5)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(EXAMPLES[0])], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 5 and output == "stopped\n"


def test_the_command_is_the_program(program: str) -> None:
    module = [sys.executable, "-m", "locdiff"]
    for arguments, code in (
        (["--version"], 0),
        (["predict"], 2),
        (["sphere", "encode", "48.8566,2.3522"], 0),
        (["predict", "no/such/file.jpg"], 1),
        (["predict", "--model", "nonsense", str(EXAMPLES[0])], 2),
        (["predict", str(REJECTED)], 3),
    ):
        theirs = subprocess.run([program, *arguments], capture_output=True, check=False)
        ours = subprocess.run([*module, *arguments], capture_output=True, check=False)
        assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
        assert ours.returncode == code


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_ctrl_c_ends_the_command() -> None:
    command = [sys.executable, "-m", "locdiff", "predict", "--json", *[str(EXAMPLES[0])] * 2000]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    # As a program that is ended by the signal itself.
    assert process.wait(timeout=20) == -signal.SIGINT


def test_imports_nothing_that_is_not_needed() -> None:
    code = "import sys, locdiff; print(sorted({'numpy', 'pyarrow', 'torch', 'PIL', 'xarray'} & set(sys.modules)))"
    assert python(code).stdout.strip() == "[]"


def test_missing_packages_are_named() -> None:
    code = """
import sys
sys.modules["numpy"] = sys.modules["xarray"] = None
import locdiff
for call in (lambda: locdiff.Density.points([0], [0]), lambda: locdiff.Density.uniform().to_grid(),
             lambda: locdiff.sphere.encode([0], [0], 3), lambda: locdiff.evaluate.score([0], [0], [0], [0])):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    lines = python(code).stdout.splitlines()
    assert len(lines) == 4 and all("pip install" in line for line in lines), lines


def black_png(side: int) -> bytes:
    """As few bytes as possible."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(side * (1 + 3 * side)))) + chunk(b"IEND", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much memory a process has")
def test_a_server_gives_memory_back() -> None:
    command = [sys.executable, "-m", "locdiff", "serve", "--port", "0", "--model", "earth-view"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()

        def resident() -> int:
            with open(f"/proc/{server.pid}/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        # Whatever proxy the environment names.
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

        def embed(png: bytes) -> None:
            # A picture of one color has an embedding, too.
            with direct.open(f"{address}/v1/embed", png, timeout=60) as answer:
                assert answer.status == 200

        try:
            for _ in range(600):
                try:
                    direct.open(f"{address}/health/ready", timeout=60).close()
                    break
                except urllib.error.HTTPError:
                    time.sleep(0.1)
            else:
                pytest.fail("never ready")
            embed(black_png(100))
            idle = resident()
            embed(black_png(5500))
            until = time.monotonic() + 60
            # Decoded, it has 91 MB.
            while resident() > idle + 45_000_000:
                assert time.monotonic() < until, "not given back"
                time.sleep(0.1)
        finally:
            server.terminate()
