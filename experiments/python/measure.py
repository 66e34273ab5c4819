"""What the wheel costs and whether it answers like the program.

Usage: measure.py WHEEL OVERHEAD REFERENCE FOLDER [--quick]

OVERHEAD is `python-overhead` (overhead.rs), REFERENCE `python-reference` (reference.rs), FOLDER is for files that may be
deleted. The last line is one JSON object:

wheel_mb           size of the wheel
import_ms          `import locdiff`, median over fresh processes
first_answer_s     `pip install` of the wheel into an empty environment, then an answer
binding_overhead   CPU time per image of `locate_table` over the Rust API, median ratio of neighboring rounds
two_threads        speed of two Python threads over one, median of rounds that alternate; each call computes on one thread
two_threads_shared the same without `threads=1`: one call takes all processors already
two_threads_sha    the same for hashlib.sha256: what the machine had to give. Near 2 on two idle cores
records            images whose record was compared with `locdiff predict --json`, and how many differ
page, heic, avif   whether `locdiff serve` has its page, and whether HEIC and AVIF images are read
torch_…            see torch_parity.py; null without PyTorch
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [ROOT / "examples" / name for name in ("madagascar.jpg", "sinai.jpg", "tibet.jpg")]
#: What a user does first.
FIRST = "import sys, locdiff; print(locdiff.open('earth-view').locate(sys.argv[1]).best)"
IMPORT = "import time; t = time.perf_counter(); import locdiff; print(1000 * (time.perf_counter() - t))"
ROUND = """
import sys, pyarrow, locdiff
model = locdiff.open("earth-view", registration=False)
table = pyarrow.table({"image": [open(path, "rb").read() for path in sys.argv[1:]]})
for line in sys.stdin:
    answers = pyarrow.table(model.locate_table(table))
    print(len(answers) - answers["latitude"].null_count, flush=True)
"""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def first_answer_s(wheel: Path, folder: Path) -> float:
    empty = folder / "empty"
    shutil.rmtree(empty, ignore_errors=True)
    venv.create(empty, with_pip=True)
    began = time.perf_counter()
    pip = [empty / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", wheel]
    subprocess.run(pip, check=True)
    subprocess.run([empty / "bin/python", "-c", FIRST, EXAMPLES[0]], check=True, stdout=sys.stderr)
    return time.perf_counter() - began


def import_ms(runs: int) -> float:
    times = [float(subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True).stdout) for _ in range(runs)]
    return statistics.median(times)


def cpu_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds(commands: list[list[str]], count: int) -> list[list[float]]:
    """CPU seconds of each command in rounds that alternate; the first, which warms up, is left out."""
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for command in commands]
    times: list[list[float]] = [[] for _ in processes]
    answered = set()
    for number in range(count + 1):
        # Who goes first changes.
        order = range(len(processes)) if number % 2 else reversed(range(len(processes)))
        for index in order:
            process = processes[index]
            assert process.stdin is not None and process.stdout is not None
            began = cpu_s(process)
            process.stdin.write("\n")
            process.stdin.flush()
            answered.add(int(process.stdout.readline()))
            if number > 0:
                times[index].append(cpu_s(process) - began)
    for process in processes:
        process.communicate()
    assert len(answered) == 1, f"both must answer the same number of images: {answered}"
    return times


def two_threads(work: Callable[[Path], object], images: list[Path], count: int) -> float:
    def wall_s(threads: int) -> float:
        began = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, images))
        return time.perf_counter() - began

    wall_s(2)
    ratios = [wall_s(1) / wall_s(2) for _ in range(count)]
    return round(statistics.median(ratios), 2)


def records(images: list[Path], registration: bool) -> dict[str, int]:
    """By the program that the wheel brings, which is the same code as cargo's, and by `locate`."""
    import locdiff

    answers = locdiff.open("earth-view", registration=registration).locate(images, errors="return")
    program = Path(sys.executable).parent / "locdiff"
    command = [str(program), "predict", "--model", "earth-view", "--json", *map(str, images)]
    command += [] if registration else ["--no-registration"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    assert len(lines) == len(images)
    differing = 0
    answered = 0
    for answer, line in zip(answers, lines):
        record = json.loads(line)
        if isinstance(answer, locdiff.Answer):
            answered += 1
            differing += answer.to_dict() != record
        else:
            differing += record["problem"]["detail"] not in str(answer)
    return {"images": len(images), "answered": answered, "different": differing}


def more_images(images: list[Path], wanted: int, folder: Path) -> list[Path]:
    """Parts of the images, if there are too few of them."""
    from PIL import Image

    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    more: list[Path] = []
    for path in images:
        if len(images) + len(more) >= wanted:
            break
        with Image.open(path) as image:
            width, height = image.size
            part = parts / f"{path.stem}.jpg"
            image.convert("RGB").crop((0, 0, width * 3 // 4, height * 3 // 4)).save(part, quality=92)
        more.append(part)
    return [*images, *more]


def serves_page() -> bool:
    program = Path(sys.executable).parent / "locdiff"
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "LOCDIFF_HOME": home}
        command = [str(program), "serve", "--port", "18765"]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(100):
                try:
                    with urllib.request.urlopen("http://127.0.0.1:18765/", timeout=5) as page:
                        return b"<script" in page.read()
                except OSError:
                    time.sleep(0.2)
        finally:
            server.terminate()
            server.wait()
    return False


def reads(name: str) -> bool:
    """Whether an image can be decoded, answer or not."""
    import locdiff

    answer = locdiff.open("earth-view").locate([ROOT / "parity/photo/files" / name], errors="return")[0]
    return not isinstance(answer, locdiff.ImageError)


def torch_numbers(reference: str, folder: Path, quick: bool) -> dict[str, float | None]:
    names = ("torch_max_difference", "torch_roundtrip")
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("locdiff.torch") is None:
        return dict.fromkeys(names)
    scratch = folder / "torch"
    scratch.mkdir(exist_ok=True)
    script = [sys.executable, str(ROOT / "experiments/python/torch_parity.py"), reference, str(scratch)]
    done = subprocess.run([*script, *(["--quick"] if quick else [])], stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    return {name: result.get(name) for name in names}


def main() -> None:
    wheel, overhead, reference, folder = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
    quick = "--quick" in sys.argv[5:]
    os.environ["LOCDIFF_HOME"] = str(folder / "home")
    data = os.environ.get("LOCDIFF_DATA")
    real = sorted([*Path(data).glob("astronaut/*.jpg"), *Path(data).glob("realviews/*.jpg")]) if data else []
    few = EXAMPLES[:2] * 2 if quick or not real else real[:: max(1, len(real) // 16)][:16]
    result: dict[str, object] = {"wheel_mb": round(wheel.stat().st_size / 1e6, 1)}
    result["import_ms"] = round(import_ms(5 if quick else 21), 1)
    result["first_answer_s"] = round(first_answer_s(wheel, folder), 2)
    say(json.dumps(result))
    # Few images and many rounds: the machine's speed changes from second to second, and neighbors have the same.
    paths = [str(path) for path in few[:: max(1, len(few) // 2)]]
    ours, rust = rounds([[sys.executable, "-c", ROUND, *paths], [overhead, *paths]], 5 if quick else 50)
    ratios = [a / b for a, b in zip(ours, rust)]
    say(f"CPU time for {len(paths)} images, Python over Rust, {len(ratios)} rounds: {sorted(round(ratio, 2) for ratio in ratios)}")
    result["binding_overhead"] = round(statistics.median(ratios), 3)
    say(json.dumps(result))
    import locdiff

    block = bytes(100_000_000)
    count = 1 if quick else 5
    for name, threads in (("two_threads", 1), ("two_threads_shared", None)):
        model = locdiff.open("earth-view", registration=False, threads=threads)
        result[name] = two_threads(lambda path, model=model: model.locate([path], errors="return"), few, count)
    result["two_threads_sha"] = two_threads(lambda _: hashlib.sha256(block), few, count)
    say(json.dumps(result))
    # Registered, which takes seconds each; then many that are only searched.
    result["records"] = records(EXAMPLES[:2] if quick else [*EXAMPLES, *few], True)
    if real and not quick:
        result["records_searched"] = records(more_images(real, 200, folder), False)
    result["page"] = serves_page()
    result["heic"], result["avif"] = reads("rgb.heic"), reads("rgb.avif")
    result.update(torch_numbers(reference, folder, quick))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
