"""Runs every training recipe and its variants as documented, with measures on held-out questions before and after.

    python -m benchmarks.recipes --data /data/squad-retrieval --backbone /models/minilm

Needs `pip install trilens[train]`. Runs are kept in `--to`: interrupted runs are resumed, finished runs are not repeated.
`--only` selects variants; the variant that continues from the retromae model needs its run in `--to`.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.record import ROOT, file_hash, record, rows

SEED = 1  # the seed of all recipes
CURVE = ":nDCG@10"
IN_BATCH = 'objectives=[{"kind": "late", "mean": true, "temperature": 0.05}]'
# Variant → recipe and overridden settings; RUNS stands for the folder of the runs.
VARIANTS: dict[str, tuple[str, list[str]]] = {
    "simple": ("simple", []),
    "dpr": ("dpr", []),
    "dpr without hard negatives": ("dpr", ["negatives.count=0"]),
    "dpr, refreshed negatives": (
        "dpr",
        ["negatives.source=refresh", "negatives.every=50", "negatives.skip=5", "data.limit=1600"],
    ),
    "dpr, the whole encoder": ("dpr", ["model.layers=null", "model.freeze_layers=3"]),
    "vdr": ("vdr", []),
    "vdr with the mask": ("vdr", ["objectives.0.mask_weight=0.1"]),
    "vdr, two terms": ("vdr", ["objectives.0.semi_parametric=false"]),
    "vdr, negatives from bags": ("vdr", ["negatives.source=bag"]),
    "colbert": ("colbert", []),
    "colbert without a teacher": (
        "colbert",
        ["teacher=null", IN_BATCH],
    ),
    "xtr": ("xtr", []),
    "xtr's twin by MaxSim": ("xtr", [IN_BATCH]),
    "m3": ("m3", []),
    "m3 without self-distillation": ("m3", ["objectives.0.distil_after=null"]),
    "retromae": ("retromae", []),
    "dpr by the first state": ("dpr", ["model.pooling=cls"]),
    "dpr by the first state, after retromae": (
        "dpr",
        ["model.pooling=cls", "model.backbone=RUNS/retromae/model", "model.layers=null"],
    ),
}


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Train one variant and return its result and learning curves."""
    recipe, changes = VARIANTS[name]
    folder = options.to / name.replace(" ", "-").replace(",", "").replace("'", "")
    settings = [
        f"model.backbone={options.backbone}",
        f"data.sources.0.path={options.data / 'train.dpr.jsonl'}",
        f"data.sources.0.corpus={options.data / 'corpus.jsonl'}",
    ]
    if recipe == "colbert" and "teacher=null" not in changes:
        settings.append(f"teacher.model={options.backbone}")
    command = [sys.executable, "-m", "trilens", "train", str(ROOT / "recipes" / f"{recipe}.yaml"), "--to", str(folder)]
    for change in [*settings, *(change.replace("RUNS", str(options.to)) for change in changes), *options.set]:
        command += ["--set", change]
    if subprocess.run(command, check=False).returncode:  # resumes a run of the same recipe, refuses one of another
        sys.exit(f"{name} failed; see above. Finished variants are recorded")
    result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return result | curves(folder / "log.jsonl")


def curves(log: Path) -> dict[str, Any]:
    """Held-out nDCG@10 of each head and the loss, by step."""
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    evaluations = [line for line in lines if any(name.endswith(CURVE) for name in line)]
    heads = [name for name in evaluations[0] if name.endswith(CURVE)]
    return {
        "curve": {
            name.removeprefix("eval_").removesuffix(CURVE): [[line["step"], line[name]] for line in evaluations]
            for name in heads
        },
        "losses": [[line["step"], line["loss"]] for line in lines if "loss" in line],
    }


def main() -> None:
    """Run the variants that are not recorded yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with train.dpr.jsonl and corpus.jsonl")
    parser.add_argument("--backbone", required=True, help="model that all recipes start from")
    parser.add_argument("--to", type=Path, default=Path("runs/recipes"), help="folder of the runs")
    parser.add_argument("--only", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--set", nargs="*", default=[], help="settings for all variants, to try the script")
    options = parser.parse_args()
    data = file_hash(options.data / "train.dpr.jsonl")
    done = {(row["variant"], row.get("recipe_file")) for row in rows("recipes") if row["settings"] == options.set}
    for name in options.only:
        file = file_hash(ROOT / "recipes" / f"{VARIANTS[name][0]}.yaml")
        if (name, file) not in done:
            result = run(name, options)
            facts = {key: result[key] for key in ("steps", "best_step", "seconds", "before", "after", "curve", "losses")}
            facts |= {"recipe": VARIANTS[name][0], "recipe_file": file, "settings": options.set}
            facts |= {"backbone": Path(options.backbone).name, "data": data}
            known = {"threads": len(os.sched_getaffinity(0)), "seed": SEED, "repeats": 1}
            record("recipes", variant=name, **facts, **known)


if __name__ == "__main__":
    main()
