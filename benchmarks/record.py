"""Recorded results: JSON lines with commit, machine, data hash and spread of every measurement."""

import argparse
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parent.parent
COMMITTED = ROOT / "benchmarks" / "results"
# Trial runs write elsewhere: committed results were measured on an idle machine.
RESULTS = Path(os.environ.get("TRILENS_RESULTS", COMMITTED)).resolve()
REQUIRED = ("data", "threads", "seed", "repeats")


def record(chapter: str, **facts: Any) -> None:
    """Append a row to `results/<chapter>.jsonl` and print it.

    Every row has the REQUIRED fields: `data` is the hash of the input, `seed` is None if nothing is random, `repeats` is the
    number of measurements; spreads are among the other facts (see `seconds`, `spread`).
    """
    if missing_facts := [name for name in REQUIRED if name not in facts]:
        raise TypeError(f"a row of {chapter} lacks {', '.join(missing_facts)}")
    row = {"at": started(), "commit": commit(), "machine": machine(), **facts}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"{chapter}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(json.dumps(facts, ensure_ascii=False), flush=True)


def record_missing(chapter: str, system: str, reason: str) -> None:
    """Record why a peer could not be measured; the table shows the reason."""
    record(chapter, data="", threads=0, seed=None, repeats=0, system=system, missing=reason)


def rows(chapter: str) -> Iterator[dict[str, Any]]:
    """All measured rows, oldest first."""
    return (row for row in _all_rows(chapter) if "missing" not in row)


def missing(chapter: str) -> dict[str, str]:
    """Peers that the last run could not measure, with the reasons."""
    last = {row["system"]: row for row in _all_rows(chapter) if "system" in row}
    return {system: row["missing"] for system, row in last.items() if "missing" in row}


def _all_rows(chapter: str) -> Iterator[dict[str, Any]]:
    path = RESULTS / f"{chapter}.jsonl"
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def started() -> str:
    """Current time, which also identifies a run: its rows share it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """Measured commit, marked if the working tree differs; files that the benchmarks write are ignored."""
    pages = ("benchmarks/results", "benchmarks/BOOK.md", "README.md", "src/trilens/models/*/README.md")
    excluded = [f":(exclude){page}" for page in pages]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *excluded)
    return _git("rev-parse", "--short=10", "HEAD") + ("-dirty" if changed else "")


def commit_of(tree: Path) -> str:
    """Commit of a tree; its path if it is not a git checkout."""
    git = ["git", "-C", str(tree), "rev-parse", "--short=10", "HEAD"]
    return subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or str(tree)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> str:
    """Processor, number of cores and Python version."""
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def file_hash(*paths: Path) -> str:
    """Hash of the contents of files, which identifies the data."""
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def seconds(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """Median, best and worst of several timings, after a warm-up run."""
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return {"median": median(times), "best": min(times), "worst": max(times)}


def spread(name: str, values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Median, minimum and maximum of repeated measurements."""
    statistics = {"median": median(values), "min": min(values), "max": max(values)}
    return {f"{name}_{statistic}": round(value, digits) for statistic, value in statistics.items()}


def folder_bytes(folder: Path) -> int:
    """Size of an index on disk."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def add_data(parser: argparse.ArgumentParser, option: str, name: str, what: str) -> None:
    """Add an option for a data file or folder, by default `name` in $TRILENS_DATA."""
    home = os.environ.get("TRILENS_DATA")
    shown = f"[$TRILENS_DATA/{name}]" if name else "[$TRILENS_DATA]"
    default = Path(home) / name if home else None
    parser.add_argument(option, type=Path, default=default, required=default is None, help=f"{what} {shown}")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add the option for the checkpoint of the bundled model, which peers load."""
    home = os.environ.get("TRILENS_CHECKPOINT")
    parser.add_argument("--model", default=home, help="folder or hub id of a checkpoint [$TRILENS_CHECKPOINT]")
