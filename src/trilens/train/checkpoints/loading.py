"""Which kind of checkpoint it is, and the model that it becomes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sentence_transformers import SentenceTransformer

from trilens.encode.folder import ModelDescription, first_fault
from trilens.errors import BadInput, BadModel
from trilens.train.backbone import Backbone
from trilens.train.checkpoints import late, m3, plain, towers
from trilens.train.checkpoints.files import find_checkpoint, read_json, trained_stack
from trilens.train.model import Stack, assemble, is_ours, load_model, stacks_of

Loader = Callable[[Path, str, Mapping[str, Any]], tuple[Stack, Stack | None]]

# Of those that recognise a folder the first reads it: BGE-M3 and XTR are also sentence-transformers, and all are encoders.
LOADERS: tuple[tuple[Callable[[Path], bool], Loader], ...] = (
    (m3.recognises, m3.load),
    (towers.recognises, towers.load),
    (late.recognises_colbert, late.load_colbert),
    (late.recognises_xtr, late.load_xtr),
    (plain.recognises, plain.load),
)
READ_ONLY = ("heads", "dim", "pooling", "dense", "multi", "sparse", "lexical")


def load_checkpoint(
    source: str | Path, documents: str | Path | None = None, changes: Mapping[str, Any] | None = None
) -> SentenceTransformer:
    """A trainable model of a published checkpoint: a folder, a file or an id of the hub.

    Recognised are models that trilens trained, sentence-transformers, BGE-M3, ColBERT, XTR and ColXTR, VDR and DPR of vsearch,
    DPR of Facebook, and encoders of Hugging Face, which get a dense head. DPR is published in two parts: `documents` is the
    encoder of passages, looked for beside that of questions when it is not given. `changes` are fields of `ModelDescription`
    that shall differ from what the checkpoint says, such as {"max_doc_tokens": 128}.
    """
    path = find_checkpoint(source)
    if path.is_dir() and is_ours(path):
        return redescribed(load_model(path), changes or {})
    if documents is not None or towers.is_half(path):
        return towers.load_halves(path, str(source), documents, changes or {})
    if path.is_file():
        return assemble(*towers.load_file(path, str(source), changes or {}))
    for recognises, load in LOADERS:
        if recognises(path):
            return assemble(*load(path, str(source), changes or {}))
    if not read_json(path / "config.json").get("model_type"):
        raise BadModel(
            f"{source} has no config.json with a model_type; expected a checkpoint of sentence-transformers, BGE-M3, ColBERT, "
            "XTR, vsearch, DPR or an encoder of Hugging Face"
        )
    return assemble(trained_stack(Backbone(str(path)), str(source), ["dense"], {}, changes or {}, {}))


def redescribed(model: SentenceTransformer, changes: Mapping[str, Any]) -> SentenceTransformer:
    """A model that reads texts otherwise; its heads stay as they are."""
    if wrong := [field for field in changes if field in READ_ONLY]:
        raise BadInput(f"changes has {wrong}; expected prefixes and lengths only, since the heads of the model are trained")
    for stack in stacks_of(model).values() if changes else ():
        try:
            described = ModelDescription.model_validate(stack.heads.description.model_dump() | dict(changes))
        except ValidationError as error:
            raise BadInput(f"changes cannot be made: {first_fault(error)}") from error
        stack.heads.description = described
        stack.backbone.read_as(described)
    return model
