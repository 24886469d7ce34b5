"""Rows of results: every number with the commit, machine, data and spread that it was measured with."""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

RESULTS = Path(__file__).parent / "results"


def record(chapter: str, **facts: Any) -> None:
    """Append a row to `results/<chapter>.jsonl` and print it."""
    row = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit(), "machine": machine(), **facts}
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{chapter}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(json.dumps(facts, ensure_ascii=False), flush=True)


def rows(chapter: str) -> Iterator[dict[str, Any]]:
    """Everything recorded, oldest first."""
    with (RESULTS / f"{chapter}.jsonl").open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def commit() -> str:
    """The commit that is measured, marked if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> str:
    """Processor, cores and Python."""
    names = [line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def file_hash(path: Path) -> str:
    """Tells which data were used."""
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


def seconds(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """Median, best and worst of several timings, after one run that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return {"median": median(times), "best": min(times), "worst": max(times)}
