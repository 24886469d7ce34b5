"""`save_head`: one head of a model as a plain sentence-transformers model, which needs neither trilens nor remote code.

`modules.json` names only classes of sentence-transformers: the dense head becomes a `SentenceTransformer`, the multi head a
`MultiVectorEncoder`. What their modules cannot express is refused, and the result is compared with the original.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Normalize, Router, Transformer
from sentence_transformers.base.modules.dense import Dense
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import AddedToken

from trilens.encode.encoder import Encoded
from trilens.encode.folder import Head, ModelDescription, MultiHead
from trilens.errors import BadInput, BadModel
from trilens.train.backbone import Backbone, quietly
from trilens.train.encoder import TorchEncoder
from trilens.train.model import Stack, description_of, stacks_of

PlainHead = Literal["dense", "multi"]
CLASSES: dict[PlainHead, Any] = {"dense": SentenceTransformer, "multi": MultiVectorEncoder}

# Why a head is none of sentence-transformers.
INEXPRESSIBLE: dict[Head, str] = {
    "sparse": "its weights are elu(x) + 1, and SparseEncoder has log(1 + relu(x)) only",
    "lexical": "it weights the tokens of the text, and SparseEncoder has no module that does",
}
TOKENIZER_CONFIG = "tokenizer_config.json"
ALIKE = 1e-4  # largest difference between the original and the plain model in any dimension
SAMPLES = [
    "solar panels",
    "How does heat move through a wall?",
    "The cat sat, quietly; on the mat. " * 20,
    "Ça va? 東京 is 1,234.",
]


def save_head(model: SentenceTransformer, head: Head | None, folder: Path) -> PlainHead:
    """Write the model with one head to a folder; returns the head, by default the only one of the model."""
    plain = _expressible(description_of(model), head)
    towers = stacks_of(model)
    with TemporaryDirectory(prefix="trilens-plain-") as scratch, quietly():
        modules = {task: _modules(stack, plain, Path(scratch) / task) for task, stack in _distinct(towers).items()}
        joined = (
            modules["document"] if len(modules) == 1 else [Router.for_query_document(modules["query"], modules["document"])]
        )
        saved = CLASSES[plain](modules=joined, prompts=_prompts(description_of(model)), device="cpu")
        saved.save_pretrained(str(folder), create_model_card=False)
        for config in folder.rglob(TOKENIZER_CONFIG):
            _keep_tokenizer(config, saved.tokenizer.model_input_names)
        _compare(model, plain, CLASSES[plain](str(folder), device="cpu", local_files_only=True))
    return plain


def _expressible(description: ModelDescription, head: Head | None) -> PlainHead:
    """The head to save; refuses what sentence-transformers cannot express."""
    if head is None:
        if len(description.heads) > 1:
            raise BadInput(f"the model has the heads {', '.join(description.heads)}; expected --head with one of them")
        head = description.heads[0]
    if head not in description.heads:
        raise BadInput(f"the model has no head {head!r}; expected one of {', '.join(description.heads)}")
    multi, reason = description.multi, INEXPRESSIBLE.get(head)
    if head == "multi" and multi is not None and multi.weighted:
        reason = "it weights the tokens of queries, and MultiVectorEncoder has no module that does"
    if head == "multi" and multi is not None and multi.closing_mean:
        reason = "its last vector is a mean, and MultiVectorEncoder has no module for that"
    if head == "dense" and multi is not None and multi.query_tokens and multi.attend_to_mask:
        reason = "it attends to the mask tokens that queries are filled up with, and SentenceTransformer adds none"
    if reason:
        raise BadInput(
            f"sentence-transformers cannot express the head {head!r}: {reason}; export it as a model folder of trilens, "
            "without --format"
        )
    return "dense" if head == "dense" else "multi"


def _distinct(towers: dict[str, Stack]) -> dict[str, Stack]:
    """The towers by task; only `document` if both are the same."""
    return towers if towers["query"].backbone is not towers["document"].backbone else {"document": towers["document"]}


def _modules(stack: Stack, head: PlainHead, scratch: Path) -> list[nn.Module]:
    """The modules of a tower."""
    description, multi, dense = stack.heads.description, stack.heads.multi, stack.heads.dense
    encoder = _encoder(stack.backbone, description, scratch, fill=head == "multi")
    if head == "dense" and dense is not None:
        modules: list[nn.Module] = [encoder, Pooling(stack.heads.hidden, dense.pooling)]
        if dense.linear is not None:
            modules.append(_projection(dense.linear, nn.Tanh() if dense.tanh else nn.Identity(), "sentence_embedding"))
        return [*modules, Normalize()] if dense.normalised else modules
    assert multi is not None and description.multi is not None, "the head exists"
    modules = [encoder, _projection(multi.linear, nn.Identity(), "token_embeddings")]
    if multi.normalised:
        modules.append(Normalize("token_embeddings"))
    return [*modules, *_masks(stack.backbone, description.multi)]


def _encoder(backbone: Backbone, description: ModelDescription, scratch: Path, fill: bool) -> Transformer:
    """The encoder without our way of tokenising, which lengths, prompts and added tokens replace."""
    backbone.save(str(scratch))
    _keep_tokenizer(scratch / TOKENIZER_CONFIG, backbone.tokenizer.model_input_names)
    multi = description.multi
    expansion = None
    if fill and multi is not None and multi.query_tokens:
        expansion = {
            "strategy": "min",
            "attend": multi.attend_to_mask,
            "token": multi.mask_token,
            "length": multi.query_tokens,
        }
    encoder = Transformer(
        str(scratch),
        max_seq_length=max(description.max_query_tokens, description.max_doc_tokens),
        query_length=description.max_query_tokens,
        document_length=description.max_doc_tokens,
        query_expansion=expansion,
    )
    markers = [AddedToken(marker, normalized=False, rstrip=True) for marker in _markers(multi) if marker]
    encoder.tokenizer.add_tokens(markers)
    return encoder


def _keep_tokenizer(config: Path, input_names: list[str]) -> None:
    """Have `tokenizer.json` read as it is: other classes of tokenizers replace parts of it by those of their own."""
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": list(input_names)}
    config.write_text(json.dumps(json.loads(config.read_text(encoding="utf-8")) | settings, indent=2), encoding="utf-8")


def _projection(linear: nn.Linear, activation: nn.Module, name: str) -> Dense:
    made = Dense(linear.in_features, linear.out_features, linear.bias is not None, activation, module_input_name=name)
    made.linear.load_state_dict(linear.state_dict())
    return made


def _masks(backbone: Backbone, multi: MultiHead) -> list[MultiVectorMask]:
    """Which tokens keep a vector: special tokens are left out on both sides, punctuation in documents."""
    tokens = backbone.tokens
    left_out = [*tokens.opening, *tokens.closing] if multi.skip_special else tokens.opening if multi.skip_first else []
    masks = []
    if left_out:
        masks.append(MultiVectorMask([tokens.raw(id_) for id_ in left_out], skiplist_tasks=["query", "document"]))
    if multi.skip_punctuation:
        marks = [tokens.raw(int(id_)) for id_ in np.flatnonzero(tokens.punctuation)]
        masks.append(MultiVectorMask([mark for mark in marks if mark not in _markers(multi)]))
    return masks or [MultiVectorMask()]


def _markers(multi: MultiHead | None) -> tuple[str | None, str | None]:
    """The marker tokens of queries and documents."""
    return (None, None) if multi is None else (multi.query_marker, multi.doc_marker)


def _prompts(description: ModelDescription) -> dict[str, str]:
    """The prompts: marker and prefix."""
    prefixes = (description.query_prefix, description.doc_prefix)
    texts = [f"{marker or ''}{prefix}" for marker, prefix in zip(_markers(description.multi), prefixes, strict=True)]
    return dict(zip(("query", "document"), texts, strict=True))


def _compare(model: SentenceTransformer, head: PlainHead, plain: Any) -> None:
    """Require equal representations of a few texts."""
    encoder = TorchEncoder(model, heads=[head])
    sides = ((encoder.encode_queries, plain.encode_query), (encoder.encode_docs, plain.encode_document))
    for original, encode in sides:
        for expected, actual in zip(_rows(original(SAMPLES), head), encode(SAMPLES, show_progress_bar=False), strict=True):
            found = np.asarray(actual, np.float32)
            if found.shape != expected.shape or np.abs(found - expected).max(initial=0) > ALIKE:
                raise BadModel(
                    f"the head {head!r} as a model of sentence-transformers gives other vectors than the original; export it "
                    "as a model folder of trilens, without --format"
                )


def _rows(encoded: Encoded, head: PlainHead) -> list[Any]:
    """The vector, or the token vectors, of each text."""
    if head == "dense":
        assert encoded.dense is not None, "the head was asked for"
        return list(encoded.dense.vectors)
    assert encoded.multi is not None, "the head was asked for"
    return np.split(encoded.multi.vectors, encoded.multi.offsets[1:-1])
