"""`load_checkpoint`: detects the kind of a checkpoint and loads it as a trainable model."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sentence_transformers import SentenceTransformer

from trilens.encode.folder import ModelDescription
from trilens.errors import BadInput, BadModel, first_error
from trilens.export.published import is_colbert, is_dpr_half, is_m3, is_splade, is_vsearch, is_xtr
from trilens.train.backbone import Backbone
from trilens.train.checkpoints import colbert_xtr, dual_encoders, m3, sbert, splade
from trilens.train.checkpoints.files import find_checkpoint, read_json, tensor_names, trained_stack
from trilens.train.model import Stack, assemble, is_ours, load_model, stacks_of

Loader = Callable[[Path, str, Mapping[str, Any]], tuple[Stack, Stack | None]]

# The first loader that recognises a folder reads it: BGE-M3 and XTR are sentence-transformers models too.
LOADERS: tuple[tuple[Callable[[Path, str], bool], Loader], ...] = (
    (lambda folder, _: is_m3(folder), m3.load),
    (lambda folder, _: is_vsearch(folder), dual_encoders.load),
    (lambda folder, _: is_colbert(folder), colbert_xtr.load_colbert),
    (lambda folder, name: is_xtr(folder, name, tensor_names(folder)), colbert_xtr.load_xtr),
    (is_splade, splade.load),
    (lambda folder, _: sbert.recognises(folder), sbert.load),
)
READ_ONLY = ("heads", "dim", "pooling", "dense", "multi", "sparse", "lexical")


def load_checkpoint(
    source: str | Path, documents: str | Path | None = None, changes: Mapping[str, Any] | None = None
) -> SentenceTransformer:
    """Load a published checkpoint, given as a folder, a file or a hub id, as a trainable model.

    Supported are models trained by trilens, sentence-transformers, BGE-M3, ColBERT, XTR and ColXTR, VDR and DPR of vsearch,
    SPLADE, Facebook's DPR, and Hugging Face encoders, which get a dense head. Facebook's DPR is published in two parts:
    `documents` is the passage encoder, by default searched for next to the question encoder. `changes` override fields of
    `ModelDescription`, for example {"max_doc_tokens": 128}.
    """
    path = find_checkpoint(source)
    if path.is_dir() and is_ours(path):
        return redescribed(load_model(path), changes or {})
    if documents is not None or (path.is_dir() and is_dpr_half(path)):
        return dual_encoders.load_halves(path, str(source), documents, changes or {})
    if path.is_file():
        return assemble(*dual_encoders.load_file(path, str(source), changes or {}))
    for recognises, load in LOADERS:
        if recognises(path, str(source)):
            return assemble(*load(path, str(source), changes or {}))
    if not read_json(path / "config.json").get("model_type"):
        raise BadModel(
            f"{source} has no config.json with a model_type; expected a checkpoint of sentence-transformers, BGE-M3, ColBERT, "
            "XTR, vsearch, DPR, SPLADE or a Hugging Face encoder"
        )
    return assemble(trained_stack(Backbone(str(path)), str(source), ["dense"], {}, changes or {}, {}))


def redescribed(model: SentenceTransformer, changes: Mapping[str, Any]) -> SentenceTransformer:
    """Override prefixes and lengths of a trained model; its heads stay unchanged."""
    if fixed := [field for field in changes if field in READ_ONLY]:
        raise BadInput(f"changes has {fixed}; expected prefixes and lengths only, since the heads of the model are trained")
    for stack in stacks_of(model).values() if changes else ():
        try:
            described = ModelDescription.model_validate(stack.heads.description.model_dump(by_alias=True) | dict(changes))
        except ValidationError as error:
            raise BadInput(f"changes do not fit the model: {first_error(error)}") from error
        stack.heads.description = described
        stack.backbone.read_as(described)
    return model
