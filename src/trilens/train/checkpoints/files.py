"""Checkpoint files: locating them, reading tensors without executing code, and building a tower with trained heads."""

import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from trilens.encode.folder import Head
from trilens.encode.hub import find_model
from trilens.errors import BadModel
from trilens.train.backbone import Backbone
from trilens.train.build import describe, require_readable
from trilens.train.model import Heads, Stack, biased, load_weights

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")


def find_checkpoint(source: str | Path) -> Path:
    """The folder or file of a checkpoint, given as a path or a Hugging Face hub id."""
    path = find_model(str(source))
    if not path.exists():
        raise BadModel(f"there is no folder {source}; expected a checkpoint, or a hub id such as intfloat/e5-small-v2")
    return path


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if the file does not exist."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadModel(f"{file} is not JSON ({error}); restore it") from error
    if not isinstance(content, dict):
        raise BadModel(f"{file} holds a {type(content).__name__}; expected an object")
    return content


def weights_file(folder: Path) -> Path:
    """The weight file of a folder."""
    file = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
    if file is None:
        raise BadModel(f"{folder} has neither {' nor '.join(WEIGHT_FILES)}; expected one of them: restore the checkpoint")
    return file


def tensor_names(folder: Path) -> set[str]:
    """The tensor names of a folder; empty if it has no weight file with a standard name."""
    present = [folder / name for name in WEIGHT_FILES if (folder / name).is_file()]
    return set(read_tensors(present[0], ("",), names_only=True)) if present else set()


def read_tensors(file: Path, prefixes: Sequence[str] = ("",), names_only: bool = False) -> dict[str, Any]:
    """The tensors whose names start with one of the prefixes.

    Pickled files are read with `weights_only`, so a file that would execute code is an error.
    """
    try:
        if file.suffix == ".safetensors":
            with safe_open(file, "pt") as opened:
                names = [name for name in list(opened.keys()) if name.startswith(tuple(prefixes))]
                return {name: None if names_only else opened.get_tensor(name) for name in names}
        content = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, SafetensorError, RuntimeError, EOFError, OSError) as error:
        reason = " ".join(str(error).split())[:100] or "it is empty"  # EOFError says nothing
        raise BadModel(
            f"{file} cannot be read as plain tensors ({reason}…); expected a file of tensors only, since others may run code"
        ) from error
    if not isinstance(content, Mapping):
        raise BadModel(f"{file} holds a {type(content).__name__}; expected tensors by name")
    return {name: value for name, value in content.items() if str(name).startswith(tuple(prefixes))}


def take(tensors: Mapping[str, Any], names: Sequence[str], where: Path) -> list[Tensor]:
    """These tensors as float32; missing ones are reported by name."""
    if missing := [name for name in names if not isinstance(tensors.get(name), Tensor)]:
        raise BadModel(f"{where} has no {', '.join(missing)}; expected {', '.join(names)}: restore the checkpoint")
    return [tensors[name].float() for name in names]


def trained_stack(
    backbone: Backbone,
    source: str,
    heads: Sequence[Head],
    described: Mapping[str, Any],
    changes: Mapping[str, Any],
    weights: Mapping[str, Tensor],
) -> Stack:
    """A tower whose heads have these weights, named as in a saved model.

    Its description is `described`, overridden by `changes`; lengths are limited to the positions of the encoder.
    """
    max_positions = backbone.longest
    lengths = {name: described[name] for name in ("max_query_tokens", "max_doc_tokens") if name in described}
    limited = {name: tokens if max_positions is None else min(tokens, max_positions) for name, tokens in lengths.items()}
    description = describe(backbone, source, heads, {**described, **limited, **changes})
    backbone.read_as(description)
    require_readable(backbone, description)
    trained = Heads(description, backbone.get_embedding_dimension(), biased(weights))
    load_weights(trained, weights, source)
    return Stack(backbone, trained)
