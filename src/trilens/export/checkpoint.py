"""`Checkpoint`: config and tensors of a Hugging Face folder, with one-line errors for missing or misshapen ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, deserialize

from trilens.errors import BadModel
from trilens.kernels.array_types import Float32s

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
KINDS = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
# Tensor names of the first BERT release.
RENAMED = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class Checkpoint:
    """Config and weights of a folder, fully read into memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_json(folder / CONFIG)
        self.tensors = {name: tensor for file in weight_files(folder) for name, tensor in read_tensors(file)}

    @property
    def model_type(self) -> str:
        """The architecture, as named in the config."""
        return str(self.config.get("model_type"))

    def number(self, name: str) -> int:
        """An integer of the config."""
        value = self.config.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise BadModel(f"{self.folder / CONFIG} has {name} {value!r}; expected a whole number")
        return value

    def tensor(self, name: str, *shape: int) -> Float32s:
        """A tensor of this shape; -1 matches any size."""
        if (tensor := self.tensors.get(name)) is None:
            raise BadModel(
                f"{self.folder} has no tensor {name!r}; expected the weights of an encoder of type {self.model_type!r}"
            )
        if tensor.ndim != len(shape) or any(want not in (-1, have) for want, have in zip(shape, tensor.shape, strict=True)):
            wanted = " × ".join("any" if size < 0 else str(size) for size in shape)
            raise BadModel(f"{name!r} of {self.folder} is {' × '.join(map(str, tensor.shape))}; expected {wanted}")
        return tensor

    def matrix(self, name: str, inner: int, outer: int) -> Float32s:
        """The matrix (in, out) of a linear layer."""
        return np.ascontiguousarray(self.tensor(f"{name}.weight", outer, inner).T)

    def strip(self, prefix: str) -> None:
        """Remove the prefix that tensor names have if the encoder was saved with a task head."""
        self.tensors = {name.removeprefix(prefix): tensor for name, tensor in self.tensors.items()}


def read_json(file: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadModel(f"{file} is missing; expected a folder as transformers or sentence-transformers saves it") from error
    except (OSError, ValueError) as error:
        raise BadModel(f"{file} cannot be read ({error}); restore it") from error
    if not isinstance(content, dict):
        raise BadModel(f"{file} holds a {type(content).__name__}; expected an object")
    return content


def weight_files(folder: Path) -> list[Path]:
    """The weight file of a folder, or its shards."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / SHARDS).is_file():
        return [folder / name for name in sorted(set(read_json(folder / SHARDS).get("weight_map", {}).values()))]
    if (folder / "pytorch_model.bin").is_file():
        raise BadModel(
            f"{folder} has its weights as pytorch_model.bin; expected {WEIGHTS}: load it with transformers and save it again"
        )
    raise BadModel(f"{folder / WEIGHTS} is missing; expected the weights of an encoder")


def read_tensors(file: Path) -> Iterator[tuple[str, Float32s]]:
    """The float tensors of a file as float32; integer tensors are skipped."""
    try:
        entries = deserialize(file.read_bytes())
    except (OSError, SafetensorError) as error:
        raise BadModel(f"{file} cannot be read ({error}); restore it") from error
    for name, entry in entries:
        kind, shape = entry["dtype"], entry["shape"]
        if kind == "BF16":  # the upper half of a float32
            tensor = (np.frombuffer(entry["data"], np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif kind in KINDS:
            tensor = np.frombuffer(entry["data"], KINDS[kind]).astype(np.float32, copy=False)
        else:
            continue
        for old, renamed in RENAMED.items():
            name = name.replace(old, renamed)
        yield name, tensor.reshape(shape)
