"""Quality of each lens on judged collections, and of the bundled model's float32 original beside it.

    python -m benchmarks.quality FOLDER... --runs runs [--reference rows.jsonl]

Folders are in the BEIR layout; nothing is tuned on them. `--reference` takes rows that `reference_dense.py` printed for the
same folders (it needs torch): whole documents cut at the model's length, in float32, searched exactly.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.record import file_hash, record


def main() -> None:
    """Evaluate every folder through the command line and record the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where collections and runs are kept")
    parser.add_argument("--reference", type=Path, help="rows of reference_dense.py")
    options = parser.parse_args()
    for folder in options.folders:
        facts = {"dataset": folder.name, "split": "test", "data": file_hash(folder / "corpus.jsonl")}
        for result in evaluate(folder, options.runs / folder.name):
            record("quality", system=result.pop("lens"), **facts, **result)
        for row in reference(options.reference, folder.name):
            record("quality", system="dense, float32 reference", **facts, **row)


def evaluate(folder: Path, runs: Path) -> list[dict[str, Any]]:
    """What `trilens eval` says, one lens after the other."""
    command = [sys.executable, "-c", "from trilens.serve.cli import main; main()", "eval", str(folder), "--to", str(runs)]
    run = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    results: list[dict[str, Any]] = json.loads(run.stdout)["results"]
    return results


def reference(path: Path | None, dataset: str) -> list[dict[str, Any]]:
    """The measures of the reference for one data set."""
    if path is None:
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{"nDCG@10": row["nDCG@10"], "R@100": row["R@100"]} for row in lines if row["dataset"] == dataset]


if __name__ == "__main__":
    main()
