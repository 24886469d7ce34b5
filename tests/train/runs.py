"""Recipes of every kind for a tiny model, runs of them in processes, and their weights."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch", reason="training needs torch: pip install trilens[train]")

from safetensors.torch import load_file

from tests.train import tiny

STEPS = 4


MULTI = {"dim": 16, "normalised": True, "skip_punctuation": True, "skip_special": False}


KINDS: dict[str, dict[str, Any]] = {
    "dense": {"heads": ["dense"], "objectives": [{"kind": "info_nce", "symmetric": True}]},
    "vdr": {"heads": ["sparse"], "objectives": [{"kind": "vdr", "top": 5, "semi_parametric": True, "mask_weight": 0.1}]},
    "colbert": {"heads": ["multi"], "objectives": [{"kind": "late"}]},
    "xtr": {
        "heads": ["multi"],
        "objectives": [{"kind": "late", "top": 8, "temperature": 0.1}],
        "dev": {"hold_out": 8, "passages": 40, "every": 2, "head": "retrieved", "retrieved": 3},
    },
    "m3": {"heads": ["dense", "lexical", "multi"], "objectives": [{"kind": "m3", "distil_after": 2}]},
    "ensemble": {
        "heads": ["dense", "lexical", "multi", "sparse"],
        "objectives": [
            {"kind": "info_nce"},
            {"kind": "ensemble", "teachers": {"dense": 1.0, "multi": 1.0}, "students": ["sparse", "lexical"], "after": 2},
        ],
        "multi": {"weighted": True},
        "sparse": {"transform": True},
    },
    "weighted": {
        "heads": ["multi", "sparse"],
        "objectives": [{"kind": "late"}, {"kind": "vdr"}],
        "multi": {"weighted": True},
        "sparse": {"transform": True},
    },
    "several": {"heads": ["dense", "sparse"], "objectives": [{"kind": "info_nce"}, {"kind": "vdr", "weight": 0.5}]},
    "bag": {"heads": ["sparse"], "objectives": [{"kind": "vdr"}], "negatives": {"source": "bag", "count": 2, "depth": 5}},
    "refresh": {
        "heads": ["dense"],
        "objectives": [{"kind": "info_nce"}],
        "negatives": {"source": "refresh", "count": 2, "depth": 6, "every": 2},
    },
    "mixed": {
        "heads": ["dense"],
        "objectives": [{"kind": "info_nce"}],
        "negatives": [
            {"source": "given", "count": 1},
            {"source": "mined", "count": 2, "depth": 9},
            {"source": "refresh", "count": 1, "depth": 6, "every": 1},
            {"source": "random", "count": 1},
        ],
    },
    "fitted": {
        "heads": ["dense", "multi", "sparse", "lexical"],
        "objectives": [{"kind": "late"}, {"kind": "vdr", "temperature": 2.0}, {"kind": "info_nce", "head": "lexical"}],
        "multi": {"weighted": True},
        "sparse": {"transform": True, "biased": True},
        "model": {"freeze": True, "fit_to": 20},
        "negatives": {"source": "refresh", "count": 2, "depth": 6, "every": 2},
    },
    "few": {"heads": ["dense"], "objectives": [{"kind": "info_nce"}], "data": {"limit": 12}},
    "shallow": {
        "heads": ["multi"],
        "objectives": [{"kind": "late", "top": 8, "imputed": True, "temperature": 0.1}],
        "model": {"layers": 1},
    },
    "separate": {"heads": ["dense"], "towers": "separate", "objectives": [{"kind": "info_nce"}]},
    "retromae": {"heads": ["dense"], "objectives": [], "retromae": {}},
    "cross": {
        "heads": [],
        "cross": {"max_tokens": 24, "objectives": [{"kind": "group"}, {"kind": "binary", "weight": 0.5}]},
        "negatives": {"count": 2},
        "model": {"freeze_embeddings": True, "gradient_checkpointing": True},
    },
}


def recipe_file(folder: Path, backbone: Path, data: Path, kind: str = "dense", **run: Any) -> Path:
    settings = dict(KINDS[kind])
    heads, towers = settings.pop("heads"), settings.pop("towers", "shared")
    multi, sparse, model = (settings.pop(name, {}) for name in ("multi", "sparse", "model"))
    lengths = {} if "cross" in settings else {"max_doc_tokens": 16, "max_query_tokens": 8}
    content = {
        "name": "tiny",
        "model": {"backbone": str(backbone), "heads": heads, "towers": towers, **lengths, **model},
        "dev": {"hold_out": 8, "passages": 40, "every": 2},
        "batch": {"size": 4},
        "run": {"steps": STEPS, "save_every": 2, "log_every": 1, "learning_rate": 1e-3, "head_learning_rate": 1e-3} | run,
        **settings,
    }
    content["data"] = {"sources": [{"format": "dpr", "path": str(data)}]} | settings.get("data", {})
    if "multi" in heads:
        content["model"]["multi"] = MULTI | multi
    if "sparse" in heads:
        content["model"]["sparse"] = {
            "dim": len(tiny.BERT_VOCABULARY) - tiny.BERT_SHIFT,
            "shift": tiny.BERT_SHIFT,
            "normalised": False,
            **sparse,
        }
    if "lexical" in heads:
        content["model"]["lexical"] = {"dim": len(tiny.BERT_VOCABULARY)}
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "recipe.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def weights(run: Path) -> dict[str, Any]:
    actual: dict[str, Any] = {}
    for file in sorted((run / "model").rglob("*.safetensors")):
        actual |= {f"{file.relative_to(run)}:{name}": tensor for name, tensor in load_file(file).items()}
    assert actual
    return actual


def assert_close(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Compare weights except key biases: they do not affect attention, so the optimiser amplifies rounding errors in them."""
    assert one.keys() == other.keys()
    for name in one:
        if not name.endswith("key.bias"):
            torch.testing.assert_close(one[name], other[name], atol=2e-4, rtol=1e-3, msg=name)


def command(file: Path, run: Path, more: list[str] | None = None, processes: int = 1) -> "subprocess.Popen[str]":
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m"]
    arguments = [*start, "trilens", "train", str(file), "--to", str(run), *(more or [])]
    # Sums depend on the number of threads, so compared runs must have equally many.
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads() if processes == 1 else 1)}
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def wait_for(file: Path, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + 240
    while not file.exists():
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        assert time.monotonic() < end, "no checkpoint was written"
        time.sleep(0.01)
