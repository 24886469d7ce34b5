"""Cost of opening a collection: time and memory, for a thousand documents and for a whole corpus.

    ./scripts/bench store --corpus debian-en.jsonl.xz

Each measurement is a fresh process that imports trilens, then opens the collection and takes a snapshot; memory is the increase
of the resident set while opening.
"""

import argparse
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from statistics import median

from benchmarks.record import add_data, file_hash, record
from trilens import Collection
from trilens.read.readers import read

REPEATS = 9
PROBE = """
import sys, time
from trilens.collection import Collection
def held():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
before, start = held(), time.perf_counter()
collection = Collection.open(sys.argv[1])
snapshot = collection.snapshot
opened = time.perf_counter() - start
assert snapshot.rows
print(1000 * opened, held() - before)
"""


def main() -> None:
    """Build both collections and open each repeatedly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data(parser, "--corpus", "debian-en.jsonl.xz", "JSON lines with title and text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for size in (1_000, None):
            path = Path(temporary) / f"{size or 'all'}.trilens"
            with Collection.create(path, lenses=["bm25"]) as collection:
                collection.ingest(islice(read([options.corpus], on_skip=lambda error: None), size))
                collection.optimize()
                documents = len(collection)
            runs = [_probe(path) for _ in range(REPEATS + 1)][1:]
            record(
                "store",
                documents=documents,
                data=file_hash(options.corpus),
                threads=1,
                seed=None,
                repeats=REPEATS,
                open_ms_median=round(median(run[0] for run in runs), 3),
                open_ms_worst=round(max(run[0] for run in runs), 3),
                memory_mb_worst=round(max(run[1] for run in runs), 2),
            )


def _probe(path: Path) -> tuple[float, float]:
    run = subprocess.run([sys.executable, "-c", PROBE, str(path)], capture_output=True, text=True, check=True)
    milliseconds, megabytes = run.stdout.split()
    return float(milliseconds), float(megabytes)


if __name__ == "__main__":
    main()
