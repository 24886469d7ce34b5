"""Sentence-transformers models: an encoder, CLS or mean pooling, optionally a projection and normalisation."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from trilens.errors import BadModel
from trilens.export.source import normalises, prompts_of
from trilens.train.backbone import Backbone
from trilens.train.checkpoints.files import read_json, read_tensors, take, trained_stack, weights_file
from trilens.train.model import MODULES_FILE, Stack

POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
ACTIVATIONS = {"Identity": "linear", "Tanh": "tanh"}
UNLIMITED = 1_000_000


def recognises(folder: Path) -> bool:
    """By the module list of sentence-transformers."""
    return (folder / MODULES_FILE).is_file()


def load(folder: Path, source: str, changes: Mapping[str, Any]) -> tuple[Stack, None]:
    """A dense head equivalent to the modules after the encoder."""
    settings = read_module_settings(folder)
    if "pooling" not in settings:
        raise BadModel(f"{folder / MODULES_FILE} names no Pooling; expected one, with mode cls or mean")
    dense: Path | None = settings.pop("projected_by", None)
    weights: dict[str, Tensor] = {}
    described: dict[str, Any] = {"normalised": settings.pop("normalised")}
    if dense is not None:
        described["projection"], weights = read_projection(dense)
        settings["dim"] = len(weights["dense.linear.weight"])
    if described != {"normalised": True}:
        settings["dense"] = described
    backbone = Backbone(str(folder / settings.pop("encoder")), do_lower_case=settings.pop("lower_case"))
    return trained_stack(backbone, source, ["dense"], settings | prompts_of(folder), changes, weights), None


def read_module_settings(folder: Path) -> dict[str, Any]:
    """Settings of the modules: description fields, and `encoder`, `projected_by`, `normalised`, `lower_case`."""
    normalised = normalises(folder, [kind for kind, _ in modules_of(folder)])
    settings: dict[str, Any] = {"normalised": normalised, "encoder": "", "lower_case": False}
    for kind, path in modules_of(folder):
        if kind == "Transformer":
            saved = read_json(folder / path / "sentence_bert_config.json")
            settings |= {"encoder": path, "lower_case": bool(saved.get("do_lower_case"))}
            if longest := saved.get("max_seq_length") or tokenizer_length(folder / path):
                settings |= {"max_query_tokens": longest, "max_doc_tokens": longest}
        elif kind == "Pooling":
            settings["pooling"] = read_pooling(folder / path / "config.json")
        elif kind == "Dense" and "projected_by" not in settings:
            settings["projected_by"] = folder / path
        elif kind != "Normalize":
            raise BadModel(
                f"{folder / MODULES_FILE} names the module {kind}; expected Transformer, Pooling, at most one Dense, Normalize"
            )
    return settings


def tokenizer_length(folder: Path) -> int | None:
    """The maximum length where versions from 5 on store it; huge values mean that there is none."""
    longest = read_json(folder / "tokenizer_config.json").get("model_max_length")
    return int(longest) if longest is not None and longest < UNLIMITED else None


def modules_of(folder: Path) -> list[tuple[str, str]]:
    """Class name and relative path of each module, in order."""
    file = folder / MODULES_FILE
    if not file.is_file():
        return []
    try:
        return [(module["type"].rsplit(".", 1)[-1], module["path"]) for module in json.loads(file.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadModel(f"{file} is not a list of modules with type and path ({error!r}); restore it") from error


def read_pooling(file: Path) -> str:
    """The pooling mode, which is stored either as a name or as flags; exactly one mode is supported."""
    config = read_json(file)
    flags = [name for name, on in config.items() if name.startswith("pooling_mode_") and on]
    stored = config.get("pooling_mode") or flags
    names = [stored] if isinstance(stored, str) else list(stored)
    modes = [POOLINGS.get(name, name) for name in names]
    if modes not in (["cls"], ["mean"]):
        raise BadModel(f"{file} pools by {', '.join(modes) or 'nothing'}; expected either cls or mean")
    if config.get("include_prompt") is False:
        raise BadModel(f"{file} excludes the prompt from pooling; expected a model that pools over all tokens")
    return modes[0]


def read_projection(folder: Path) -> tuple[str, dict[str, Tensor]]:
    """Activation and weights of a Dense module."""
    config = read_json(folder / "config.json")
    name = str(config.get("activation_function", "Tanh")).rsplit(".", 1)[-1]
    if name not in ACTIVATIONS or config.get("use_residual"):
        raise BadModel(
            f"{folder} applies {name}{' and a residual' if config.get('use_residual') else ''}; expected Identity or Tanh"
        )
    names = ["linear.weight", *(["linear.bias"] if config.get("bias", True) else [])]
    file = weights_file(folder)
    tensors = dict(zip(names, take(read_tensors(file), names, file), strict=True))
    return ACTIVATIONS[name], {f"dense.{name}": tensor for name, tensor in tensors.items()}
