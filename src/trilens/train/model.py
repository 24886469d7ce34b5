"""Trainable models: a backbone and heads as sentence-transformers modules, which saves, loads and trains them.

`Backbone` tokenises texts with the code that serves model folders and computes token states; `Heads` computes the outputs that
losses use. Queries and documents share one stack of the two, or each have their own (a `Router`).

On disk: the backbone in Hugging Face format with `tokenizer.json`; in `1_Heads`, the description as `config.json`, and
`model.safetensors` with `multi.linear`, `sparse.norm`, `lexical.linear` and, depending on the description, `dense.linear` (a
projection), `multi.weigh` (weighted queries), `sparse.transform` and `sparse.bias`. A router has a folder for each module of
each stack.

`modules.json` names the classes by their import paths, so renaming or moving `Backbone` or `Heads` changes the file format.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module, Router
from torch import Tensor, nn

from trilens.encode.folder import Head, ModelDescription
from trilens.errors import BadInput, BadModel, first_error
from trilens.train.backbone import Backbone
from trilens.train.heads import (
    DenseHeadModule,
    LexicalHeadModule,
    MultiHeadModule,
    SparseHeadModule,
    bags_of_tokens,
    lexical_vectors,
)

WEIGHTS_FILE = "model.safetensors"
MODULES_FILE = "modules.json"


class Heads(Module):
    """The heads of a model; None for heads that it does not have.

    `wanted` selects the heads to compute, because the sparse head costs as much as a small model; `features["wanted"]`
    overrides it for a batch.
    """

    dense: DenseHeadModule | None
    multi: MultiHeadModule | None
    sparse: SparseHeadModule | None
    lexical: LexicalHeadModule | None

    def __init__(self, description: ModelDescription, hidden: int, biases: Iterable[Head] = ()) -> None:
        """`hidden` is the size of a token state; `biases` are the heads whose optional bias is present."""
        super().__init__()
        self.description = description
        self.hidden = hidden
        self.wanted: tuple[Head, ...] = tuple(description.heads)
        multi, sparse, biased = description.multi, description.sparse, set(biases)
        self.dense = dense_head(description, hidden, "dense" in biased) if "dense" in description.heads else None
        self.multi = (
            MultiHeadModule(hidden, multi.dim, multi.normalised, "multi" in biased, multi.closing_mean, multi.weighted)
            if multi is not None
            else None
        )
        self.sparse = None
        if sparse is not None:
            words = sparse.dim if sparse.biased else 0
            self.sparse = SparseHeadModule(
                hidden, sparse.shift, sparse.normalised, sparse.transform, words, sparse.activation, sparse.epsilon
            )
        self.lexical = LexicalHeadModule(hidden) if description.lexical is not None else None

    def outputs(self, features: Mapping[str, Any], wanted: Iterable[Head]) -> dict[Head, Tensor]:
        """Outputs as in a model folder: dense (texts, dim), multi (texts, tokens, dim), lexical (texts, tokens) and
        sparse (texts, words)."""
        states, mask, outputs = features["token_embeddings"], features["attention_mask"], dict[Head, Tensor]()
        for head in wanted:
            if head == "dense" and self.dense is not None:
                outputs[head] = self.dense(states, mask)
            elif head == "multi" and self.multi is not None:
                outputs[head] = self.multi(states, features["kept"], mask, queries=self._of_queries(features))
            elif head == "lexical" and self.lexical is not None:
                outputs[head] = self.lexical(states)
            elif head == "sparse" and self.sparse is not None:
                outputs[head] = self.sparse(states, mask, self._words(features["word_embeddings"]))
            else:
                raise BadInput(f"the head {head!r} is wanted; expected heads that the model has: {self.description.heads}")
        return outputs

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add `sentence_embedding` (dense), `multi` with `multi_mask`, `sparse` with `bags`, and `lexical` to the features.

        `sparse`, `bags` and `lexical` are (texts, terms) over the vocabulary; terms of `sparse` and `bags` start at the shift.
        """
        outputs = self.outputs(features, features.get("wanted", self.wanted))
        ids, own = features["input_ids"], features["own"]
        if "dense" in outputs:
            features["sentence_embedding"] = outputs["dense"]
        if "multi" in outputs:
            features |= {"multi": outputs["multi"], "multi_mask": features["kept"]}
        if "lexical" in outputs and (lexical := self.description.lexical) is not None:
            features["lexical"] = lexical_vectors(outputs["lexical"], ids, own, lexical.dim)
        if "sparse" in outputs and (sparse := self.description.sparse) is not None:
            features["sparse"] = outputs["sparse"]
            features["bags"] = bags_of_tokens(ids, own, sparse.dim, sparse.shift, sparse.normalised)
        features.pop("word_embeddings", None)
        return features

    def _of_queries(self, features: Mapping[str, Any]) -> bool:
        task = features.get("task")
        if task is None and self.multi is not None and self.multi.weigh is not None:
            raise BadInput("the batch has no task, but query tokens are weighted; expected task 'query' or 'document'")
        return bool(task == "query")

    def _words(self, embeddings: Tensor) -> Tensor:
        """The embeddings of the vocabulary; T5 has a few more embeddings than tokens."""
        sparse = self.description.sparse
        size = sparse.shift + sparse.dim if sparse is not None else len(embeddings)
        return embeddings if len(embeddings) == size else embeddings[:size]

    def get_embedding_dimension(self) -> int:
        """Dimension of the dense vectors."""
        return self.description.dim

    def get_config_dict(self) -> dict[str, Any]:
        """The description."""
        return self.description.model_dump(mode="json", by_alias=True)

    def on_model_ready(self, model: Any) -> None:
        """Give the backbone of this stack the description, which says how to tokenise texts."""
        for stack in stacks_of(model).values():
            if stack.heads is self:
                stack.backbone.read_as(self.description)

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write description and weights."""
        self.save_config(output_path)
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.state_dict().items()}
        save_file(weights, Path(output_path) / WEIGHTS_FILE)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> "Heads":
        """Load the heads of a model on disk or on the hub."""
        where = {name: options.get(name) for name in ("token", "cache_folder", "revision")}
        where |= {"subfolder": subfolder, "local_files_only": options.get("local_files_only", False)}
        files = [
            cls.load_file_path(model_name_or_path, filename=name, **where) for name in (cls.config_file_name, WEIGHTS_FILE)
        ]
        if None in files:
            raise BadModel(
                f"{model_name_or_path}/{subfolder} has no {cls.config_file_name} or no {WEIGHTS_FILE}; expected both files of "
                "a saved model: save it again"
            )
        description = read_description(Path(files[0]))
        weights = load_file(files[1])
        heads = cls(description, state_size(weights, description), biased(weights))
        load_weights(heads, weights, f"{model_name_or_path}/{subfolder}/{WEIGHTS_FILE}")
        return heads


def dense_head(description: ModelDescription, hidden: int, bias: bool) -> DenseHeadModule:
    """The dense head of a description."""
    described = description.dense
    if described is None:
        return DenseHeadModule(description.pooling)
    linear = nn.Linear(hidden, description.dim, bias=bias) if described.projection else None
    return DenseHeadModule(description.pooling, described.normalised, linear, described.projection == "tanh")


def state_size(weights: Mapping[str, Tensor], description: ModelDescription) -> int:
    """The size of the token states that these weights expect; without weights, the model dimension."""
    return next((tensor.shape[-1] for name, tensor in weights.items() if name.endswith(".weight")), description.dim)


def biased(weights: Mapping[str, Tensor]) -> list[Head]:
    """The heads whose linear layer has a bias among these weights."""
    heads: tuple[Head, ...] = ("dense", "multi")
    return [head for head in heads if f"{head}.linear.bias" in weights]


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str) -> None:
    """Load weights into a module; missing, unexpected and misshapen tensors are reported by name."""
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    actual = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if expected != actual:
        names = sorted(name for name in expected.keys() | actual.keys() if expected.get(name) != actual.get(name))
        faults = ", ".join(f"{name} {actual.get(name, 'missing')} for {expected.get(name, 'none')}" for name in names[:5])
        raise BadModel(f"{where} has {faults}{' …' if len(names) > 5 else ''}; expected the shapes after each 'for'")
    module.load_state_dict(dict(weights))


def read_description(file: Path) -> ModelDescription:
    """Read and validate the description of a saved model."""
    try:
        return ModelDescription.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise BadModel(f"{file}: {first_error(error)}; correct it or save the model again") from error


@dataclass(frozen=True)
class Stack:
    """A tower: a backbone and its heads."""

    backbone: Backbone
    heads: Heads


def stacks_of(model: SentenceTransformer) -> dict[str, Stack]:
    """The towers of a model by task, `query` and `document`; both are the same object if the model has one tower."""
    modules = list(model.children())
    routes = modules[0].sub_modules if modules and isinstance(modules[0], Router) else {}
    stacks = {task: list(routes[task]) if task in routes else modules for task in ("query", "document")}
    for stack in stacks.values():
        if len(stack) != 2 or not isinstance(stack[0], Backbone) or not isinstance(stack[1], Heads):
            raise BadModel(
                f"the model consists of {[type(module).__name__ for module in stack]}; expected a Backbone and Heads: "
                "create it with build_model or load_checkpoint"
            )
    return {task: Stack(*stack) for task, stack in stacks.items()}


def description_of(model: SentenceTransformer) -> ModelDescription:
    """The description of a model; its towers share it."""
    return stacks_of(model)["document"].heads.description


def assemble(query: Stack, document: Stack | None = None) -> SentenceTransformer:
    """A model with one tower, or with separate towers for queries and documents."""
    if document is None:
        return SentenceTransformer(modules=[query.backbone, query.heads])
    router = Router.for_query_document([query.backbone, query.heads], [document.backbone, document.heads])
    return SentenceTransformer(modules=[router])


def load_model(path: Path) -> SentenceTransformer:
    """Load a model saved by `save_pretrained` onto the default device.

    `SentenceTransformer(path)` would need `trust_remote_code`, which lets a folder execute its own code.
    """
    kinds = {name_of(kind): kind for kind in (Backbone, Heads)}
    try:
        modules = json.loads((path / MODULES_FILE).read_text(encoding="utf-8"))
        types = [module["type"] for module in modules]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadModel(f"{path / MODULES_FILE} cannot be read ({error}); expected a model saved by trilens") from error
    if types == [*kinds]:
        return SentenceTransformer(
            modules=[kinds[module["type"]].load(str(path), subfolder=module["path"]) for module in modules]
        )
    if len(types) == 1 and types[0].endswith(".Router"):
        return SentenceTransformer(modules=[Router.load(str(path), subfolder=modules[0]["path"], module_classes=kinds)])
    raise BadModel(f"{path} consists of {types}; expected {[*kinds]} or a Router: load_checkpoint reads other kinds")


def name_of(kind: type) -> str:
    """The name of a class in `modules.json`."""
    return f"{kind.__module__}.{kind.__name__}"


def is_ours(path: Path) -> bool:
    """Whether a folder holds a model of these classes."""
    files = [path / MODULES_FILE, path / "router_config.json"]
    return any(file.is_file() and name_of(Heads) in file.read_text(encoding="utf-8") for file in files)
