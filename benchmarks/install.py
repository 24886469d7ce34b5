"""The size of an installation, and how long commands take to start.

    ./scripts/bench install
    ./scripts/bench install --before ../trilens-before

A wheel of this tree, and of another one, is installed by pip with its default dependencies into a fresh environment without
pip. pip compiles bytecode; other installers do not. Times are CPU seconds of processes, after one that fills the caches; the
search is that of bm25 in a collection of two documents.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.fresh import add_before, build, cpu_seconds, environment, install, trees
from benchmarks.record import commit_of, folder_bytes, record, spread, started

IMPORT = "from time import process_time as now; start = now(); import trilens; print(1000 * (now() - start))"
LISTING = "from importlib.metadata import distributions; print(*sorted(f'{d.name}=={d.version}' for d in distributions()))"
DOCUMENTS = ({"id": "a", "text": "Recursively delete a directory tree."}, {"id": "b", "text": "Create a directory."})


def timed(command: Sequence[object], repeats: int, variables: Mapping[str, str]) -> list[float]:
    """CPU seconds of processes, after one that is not measured."""
    seconds = []
    for _ in range(repeats + 1):
        before = cpu_seconds()
        subprocess.run([str(word) for word in command], check=True, capture_output=True, env=variables)
        seconds.append(cpu_seconds() - before)
    return seconds[1:]


def output(python: Path, code: str, variables: Mapping[str, str]) -> str:
    """What a program prints."""
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env=variables).stdout


def measure(wheel: Path, folder: Path, repeats: int) -> dict[str, Any]:
    """Install a wheel and start its commands."""
    programs, packages = install(wheel, folder / "environment")
    size, bytecode = folder_bytes(packages), sum(map(folder_bytes, packages.rglob("__pycache__")))
    variables = environment(folder)
    trilens, python, collection = programs / "trilens", programs / "python", folder / "c.trilens"
    source = folder / "documents.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    timed([trilens, "index", source, "--to", collection, "--lens", "bm25"], 0, variables)
    listed = output(python, LISTING, variables)
    imports = [float(output(python, IMPORT, variables)) for _ in range(repeats + 1)]
    return {
        "data": blake2b(listed.encode(), digest_size=8).hexdigest(),
        "packages": len(listed.split()),
        "megabytes": round(size / 1e6, 1),
        "megabytes_without_bytecode": round((size - bytecode) / 1e6, 1),
        **spread("import_ms", imports[1:], 1),
        **spread("version_seconds", timed([trilens, "--version"], repeats, variables)),
        **spread("help_seconds", timed([trilens, "--help"], repeats, variables)),
        **spread("search_seconds", timed([trilens, "search", collection, "delete a directory"], repeats, variables)),
    }


def main() -> None:
    """Measure this tree, after another one if it is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_before(parser)
    parser.add_argument("--repeats", type=int, default=9, help="starts of each command")
    options = parser.parse_args()
    run = started()
    for name, tree in trees(options.before).items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            results = measure(build(tree, folder), folder, options.repeats)
        facts = {"run": run, "tree": name, "tree_commit": commit_of(tree), "repeats": options.repeats}
        record("install", **facts, threads=1, seed=None, **results)


if __name__ == "__main__":
    main()
