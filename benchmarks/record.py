"""Rows of results: every number with the commit, machine, data and spread that it was measured with."""

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
# Trials write elsewhere: what is in the repository was measured on a quiet machine.
RESULTS = Path(os.environ.get("TRILENS_RESULTS", COMMITTED)).resolve()
NEEDED = ("data", "threads", "seed", "repeats")


def record(chapter: str, **facts: Any) -> None:
    """Append a row to `results/<chapter>.jsonl` and print it.

    Every row says NEEDED: `data` is the hash of what was read, `seed` None where nothing is drawn, `repeats` how often each
    figure was taken; the spread is among the other facts (`seconds`, `spread`).
    """
    if lacking := [name for name in NEEDED if name not in facts]:
        raise TypeError(f"a row of {chapter} does not say {', '.join(lacking)}")
    row = {"at": started(), "commit": commit(), "machine": machine(), **facts}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / f"{chapter}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(json.dumps(facts, ensure_ascii=False), flush=True)


def record_missing(chapter: str, system: str, reason: str) -> None:
    """A row that says why a peer could not be measured; the table says so too."""
    record(chapter, data="", threads=0, seed=None, repeats=0, system=system, missing=reason)


def rows(chapter: str) -> Iterator[dict[str, Any]]:
    """Every measured row, oldest first."""
    return (row for row in _all_rows(chapter) if "missing" not in row)


def missing(chapter: str) -> dict[str, str]:
    """The peers that the last run could not measure, each with the reason."""
    last = {row["system"]: row for row in _all_rows(chapter) if "system" in row}
    return {system: row["missing"] for system, row in last.items() if "missing" in row}


def _all_rows(chapter: str) -> Iterator[dict[str, Any]]:
    path = RESULTS / f"{chapter}.jsonl"
    if path.exists():
        with path.open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file)


def started() -> str:
    """The time, which is also the name of a run that its rows share."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """The commit that is measured, marked if files differ from it; what the benchmarks themselves write does not count."""
    pages = ("benchmarks/results", "benchmarks/BOOK.md", "README.md", "src/trilens/models/*/README.md")
    written = [f":(exclude){page}" for page in pages]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *written)
    return _git("rev-parse", "--short=10", "HEAD") + ("-dirty" if changed else "")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> str:
    """Processor, cores and Python."""
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def file_hash(*paths: Path) -> str:
    """Tells which data were used."""
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def seconds(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """Median, best and worst of several timings, after one run that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return {"median": median(times), "best": min(times), "worst": max(times)}


def spread(name: str, values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Median, smallest and largest of one figure, taken several times."""
    found = {"median": median(values), "min": min(values), "max": max(values)}
    return {f"{name}_{which}": round(value, digits) for which, value in found.items()}


def folder_bytes(folder: Path) -> int:
    """What an index takes on disk."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def add_data(parser: argparse.ArgumentParser, option: str, name: str, what: str) -> None:
    """An option for a file or folder of data, which is looked for in $TRILENS_DATA where it is not given."""
    home = os.environ.get("TRILENS_DATA")
    known = f"[$TRILENS_DATA/{name}]" if name else "[$TRILENS_DATA]"
    default = Path(home) / name if home else None
    parser.add_argument(option, type=Path, default=default, required=default is None, help=f"{what} {known}")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """The option for the weights that the model of trilens was made of, as its peers read them."""
    home = os.environ.get("TRILENS_CHECKPOINT")
    parser.add_argument("--model", default=home, help="folder or hub id of a checkpoint [$TRILENS_CHECKPOINT]")
