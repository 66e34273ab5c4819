"""Millions of images, in units of work that an engine schedules: this machine, a Ray cluster or a Spark cluster.

>>> import locdiff
>>> sorted(name for name in locdiff.batch.__all__)
['finish', 'plan', 'run', 'run_unit', 'status']

A job is a directory, or a prefix such as ``s3://bucket/jobs/first``. Engines schedule numbers of units; images never
pass through them. A unit that is done is never done again, so that a run after any crash does the rest.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from . import _native
from ._errors import BatchError, OptionError
from ._packages import needed

__all__ = ["finish", "plan", "run", "run_unit", "status"]

Engine = Literal["local", "ray", "spark"]
Report = dict[str, Any]

#: Jobs that this process has open, with their models.
_open: dict[tuple[str, int | None, str], _native.BatchJob] = {}
_opening = threading.Lock()

#: Units that wait in an engine at a time: enough for any cluster, and little to remember.
_AT_ONCE = 10_000
#: How often a unit may fail before the run does. Machines that die do not count.
_ATTEMPTS = 3


def _job(job: str, threads: int | None = None, device: str = "cpu") -> _native.BatchJob:
    key = (job, threads, device)
    with _opening:
        if key not in _open:
            _open[key] = _native.BatchJob.open(job, threads, device)
        return _open[key]


def plan(
    input: str,
    out: str,
    *,
    task: Literal["locate", "embed", "check"] = "locate",
    model: str = "earth-view",
    encoder: str | None = None,
    within: Sequence[str] = (),
    top: int = 5,
    rows_per_unit: int = 4096,
    cells: str | None = None,
    column: str | None = None,
    **options: Any,
) -> Report:
    """Divides an input into units and writes them down as a job in ``out``.

    ``options`` are those of :func:`locdiff.open`: ``views=16``, ``registration=False``. The same plan twice changes nothing;
    another plan in the same place is an error.
    """
    what: dict[str, Any]
    if task == "locate":
        what = {"kind": task, "model": model, "inference": options, "within": list(within), "top": top}
        if encoder is not None:
            what["encoder"] = encoder
    elif task == "embed":
        if encoder is None:
            raise OptionError('task "embed" needs an encoder')
        views, seed = int(options.pop("views", 1)), int(options.pop("seed", 0))
        what = {"kind": task, "encoder": encoder, "views": "single" if views == 1 else {"random": {"count": views, "seed": seed}}}
    elif task == "check":
        what = {"kind": task}
    else:
        raise OptionError(f'task {task!r}: use "locate", "embed" or "check"')
    if task != "locate" and options:
        raise OptionError(f"{', '.join(options)}: not for task {task!r}")
    settings = {"task": what, "rows_per_unit": rows_per_unit, "cells": cells, "column": column}
    job, _ = _native.BatchJob.plan(str(input), str(out), json.dumps(settings))
    planned: Report = json.loads(job)
    return planned


def run_unit(job: str, unit: int, *, threads: int | None = None, device: str = "cpu") -> Report:
    """Does a unit, unless it is done. The model stays open in this process for the next one.

    ``threads``: as many as processors were reserved for this process, unless it is given.
    """
    report: Report = json.loads(_job(str(job), threads, device).run_unit(unit))
    return report


def status(job: str) -> Report:
    """How many units there are, how many are done, and how many are open."""
    found: Report = json.loads(_job(str(job)).status())
    return found


def finish(job: str, *, repeated_ids: bool = False) -> Report:
    """Checks that each unit has its output, with every row once, and writes ``finished.json``.

    ``repeated_ids``: accept ids that occur more than once, because the input has them more than once.
    """
    found: Report = json.loads(_job(str(job)).finish(repeated_ids))
    return found


def run(
    job: str,
    engine: Engine = "local",
    *,
    cpus_per_unit: int | None = None,
    device: str = "cpu",
    address: str | None = None,
    spark: Any = None,
    stalled_after: float = 3600.0,
    on_unit: Callable[[Report], None] | None = None,
) -> Report:
    """Does all units that are open; returns what :func:`status` does.

    ``cpus_per_unit``: processors that the engine reserves for a unit, which are also its threads (for engines: 1 unless it is
    given, for Spark what ``spark.task.cpus`` says). ``address``: of the Ray cluster. ``spark``: a session; without one, the
    session that is active or can be made. ``stalled_after``: seconds without a unit that ends, after which the run fails;
    choose more than a unit takes. ``on_unit`` is called with the report of each unit.
    """
    job = str(job)
    seen = on_unit or (lambda report: None)
    todo = _job(job).open_units()
    if todo:
        if engine == "local":
            for unit in todo:
                seen(_on_a_machine(job, unit, cpus_per_unit, device))
        elif engine == "ray":
            _run_on_ray(job, todo, cpus_per_unit or 1, device, address, stalled_after, seen)
        elif engine == "spark":
            _run_on_spark(job, todo, cpus_per_unit, device, spark, stalled_after, seen)
        else:
            raise OptionError(f'engine {engine!r}: use "local", "ray" or "spark"')
    after = status(job)
    if after["open"]:
        raise BatchError(f"{after['open']} of {after['units']} units are still open; run the job again")
    return after


def _on_a_machine(job: str, unit: int, threads: int | None, device: str) -> Report:
    """A unit, wherever the engine has sent it; with the process and its processor time, which the first unit of a process
    also spends on opening the model."""
    before = time.process_time()
    report = run_unit(job, unit, threads=threads, device=device)
    return {**report, "cpu_seconds": time.process_time() - before, "process": f"{platform.node()}:{os.getpid()}"}


def _run_on_ray(
    job: str, todo: list[int], cpus: int, device: str, address: str | None, stalled_after: float, seen: Callable[[Report], None]
) -> None:
    """Tasks, not actors: an actor whose node dies waits for ever for a place that it fits into."""
    ray = needed("ray", 'engine "ray"', "ray")
    if not ray.is_initialized():
        ray.init(address=address or "auto", log_to_driver=False)
    # Ray repeats units of lost machines; exceptions are handled here.
    task = ray.remote(num_cpus=cpus, max_retries=-1, retry_exceptions=False)(_on_a_machine)
    attempts = dict.fromkeys(todo, 0)
    waiting = list(reversed(todo))
    running: dict[Any, int] = {}
    last = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < _AT_ONCE:
                unit = waiting.pop()
                attempts[unit] += 1
                running[task.remote(job, unit, cpus, device)] = unit
            ended, _ = ray.wait(list(running), num_returns=1, timeout=min(10.0, stalled_after))
            for reference in ended:
                unit = running.pop(reference)
                try:
                    seen(ray.get(reference))
                    last = time.monotonic()
                except ray.exceptions.RayTaskError as error:
                    if attempts[unit] >= _ATTEMPTS:
                        raise BatchError(f"unit {unit} failed {_ATTEMPTS} times: {error.cause}") from error
                    waiting.append(unit)
            if time.monotonic() - last > stalled_after:
                raise BatchError(
                    f"no unit has ended for {stalled_after:.0f} s: {len(running)} are running or waiting for {cpus} CPUs each; "
                    f"the cluster has {ray.cluster_resources().get('CPU', 0):.0f}, of which "
                    f"{ray.available_resources().get('CPU', 0):.0f} are free"
                )
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def _run_on_spark(
    job: str, todo: list[int], cpus: int | None, device: str, spark: Any, stalled_after: float, seen: Callable[[Report], None]
) -> None:
    """A partition of one row per unit. `spark.task.maxFailures` is how often a unit may fail."""
    sql = needed("pyspark.sql", 'engine "spark"', "spark")
    pyarrow = needed("pyarrow", 'engine "spark"', "spark")
    if spark is None:
        builder = sql.SparkSession.builder.appName("locdiff batch")
        if cpus is not None:
            builder = builder.config("spark.task.cpus", cpus)
        spark = builder.getOrCreate()
    threads = int(spark.sparkContext.getConf().get("spark.task.cpus", "1"))
    if cpus is not None and cpus != threads:
        raise OptionError(f"cpus_per_unit is {cpus}, but the Spark session has spark.task.cpus {threads}")

    def units(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for unit in batch.column("unit").to_pylist():
                report = _on_a_machine(job, unit, threads, device)
                yield pyarrow.RecordBatch.from_pylist([{"unit": unit, "report": json.dumps(report)}])

    rows = spark.sparkContext.parallelize([(unit,) for unit in todo], len(todo))
    table = spark.createDataFrame(rows, "unit long").mapInArrow(units, "unit long, report string")
    with _Watchdog(job, stalled_after, spark.sparkContext.cancelAllJobs) as watchdog:
        try:
            for row in table.toLocalIterator() if len(todo) > _AT_ONCE else table.collect():
                seen(json.loads(row["report"]))
        except Exception as error:
            watchdog.check()
            raise BatchError(f"Spark: {error}") from error
    watchdog.check()


class _Watchdog:
    """Looks at a job's outputs, and stops a run in which no unit ends."""

    def __init__(self, job: str, stalled_after: float, stop: Callable[[], Any]) -> None:
        self._job, self._stalled_after, self._stop = job, stalled_after, stop
        self._ended = threading.Event()
        self._stalled = False
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        done, last = -1, time.monotonic()
        while not self._ended.wait(min(10.0, self._stalled_after / 4)):
            now = int(status(self._job)["done"])
            if now != done:
                done, last = now, time.monotonic()
            if time.monotonic() - last > self._stalled_after:
                self._stalled = True
                self._stop()
                return

    def __enter__(self) -> _Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self) -> None:
        """Raises if it has stopped the run."""
        if self._stalled:
            raise BatchError(f"no unit has ended for {self._stalled_after:.0f} s: the run was stopped")


def _command(arguments: Sequence[str]) -> int:
    """``locdiff batch run JOB --engine ray|spark``."""
    import argparse

    parser = argparse.ArgumentParser(prog="locdiff batch run", description="Do all units that are open.")
    parser.add_argument("job", help="the job: a directory, or an address such as s3://bucket/prefix")
    parser.add_argument("--engine", choices=["local", "ray", "spark"], default="local", help="what schedules the units")
    parser.add_argument("--threads", type=int, metavar="N", help="processors that the engine reserves for a unit")
    parser.add_argument("--device", default="cpu", help="where to compute")
    parser.add_argument("--address", help="address of the Ray cluster [default: auto]")
    parser.add_argument("--stalled-after", type=float, default=3600.0, metavar="SECONDS", help="fail if no unit ends for this time")
    parser.add_argument("--json", action="store_true", help="one JSON object per unit on stdout")
    given = parser.parse_args(arguments)
    reports: list[Report] = []

    def seen(report: Report) -> None:
        reports.append(report)
        if given.json:
            print(json.dumps(report), flush=True)

    try:
        run(
            given.job,
            given.engine,
            cpus_per_unit=given.threads,
            device=given.device,
            address=given.address,
            stalled_after=given.stalled_after,
            on_unit=seen,
        )
    except Exception as error:
        print(f"locdiff: {error}", file=sys.stderr)
        return 1
    rows, errors = sum(report["rows"] for report in reports), sum(report["errors"] for report in reports)
    print(f"{len(reports)} units: {rows} rows, {errors} with an error" if reports else "all units are done already", file=sys.stderr)
    return 0


def _is_ours(arguments: Sequence[str]) -> bool:
    """Whether a command line is one that needs an engine's Python package."""
    if list(arguments[:2]) != ["batch", "run"]:
        return False
    rest = list(arguments[2:])
    pairs = zip(rest, rest[1:] + [""])
    engines = [after if name == "--engine" else name.removeprefix("--engine=") for name, after in pairs if name.startswith("--engine")]
    return any(engine in ("ray", "spark") for engine in engines)
