"""Batches on a Ray and a Spark cluster of this machine, with units and outputs in an S3 store.

(a) 100,000 small images in 100 tars, task `check`. A Ray node (its raylet and all that it started) or a Spark executor is killed with -9 at three
random moments. Every id must be there once, with the same row as the local engine writes, and a run after `finish` must do nothing.
(b) earth-view without registration on 300 images: processor time per image of units that are not the first of their process, over that of
two processes of the local engine side by side.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

import boto3
import psutil
import pyarrow.parquet as pq
from PIL import Image

from locdiff import batch

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).with_name("result.json")
BUCKET = "lake"
QUICK = "--quick" in sys.argv[1:]
SEED = 20261118
VENV = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


def end(process: psutil.Process) -> None:
    """Ends a process that we started, and all that it started."""
    try:
        family = [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return
    for one in family:
        try:
            one.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            pass


class S3:
    """moto, as a process."""

    def __init__(self) -> None:
        port = free_port()
        command = [str(VENV / "moto_server"), "--host", "127.0.0.1", "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        endpoint = f"http://127.0.0.1:{port}"
        os.environ.update(
            AWS_ENDPOINT=endpoint, AWS_ALLOW_HTTP="true", AWS_REGION="us-east-1", AWS_ACCESS_KEY_ID="test", AWS_SECRET_ACCESS_KEY="test"
        )
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
        for _ in range(100):
            try:
                self.client.create_bucket(Bucket=BUCKET)
                return
            except Exception:
                time.sleep(0.2)
        raise SystemExit("moto does not answer")

    def objects(self, prefix: str) -> dict[str, object]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return {found["Key"]: (found["ETag"], found["LastModified"]) for page in pages for found in page.get("Contents", [])}

    def rows(self, job: str) -> dict[str, list[dict[str, object]]]:
        """The rows of all outputs, by id."""
        rows: dict[str, list[dict[str, object]]] = {}
        for key in self.objects(f"{job}/out/"):
            body = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            for row in pq.read_table(io.BytesIO(body)).to_pylist():
                rows.setdefault(str(row["id"]), []).append(row)
        return rows


def tars(store: S3, count: int, each: int) -> None:
    """Tars of small pictures, one in fifty of them damaged."""
    for number in range(count):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for row in range(number * each, (number + 1) * each):
                encoded = io.BytesIO()
                color = (row % 256, row // 256 % 256, row // 65536)
                Image.new("RGB", (16, 16), color).save(encoded, "PNG")
                data = encoded.getvalue() if row % 50 else encoded.getvalue()[:50]
                info = tarfile.TarInfo(f"{row:08}.png")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        store.client.put_object(Bucket=BUCKET, Key=f"tars/{number:05}.tar", Body=packed.getvalue())


class Ray:
    """A head without processors and two nodes with one each, as processes."""

    def __init__(self) -> None:
        # Short, because names of sockets are limited.
        self.folder = tempfile.mkdtemp(prefix="ray", dir="/tmp")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.environment = {**os.environ, "RAY_DISABLE_IMPORT_WARNING": "1", "RAY_USAGE_STATS_ENABLED": "0"}
        common = ["--object-store-memory=100000000", "--disable-usage-stats", "--include-dashboard=false"]
        self.head = self.start(["--head", f"--port={self.port}", "--num-cpus=0", f"--temp-dir={self.folder}", *common])
        # A client that comes too early doesn't try again.
        self.wait_for("gcs_server", "raylet")
        import ray

        ray.init(address=self.address, log_to_driver=False)
        self.nodes: list[subprocess.Popen[bytes]] = []
        # One after the other: two that start at the same moment disturb each other.
        for count in (1, 2):
            self.nodes.append(self.node())
            while ray.cluster_resources().get("CPU", 0) < count:
                time.sleep(0.5)

    def wait_for(self, *programs: str) -> None:
        for _ in range(240):
            head = psutil.Process(self.head.pid).children(recursive=True)
            running = {program for program in programs for one in head if one.is_running() and program in " ".join(one.cmdline()[:1])}
            if running == set(programs):
                time.sleep(3)
                return
            time.sleep(0.5)
        raise SystemExit("the head of the Ray cluster does not start")

    def start(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        command = [str(VENV / "ray"), "start", "--block", *arguments]
        if "--head" not in arguments:
            # As a service manager does: a node that fails to start is started again.
            command = ["bash", "-c", 'while true; do "$@"; sleep 2; done', "node", *command]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def node(self) -> subprocess.Popen[bytes]:
        return self.start([f"--address={self.address}", "--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats"])

    def kill(self, which: int) -> None:
        end(psutil.Process(self.nodes[which].pid))
        self.nodes[which] = self.node()

    def stop(self) -> None:
        import ray

        ray.shutdown()
        for process in [*self.nodes, self.head]:
            end(psutil.Process(process.pid))
        # Agents that lost their parents.
        for process in psutil.process_iter(["cmdline"]):
            if any(self.folder in part or self.address in part for part in process.info["cmdline"] or []):
                end(process)
        shutil.rmtree(self.folder, ignore_errors=True)


class Spark:
    """A session with two executors of one processor each, as processes."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        # Before the session: the executors' Python is read from here.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        self.session = (
            SparkSession.builder.master("local-cluster[2,1,768]")
            .appName("locdiff batch")
            .config("spark.executor.memory", "512m")
            .config("spark.driver.memory", "512m")
            .config("spark.ui.enabled", "false")
            .config("spark.task.maxFailures", "10")
            .getOrCreate()
        )
        self.session.sparkContext.setLogLevel("OFF")

    def executors(self) -> list[psutil.Process]:
        mine = psutil.Process().children(recursive=True)
        return [one for one in mine if any("CoarseGrainedExecutorBackend" in part for part in one.cmdline())]

    def kill(self, which: int) -> None:
        for _ in range(100):
            found = self.executors()
            if found:
                end(found[which % len(found)])
                return
            time.sleep(0.1)

    def stop(self) -> None:
        self.session.stop()


def killer(cluster: Ray | Spark, job: str, units: int, shares: list[float], killed: list[float]) -> threading.Thread:
    """Kills something whenever so many units are done."""
    generator = random.Random(SEED)

    def watch() -> None:
        for share in shares:
            while batch.status(job)["done"] < share * units:
                time.sleep(0.05)
            killed.append(batch.status(job)["done"] / units)
            cluster.kill(generator.randrange(2))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def address(job: str) -> str:
    return f"s3://{BUCKET}/{job}"


def compared(store: S3, job: str, local: dict[str, list[dict[str, object]]], engine: str, again: int) -> dict[str, object]:
    rows = store.rows(job)
    return {
        f"{engine}_missing": len(local.keys() - rows.keys()),
        f"{engine}_twice": sum(len(found) - 1 for found in rows.values()),
        "equal": sum(rows.get(key) == found for key, found in local.items()),
        "again": again,
    }


def run_again(store: S3, job: str, **options: object) -> int:
    """How many units a run after `finish` does."""
    before = store.objects(f"{job}/")
    reports: list[batch.Report] = []
    batch.run(address(job), on_unit=reports.append, **options)  # type: ignore[arg-type]
    after = store.objects(f"{job}/")
    return sum(not report["already"] for report in reports) + sum(after.get(key) != value for key, value in before.items())


def cost(reports: list[batch.Report]) -> float:
    """Processor time per row, of units that did not open the model."""
    seen: set[str] = set()
    times = []
    for report in sorted(reports, key=lambda report: report["unit"]):
        if report["process"] in seen:
            times.append(report["cpu_seconds"] / report["rows"])
        seen.add(report["process"])
    return statistics.median(times)


def located(job: str, units: list[int], queue: multiprocessing.Queue[batch.Report]) -> None:
    for unit in units:
        queue.put(batch._on_a_machine(job, unit, 1, "cpu"))


def side_by_side(job: str, units: int) -> list[batch.Report]:
    """Two processes of one thread each, as the clusters have."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    workers = [context.Process(target=located, args=(job, list(range(start, units, 2)), queue)) for start in (0, 1)]
    for worker in workers:
        worker.start()
    reports = [queue.get() for _ in range(units)]
    for worker in workers:
        worker.join()
    return reports


def manifest(folder: Path, count: int) -> str:
    names = ["madagascar", "sinai", "tibet"]
    lines = [f"{row},{ROOT}/examples/{names[row % 3]}.jpg" for row in range(count)]
    path = folder / "images.csv"
    path.write_text("id,path\n" + "\n".join(lines) + "\n")
    return str(path)


def quick(store: S3, folder: Path) -> dict[str, object]:
    tars(store, 10, 200)
    for job in ("a", "b"):
        batch.plan(f"s3://{BUCKET}/tars", address(job), task="check")
    # A process that is killed in the middle of its work.
    code = f"from locdiff import batch; batch.run({address('a')!r}, cpus_per_unit=1)"
    worker = subprocess.Popen([sys.executable, "-c", code])
    while batch.status(address("a"))["done"] < 3:
        time.sleep(0.01)
    end(psutil.Process(worker.pid))
    worker.wait()
    left = batch.status(address("a"))["open"]
    for job in ("a", "b"):
        batch.run(address(job))
        batch.finish(address(job))
    found = compared(store, "a", store.rows("b"), "local", run_again(store, "a"))
    known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    return {
        **known,
        "quick_rows": 2000,
        "quick_open_after_kill": left,
        "quick_missing": found["local_missing"],
        "quick_twice": found["local_twice"],
        "quick_run_again_after_finish": found["again"],
        "quick_equal_to_local": found["equal"] / 20.0,
    }


def full(store: S3, folder: Path) -> dict[str, object]:
    count, each = 100, 1000
    say(f"{count * each} images in {count} tars")
    tars(store, count, each)
    jobs = ["local", "ray", "spark"]
    for job in jobs:
        batch.plan(f"s3://{BUCKET}/tars", address(job), task="check")
        batch.plan(manifest(folder, 300), str(folder / f"{job}-located"), registration=False, rows_per_unit=15)
    units = 20
    result: dict[str, object] = {"rows": count * each, "units": count}

    began = time.monotonic()
    batch.run(address("local"))
    result["local_seconds"] = round(time.monotonic() - began, 1)
    batch.finish(address("local"))
    rows = store.rows("local")
    assert len(rows) == count * each, len(rows)
    costs = {"local": cost(side_by_side(str(folder / "local-located"), units))}
    say("local", result, costs)

    generator = random.Random(SEED)
    equal, again = 0, run_again(store, "local")
    for engine in ("ray", "spark"):
        cluster = Ray() if engine == "ray" else Spark()
        options: dict[str, object] = {"engine": engine, "stalled_after": 300.0}
        if isinstance(cluster, Spark):
            options["spark"] = cluster.session
        try:
            reports: list[batch.Report] = []
            batch.run(str(folder / f"{engine}-located"), on_unit=reports.append, **options)  # type: ignore[arg-type]
            costs[engine] = cost(reports)
            say(engine, "located", costs)
            shares, killed = sorted(generator.uniform(0.05, 0.9) for _ in range(3)), []
            watch = killer(cluster, address(engine), count, shares, killed)
            began = time.monotonic()
            batch.run(address(engine), **options)  # type: ignore[arg-type]
            result[f"{engine}_seconds"] = round(time.monotonic() - began, 1)
            watch.join(timeout=30)
            result[f"{engine}_kills"] = len(killed)
            batch.finish(address(engine))
            found = compared(store, engine, rows, engine, run_again(store, engine, **options))
        finally:
            cluster.stop()
        result |= {f"{engine}_equal": found["equal"], f"{engine}_again": found["again"]}
        equal += int(str(found.pop("equal")))
        again += int(str(found.pop("again")))
        result |= found
        result[f"{engine}_over_local"] = round(costs[engine] / costs["local"], 3)
        say(engine, result)
    result["units_run_again_after_finish"] = again
    result["equal_to_local"] = 100.0 * equal / (2 * count * each)
    result["local_cpu_ms_per_image"] = round(1000 * costs["local"], 1)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    return result


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="locdiff-batch"))
    store = S3()
    try:
        result = quick(store, folder) if QUICK else full(store, folder)
    finally:
        end(psutil.Process(store.process.pid))
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
