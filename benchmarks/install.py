"""The size of an installation, and how long commands take to start.

    ./scripts/bench install
    ./scripts/bench install --before ../trilens-before

A wheel of this tree, and of another one, is installed by pip with its default dependencies into a fresh environment without
pip. pip compiles bytecode; other installers do not. Times are CPU seconds of processes, after one that fills the caches; the
search is that of bm25 in a collection of two documents.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.record import ROOT, folder_bytes, record, spread, started

PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
IMPORT = "from time import process_time as now; start = now(); import trilens; print(1000 * (now() - start))"
LISTING = "from importlib.metadata import distributions; print(*sorted(f'{d.name}=={d.version}' for d in distributions()))"
DOCUMENTS = ({"id": "a", "text": "Recursively delete a directory tree."}, {"id": "b", "text": "Create a directory."})


def install(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """The programs and the site-packages of a fresh environment with the wheel."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run([*PIP, "--python", folder / "bin" / "python", "install", wheel], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    return folder / "bin", packages


def timed(command: Sequence[object], repeats: int, environment: Mapping[str, str]) -> list[float]:
    """CPU seconds of processes, after one that is not measured."""
    seconds = []
    for _ in range(repeats + 1):
        before = cpu_seconds()
        subprocess.run([str(word) for word in command], check=True, capture_output=True, env=environment)
        seconds.append(cpu_seconds() - before)
    return seconds[1:]


def cpu_seconds() -> float:
    """CPU time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def output(python: Path, code: str, environment: Mapping[str, str]) -> str:
    """What a program prints."""
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env=environment).stdout


def measure(wheel: Path, folder: Path, repeats: int) -> dict[str, Any]:
    """Install a wheel and start its commands."""
    programs, packages = install(wheel, folder / "environment")
    size, bytecode = folder_bytes(packages), sum(map(folder_bytes, packages.rglob("__pycache__")))
    # Variables such as PYTHONPATH would put other packages before those that are installed.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    trilens, python, collection = programs / "trilens", programs / "python", folder / "c.trilens"
    source = folder / "documents.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    timed([trilens, "index", source, "--to", collection, "--lens", "bm25"], 0, environment)
    listed = output(python, LISTING, environment)
    imports = [float(output(python, IMPORT, environment)) for _ in range(repeats + 1)]
    return {
        "data": blake2b(listed.encode(), digest_size=8).hexdigest(),
        "packages": len(listed.split()),
        "megabytes": round(size / 1e6, 1),
        "megabytes_without_bytecode": round((size - bytecode) / 1e6, 1),
        **spread("import_ms", imports[1:], 1),
        **spread("version_seconds", timed([trilens, "--version"], repeats, environment)),
        **spread("help_seconds", timed([trilens, "--help"], repeats, environment)),
        **spread("search_seconds", timed([trilens, "search", collection, "delete a directory"], repeats, environment)),
    }


def main() -> None:
    """Measure this tree, after another one if it is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout, measured first")
    parser.add_argument("--repeats", type=int, default=9, help="starts of each command")
    options = parser.parse_args()
    trees = {"before": options.before} if options.before else {}
    run = started()
    for name, tree in (trees | {"this tree": ROOT}).items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            subprocess.run([*PIP, "wheel", "--no-deps", "--wheel-dir", folder, tree], check=True)
            (wheel,) = folder.glob("*.whl")
            results = measure(wheel, folder, options.repeats)
        record("install", run=run, tree=name, threads=1, seed=None, repeats=options.repeats, **results)


if __name__ == "__main__":
    main()
