"""Attacks on the real program: the server over real sockets, the command line with hostile files, faults of the disk, and half an hour of mixed load.

    python3 experiments/attacks/attack.py PROGRAM [--quick] [--only TEXT] [--area AREA] [--again] [--part attacks|faults|soak|report] [--minutes N]

The last line of standard output is one JSON object. The full run writes result.json and result.md, and the table in docs/reliability.md; a part replaces
what is there of it. `--quick` makes the attacks that belong to six defects that were found before version 0.1.0, small, and reads the other figures from result.json.

An attack holds if nothing panicked, no answer was 5xx but 503, the server lived, its peak of memory stayed within 1.1 of `--max-memory-bytes` above idle, and an
honest request had the same answer as before within 10 s afterwards; a command ended by itself, without a signal, with few words and none of them a
control character; and what the attack adds to that.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import on_program
import on_server
from arena import ATTACKS, ROOT, Arena, Attack, Result, say
from soak import soak

HERE = Path(__file__).resolve().parent
RESULT, TABLE, BOOK = HERE / "result.json", HERE / "result.md", ROOT / "docs/reliability.md"
FUZZ = ROOT / "fuzz/minutes.csv"
DEFECTS = {
    1: "memory is bounded",
    2: "`Host` and `Origin`",
    3: "terminal escapes and long texts",
    4: "sizes from outside",
    5: "one client takes the whole server",
    6: "file descriptors run out",
}
assert on_program and on_server


def fuzzed() -> dict[str, dict[str, float]]:
    """What `fuzz/run` wrote, for each target: sums, and the most edges that a run reached."""
    targets: dict[str, dict[str, float]] = {}
    if FUZZ.exists():
        with FUZZ.open(newline="") as file:
            # Runs without coverage have no edges.
            for run in filter(lambda run: run["edges"], csv.DictReader(file)):
                of = targets.setdefault(run["target"], dict.fromkeys(("cpu_minutes", "executions", "findings", "edges"), 0))
                for name in ("cpu_minutes", "executions", "findings"):
                    of[name] += float(run[name])
                of["edges"] = max(of["edges"], float(run["edges"] or 0))
    return targets


def fuzz_minutes() -> float:
    return round(sum(target["cpu_minutes"] for target in fuzzed().values()), 1)


def packed(result: Result) -> dict[str, object]:
    # Folders of this machine are nobody's business.
    failed = [re.sub(rf"/?\S*?attacks\w+/tmp\w+/|{re.escape(str(ROOT))}/", "", failure)[:300] for failure in result.failed[:5]]
    return {**asdict(result), "held": result.held, "failed": failed, "failures": len(result.failed)}


def summary(kept: dict[str, object]) -> dict[str, object]:
    attacks: list[dict] = kept.get("attacks", [])  # type: ignore[assignment]
    faults: dict = kept.get("faults", {})  # type: ignore[assignment]
    soaked: dict = kept.get("soak", {})  # type: ignore[assignment]
    peaks = [one["peak_over_limit"] for one in attacks if one["peak_over_limit"] is not None]
    peaks += [soaked["peak_over_limit"]] if "peak_over_limit" in soaked else []
    lost = sum(int(one["facts"].get("lost rows", 0)) for one in attacks) + faults.get("lost_rows", 0)
    return {
        "attacks": len(attacks),
        "held": sum(one["held"] for one in attacks),
        "panics": sum(one["panics"] for one in attacks) + soaked.get("panics", 0),
        "lost_rows": lost,
        "peak_over_limit": max(peaks, default=None),
        "soak_growth_mb": soaked.get("soak_growth_mb"),
        "soak_5xx": soaked.get("soak_5xx"),
        "honest_p99_ratio": soaked.get("honest_p99_ratio"),
        "fault_points": faults.get("fault_points"),
        "fault_failures": faults.get("fault_failures"),
        "fuzz_minutes": fuzz_minutes(),
    }


def shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {inner}" for key, inner in value.items())
    return str(value)


def row(one: dict) -> str:
    facts = [f"{key}: {shown(value)}" for key, value in one["facts"].items() if not key.startswith("answers again")]
    answers = ", ".join(f"{status}: {number:,}" for status, number in one["statuses"].items())
    happened = "; ".join(filter(None, [f"answers {answers}" if answers else "", *facts]))
    peak = "" if one["peak_over_limit"] is None else f"{one['peak_over_limit']:.2f}"
    held = "yes" if one["held"] else "**no**: " + one["failed"][0].replace("|", "¦").replace("\n", " ")[:160]
    how = one["how"] + (f". Besides: {one['holds']}" if one["holds"] else "")
    return f"| {one['name']} | {how} | {one['count']:,} | {happened.replace('|', '¦')} | {peak} | {held} |"


SCRIPTS = {"pictures": "on_server.py", "densities": "on_server.py", "connections": "on_server.py", "HTTP": "on_server.py", "access": "on_server.py", "shares": "on_server.py", "program": "on_program.py"}


def report(kept: dict) -> None:
    """result.md, and the same table in the book."""
    attacks = kept.get("attacks", [])
    areas = {"pictures": "Pictures to the server", "densities": "Densities to the server", "connections": "Connections", "HTTP": "HTTP", "access": "Who may ask", "shares": "More than a share", "program": "The command line and files of others"}
    tables = []
    for area, title in areas.items():
        rows = [row(one) for one in attacks if one["area"] == area]
        if rows:
            tables.append(f"### {title}\n\nScript: `experiments/attacks/{SCRIPTS[area]}`.\n\n| attack | how | times | what happened | peak | held |\n|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    soaked = kept.get("soak", {})
    half = ""
    if soaked:
        honest, quiet, memory = soaked["honest"], soaked["quiet"], soaked["memory_mb"]
        kinds = ""
        if "honest_kinds" in soaked:
            rows = [(kind, one, soaked["quiet_kinds"][kind]) for kind, one in soaked["honest_kinds"].items()]
            kinds = "| honest request | sent | answers | p50, p99 | quiet p50, p99 | rejected because |\n|---|---|---|---|---|---|\n" + "".join(
                f"| {kind} | {one['sent']} | {shown(one['answered'])} | {one['p50_ms']}, {one['p99_ms']} ms | {still['p50_ms']}, {still['p99_ms']} ms | {shown(one['rejected because'])} |\n" for kind, one, still in rows
            ) + "\n"
        half = (
            f"### {soaked['minutes']:g} minutes of mixed load\n\nScript: `experiments/attacks/soak.py`. {soaked['requests']:,} requests, good, bad, slow and hostile, each kind from an address of its own, to one server.\n\n"
            "| figure | value | goal |\n|---|---|---|\n"
            f"| resident memory, end over after the first two minutes, both at rest | {soaked['soak_growth_mb']} MB | 20 MB |\n"
            f"| answers 5xx other than 503 | {soaked['soak_5xx']} | 0 |\n| panics | {soaked['panics']} | 0 |\n"
            f"| honest client, p99 during the load over quiet | {soaked['honest_p99_ratio']} ({honest['p99_ms']} ms over {quiet['p99_ms']} ms; quiet before {quiet['p99_before_ms']} ms, after {quiet['p99_after_ms']} ms) | 2 |\n"
            f"| honest client, p50 | {honest['p50_ms']} ms, quiet {quiet['p50_ms']} ms | |\n| honest client, answers | {shown(honest['answered'])} of {honest['sent']:,} | |\n"
            f"| memory: idle, after two minutes, end, peak | {memory['idle']}, {memory['after two minutes']}, {memory['end']}, {memory['peak']} MB | |\n| peak over limit | {soaked['peak_over_limit']} | 1.1 |\n\n"
            + kinds
            + "| client | answers |\n|---|---|\n" + "\n".join(f"| {name} | {shown(counted)} |" for name, counted in soaked["load"].items()) + "\n"
        )
    rows = "".join(f"| `{name}` | {one['cpu_minutes']:.1f} | {one['executions']:,.0f} | {one['edges']:,.0f} | {one['findings']:.0f} |\n" for name, one in fuzzed().items())
    fuzzing = (
        "### Fuzzing with coverage\n\nScript: `fuzz/run`. A finding is an input that stopped the target; the last table of `docs/reliability.md` has what became of each.\n\n"
        f"| target | CPU minutes | inputs | edges reached | findings |\n|---|---|---|---|---|\n{rows}"
    )  # fmt: skip
    sections = "\n".join([*tables, *([half] if half else []), *([fuzzing] if rows else [])])
    head = (
        "An attack holds if nothing panicked, no answer was 5xx other than 503, the server lived, and an honest request had the same answer as before within 10 s afterwards. Of commands: they end by themselves and not by a signal, and\n"
        "print no control characters. {note}*Besides* is what an attack adds to that. *Peak* is the peak of resident memory above the idle server over `--max-memory-bytes` of 512 MiB; its goal is 1.1.\n"
        "Hostile requests come from thousands of addresses of 127.0.0.0/8, so that limits per address do not hide other limits. Answer 0 or none: the connection was closed without an answer.\n"
    )
    note = f"{kept['note']} " if kept.get("note") else ""
    head = head.replace("{note}", note)
    figures = summary(kept)
    faults = kept.get("faults", {})
    lines = "| figure | value |\n|---|---|\n" + "\n".join(f"| `{name}` | {value} |" for name, value in figures.items())
    dates = ", ".join(f"{part} {kept[f'{part}_date']}" for part in ("attacks", "faults", "soak") if f"{part}_date" in kept)
    TABLE.write_text(
        f"# Attacks: result\n\nWritten by `experiments/run attacks` ({dates}; a machine with {os.cpu_count()} cores that others used too). Details are in `result.json`.\n\n{lines}\n\n## Attacks\n\n{head}\n"
        + sections
        + (f"\n### Faults while files are written\n\nScript: `experiments/attacks/faults.py`. {faults['fault_points']} points, {faults['fault_runs']} runs, {faults['fault_failures']} failures, {faults['lost_rows']} lost rows.\n" if faults else "")
    )  # fmt: skip
    begin, end = "<!-- attacks: written by experiments/attacks/run -->\n", "<!-- end of attacks -->\n"
    text = BOOK.read_text()
    section = f"{begin}\n## Attacks\n\n{head}\n{sections}\n{end}"
    if begin in text:
        text = text[: text.index(begin)] + section + text[text.index(end) + len(end) :]
    else:
        text = text.rstrip("\n") + "\n\n" + section
    BOOK.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--quick", action="store_true", help="the six defects, in a minute")
    parser.add_argument("--small", action="store_true", help="all attacks as small as in --quick, and written")
    parser.add_argument("--only", help="attacks whose name contains this; nothing is written")
    parser.add_argument("--area", nargs="+", choices=sorted(SCRIPTS), help="attacks of these kinds; nothing is written")
    parser.add_argument("--again", action="store_true", help="with --only or --area: replaces these attacks in result.json")
    parser.add_argument("--part", choices=["attacks", "faults", "soak", "report"])
    parser.add_argument("--note", help="what else is to be known about this run; stands in result.md")
    parser.add_argument("--minutes", type=float, default=30.0, help="of the soak")
    parser.add_argument("--quiet-minutes", type=float, default=4.0)
    arguments = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.setswitchinterval(0.001)
    kept: dict = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    program, quick = arguments.program.resolve(), arguments.quick
    chosen = arguments.only or arguments.area
    today = time.strftime("%Y-%m-%d", time.gmtime())

    def store(attacks: list[dict] | None = None, **parts: object) -> None:
        """Replaces these attacks and parts: several runs may write at the same time."""
        nonlocal kept
        with (Path(tempfile.gettempdir()) / "locdiff-attacks.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kept = json.loads(RESULT.read_text()) if RESULT.exists() else {}
            new = {one["name"]: one for one in attacks or []}
            listed = [new.pop(one["name"], one) for one in kept.get("attacks", [])] + list(new.values())
            order = {one.name: number for number, one in enumerate(ATTACKS)}
            kept["attacks"] = sorted((one for one in listed if one["name"] in order), key=lambda one: order[one["name"]])
            kept |= {**parts, **{f"{name}_date": today for name in parts}, **({"attacks_date": today} if attacks else {}), **({"note": arguments.note} if arguments.note else {})}
            RESULT.write_text(json.dumps(kept, indent=1, ensure_ascii=False, default=str) + "\n")
            report(kept)

    with tempfile.TemporaryDirectory(prefix="attacks") as folder:
        arena = Arena(program, Path(folder).resolve(), quick or arguments.small)
        made: list[dict] = []
        try:
            if arguments.part in (None, "attacks"):
                listed = [one for one in ATTACKS if (arguments.only or "") in one.name and one.area in (arguments.area or [one.area])]
                listed = [one for one in listed if one.defect or chosen or not quick]

                def perform(attacks: list[Attack]) -> None:
                    for one in attacks:
                        made.append(packed(arena.perform(one)))
                        if not quick and (not chosen or arguments.again):
                            store(made[-1:])

                if quick:
                    # At the same time: attacks on commands, on the shared server, and on servers of their own. The flood needs all processors, so it is last.
                    groups: dict[tuple[bool, bool], list[Attack]] = {}
                    for one in listed:
                        if "flood" not in one.name:
                            groups.setdefault((one.area == "program", one.shared), []).append(one)
                    with ThreadPoolExecutor() as pool:
                        list(pool.map(perform, groups.values()))
                perform([one for one in listed if not quick or "flood" in one.name])
        finally:
            arena.stop()
        if chosen:
            print(json.dumps(summary({"attacks": made}), ensure_ascii=False))
            return
        if not quick and arguments.part in (None, "faults"):
            done = subprocess.run([sys.executable, str(HERE / "faults.py"), str(program)], stdout=subprocess.PIPE, text=True, check=True)
            store(faults=json.loads(done.stdout.splitlines()[-1]))
        if not quick and arguments.part in (None, "soak"):
            store(soak=soak(arena, arguments.minutes, arguments.quiet_minutes))
        if arguments.part == "report":
            store()
    if quick:
        for number, title in DEFECTS.items():
            found = [one for one in made if one["defect"] == number]
            say(f"defect {number}, {title}: {sum(one['held'] for one in found)} of {len(found)} attacks held")
        say("soak, faults and fuzzing are not repeated: their figures are those of the last full run")
        figures = summary({**kept, "attacks": made})
        figures["all_attacks"], figures["all_held"] = (summary(kept)[name] for name in ("attacks", "held"))
        figures["committed"] = ["soak_growth_mb", "soak_5xx", "honest_p99_ratio", "fault_points", "fault_failures", "fuzz_minutes", "all_attacks", "all_held"]
    else:
        figures = summary(kept)
    print(json.dumps(figures, ensure_ascii=False))


if __name__ == "__main__":
    main()
