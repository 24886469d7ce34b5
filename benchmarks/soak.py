"""The service for a long time under everything at once: memory and descriptors must stay flat, and nothing may fail.

    ./scripts/bench soak --corpus debian-en.jsonl.xz --minutes 30

Clients search, with a hostile filter in a tenth of their requests; slow clients send heads and bodies byte by byte, idle, or do
not take their answers; one client writes; `trilens optimize` and `trilens backup` run in turns, and each backup is restored and
checked. A request fails if its connection is lost or its status is 5xx, except 503 with Retry-After.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from shutil import rmtree
from time import monotonic

import numpy as np

from benchmarks.record import add_data, file_hash, record
from benchmarks.soak_clients import SLOW, Tally, World, searching, slow, writing
from trilens import Collection
from trilens.read.readers import read

KEY = "a-key-for-the-soak-test"
TRILENS = [sys.executable, "-c", "from trilens.cli.main import main; main()"]
SLOW_OF_A_KIND = 8
SAMPLES = 180
MAINTENANCE_SECONDS = 20.0


def main() -> None:
    """Build a collection, serve it, and load the service until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "debian-en.jsonl.xz", "JSON lines with title and text")
    parser.add_argument("--documents", type=int, default=2_000)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    documents = list(islice(read([options.corpus], on_skip=lambda error: None), options.documents + 1000))
    indexed, others = documents[: options.documents], documents[options.documents :]
    queries = [document.title or document.text[:80] for document in documents if (document.title or document.text).strip()]
    tally, done = Tally(), Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "soak.trilens"
        with Collection.create(path) as collection:
            collection.add(indexed)
        with _served(path, Path(temporary)) as (process, host, port):
            world = World(host, port, KEY, monotonic() + 60 * options.minutes, queries, others, tally)
            samples = asyncio.run(_run(world, options.clients, process.pid, path, done))
            ended = process.poll()
        problems = Collection.open(path).check().problems
    row = {
        "documents": len(indexed),
        "data": file_hash(options.corpus),
        "threads": len(os.sched_getaffinity(0)),
        "seed": None,
        "repeats": len(tally.seconds),
        "minutes": options.minutes,
        "clients": options.clients,
        "slow_clients": SLOW_OF_A_KIND * len(SLOW),
        "statuses": {kind: dict(sorted(counts.items())) for kind, counts in sorted(tally.statuses.items())},
        "failed": dict(tally.failed) | ({"service ended": 1} if ended is not None else {}),
        "cut": dict(tally.cut),
        "ms_p50": round(1000 * float(np.percentile(tally.seconds, 50)), 1),
        "ms_p99": round(1000 * float(np.percentile(tally.seconds, 99)), 1),
        "commits": tally.commits,
        "done": dict(done),
        "problems": problems,
        "samples": samples,
    }
    record("soak", **row)
    if row["failed"] or problems or done["failed"]:
        sys.exit(f"failed: {row['failed']} {problems} {dict(done)}")


async def _run(world: World, clients: int, pid: int, path: Path, done: Counter[str]) -> list[tuple[float, float, int]]:
    samples: list[tuple[float, float, int]] = []
    await asyncio.gather(
        *(searching(world, number) for number in range(clients)),
        *(slow(world, kind, number) for kind in SLOW for number in range(SLOW_OF_A_KIND)),
        writing(world),
        _maintain(world, path, done),
        _sample(world, pid, samples),
    )
    for failure, count in world.tally.failed.items():
        print(f"{count} × {failure}", file=sys.stderr)
    return samples


async def _sample(world: World, pid: int, samples: list[tuple[float, float, int]]) -> None:
    """Seconds since the start, resident megabytes and open descriptors of the service, at regular times."""
    started = monotonic()
    pause = max(1.0, (world.deadline - started) / SAMPLES)
    while not world.is_over:
        status = Path(f"/proc/{pid}/status").read_text()
        resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        samples.append((round(monotonic() - started, 1), round(resident / 1024, 1), descriptors))
        await asyncio.sleep(pause)


async def _maintain(world: World, path: Path, done: Counter[str]) -> None:
    """Optimize, back up and check the backup, in turns. A writer that is at work makes `optimize` wait for the next turn."""
    number = 0
    while not world.is_over:
        await asyncio.sleep(min(MAINTENANCE_SECONDS, max(0.0, world.deadline - monotonic())))
        code, said = await _trilens("optimize", path)
        done["optimized" if code == 0 else "optimize found a writer" if "being written" in said else "failed"] += 1
        target, restored = path.with_name("backups"), path.with_name(f"restored-{number}.trilens")
        for act, arguments in (
            ("backed up", ("backup", path, target, "--keep", "5")),
            ("restored", ("restore", target, restored)),
            ("verified", ("check", restored)),
        ):
            code, said = await _trilens(*arguments)
            done[act if code == 0 else "failed"] += 1
            if code:
                print(f"{act}: {said}", file=sys.stderr)
                break
        await asyncio.to_thread(rmtree, restored, True)
        number += 1


async def _trilens(*arguments: object) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *TRILENS, *(str(argument) for argument in arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode(errors="replace")


@contextmanager
def _served(path: Path, folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str, int]]:
    """A service with access and audit logs, in a process of its own."""
    logs = ["--access-log", str(folder / "access.jsonl"), "--audit-log", str(folder / "audit.jsonl")]
    arguments = ["serve", str(path), "--port", "0", "--write", *logs]
    variables = {**os.environ, "TRILENS_WRITE_KEYS": KEY}
    with subprocess.Popen([*TRILENS, *arguments], stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().split()[2].removeprefix("http://").rstrip("/").partition(":")
        try:
            yield process, host, int(port)
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
