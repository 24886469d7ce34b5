"""`build_model`: a trainable model from a Hugging Face encoder, with initialised heads."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from sentence_transformers import SentenceTransformer
from torch import Generator, Tensor, nn

from trilens.encode.families import family_of
from trilens.encode.folder import Head, ModelDescription
from trilens.encode.hub import find_model
from trilens.encode.terms import TermSpace
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel, first_error
from trilens.export.fit import RIDGE, SOFTPLUS_ONE
from trilens.train.backbone import Backbone
from trilens.train.heads import SparseHeadModule
from trilens.train.layers import keep_layers
from trilens.train.model import Heads, Stack, assemble, biased, stacks_of

Towers = Literal["shared", "separate"]

NO_WORD = re.compile(r"\[(unused\d+|PAD|UNK|CLS|SEP|MASK)\]|<(s|pad|/s|unk|mask)>")
MULTI_DIM = 128
# Default multi head of families without one: vectors for the text's own words only.
UNTRAINED_MULTI = {"normalised": True, "skip_punctuation": True, "skip_special": True}
SPARSE_TOP = 768
# Enough to estimate the mean of the states, in a fraction of a second.
SAMPLE_TEXTS, SAMPLE_TOKENS, SAMPLE_WORDS = 32, 14, 4096
# Initial token weights are close to this: a ReLU that starts below zero gets no gradient.
LEXICAL_BIAS, LEXICAL_SPREAD = 0.1, 0.02
# Initial standard deviation of the GELU's input: small enough to be nearly linear, so that the transform changes little.
TRANSFORM_SPREAD = 0.3


def build_model(
    backbone: str | Path,
    heads: Sequence[Head] = ("dense",),
    towers: Towers = "shared",
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
    layers: int | None = None,
) -> SentenceTransformer:
    """A model from a Hugging Face id or folder, with untrained heads and the first `layers` layers (None: all).

    Prefixes, pooling, lengths etc. are those of the model's family (`encode/families.py`), unless overridden by `changes`,
    fields of `ModelDescription`; for a head, such as {"multi": {"dim": 96}}, single fields are overridden. With `separate`
    towers, queries and documents have their own backbone and heads, initialised equally.
    """
    if towers not in ("shared", "separate"):
        raise BadInput(f"towers is {towers!r}; expected 'shared' or 'separate'")
    query = build_stack(open_backbone(str(backbone), layers), str(backbone), heads, changes or {}, seed)
    if towers == "shared":
        return assemble(query)
    return assemble(query, build_stack(open_backbone(str(backbone), layers), str(backbone), heads, changes or {}, seed))


def with_heads(
    model: SentenceTransformer, heads: Sequence[Head], changes: Mapping[str, Any] | None = None, seed: int = 0
) -> SentenceTransformer:
    """A trained model with additional untrained heads; its existing heads are kept."""
    query, document = (stacks_of(model)[task] for task in ("query", "document"))
    first = _with_heads(query, heads, changes or {}, seed)
    if document.backbone is query.backbone:
        return assemble(first)
    return assemble(first, _with_heads(document, heads, changes or {}, seed))


def _with_heads(stack: Stack, heads: Sequence[Head], changes: Mapping[str, Any], seed: int) -> Stack:
    old = stack.heads
    described = old.description.model_dump(exclude={"heads"}, exclude_none=True, by_alias=True)
    all_heads = list(dict.fromkeys([*old.description.heads, *heads]))
    description = describe(stack.backbone, old.description.source, all_heads, described | dict(changes))
    stack.backbone.read_as(description)
    require_readable(stack.backbone, description)
    extended = Heads(description, old.hidden, biased(old.state_dict()))
    init_heads(extended, stack.backbone, Generator().manual_seed(seed))
    lost = extended.load_state_dict(old.state_dict(), strict=False).unexpected_keys
    if lost:
        raise BadInput(f"the description has no place for the trained weights {', '.join(lost)}; expected one for each")
    return Stack(stack.backbone, extended)


def open_backbone(source: str, layers: int | None = None) -> Backbone:
    """Load the encoder from a folder or the hub, with its first `layers` layers (None: all)."""
    if not (path := find_model(source)).is_dir():
        raise BadModel(f"{source} is not a folder; expected a Hugging Face model: check the path, or give a hub id")
    backbone = Backbone(str(path))
    if layers is not None:
        keep_layers(backbone.model, layers)
    return backbone


def build_stack(backbone: Backbone, source: str, heads: Sequence[Head], changes: Mapping[str, Any], seed: int = 0) -> Stack:
    """A tower with untrained heads."""
    description = describe(backbone, source, heads, changes)
    backbone.read_as(description)
    require_readable(backbone, description)
    untrained = Heads(description, backbone.get_embedding_dimension(), ["dense"] if "dense" in heads else ())
    init_heads(untrained, backbone, Generator().manual_seed(seed))
    return Stack(backbone, untrained)


def describe(backbone: Backbone, source: str, heads: Sequence[Head], changes: Mapping[str, Any]) -> ModelDescription:
    """The description of a model with these heads: `changes`, otherwise the defaults of its family."""
    family, hidden, size = family_of(source), backbone.get_embedding_dimension(), backbone.tokens.size
    longest = backbone.longest or max(family.max_query_tokens, family.max_doc_tokens)
    fields: dict[str, Any] = {
        "name": Path(source).name,
        "heads": list(heads),
        "dim": hidden,
        "pooling": family.pooling,
        "query_prefix": family.query_prefix,
        "doc_prefix": family.doc_prefix,
        "max_query_tokens": min(family.max_query_tokens, longest),
        "max_doc_tokens": min(family.max_doc_tokens, longest),
        "licence": "unknown",
        "source": source,
    }
    defaults: dict[str, dict[str, Any]] = {
        "dense": {},
        "multi": family.multi.model_dump() if family.multi else {"dim": min(MULTI_DIM, hidden), **UNTRAINED_MULTI},
        "lexical": {"dim": size},
    }
    if "sparse" in heads:
        sparse = {"top": SPARSE_TOP, "normalised": False} | (family.sparse.model_dump() if family.sparse else {})
        shift = {"shift": first_word(backbone.tokens)} | dict(changes.get("sparse") or {})
        defaults["sparse"] = sparse | {"shift": shift["shift"], "dim": size - shift["shift"]}
    for field, value in changes.items():
        if field in defaults and value is not None:
            fields[field] = defaults[field] | dict(value)
        elif value is not None:
            fields[field] = value
    for head in heads:
        if head in defaults and head != "dense":
            fields.setdefault(head, defaults[head])
    try:
        description = ModelDescription.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"the description of a model of {source} is invalid: {first_error(error)}") from error
    return description


def require_readable(backbone: Backbone, description: ModelDescription) -> None:
    """Require that tokenizer and encoder support the description."""
    TermSpace(backbone.tokens, description)
    for side, tokens in (("query", description.max_query_tokens), ("doc", description.max_doc_tokens)):
        backbone.reading("query" if side == "query" else "doc", fill=True)
        if backbone.longest is not None and tokens > backbone.longest:
            raise BadInput(f"max_{side}_tokens is {tokens}; expected at most {backbone.longest}, the encoder's positions")
    if len(backbone.model.get_input_embeddings().weight) < backbone.tokens.size:
        raise BadModel(
            f"{description.source} has {backbone.tokens.size:,} tokens but fewer word embeddings; expected one for each token"
        )
    if "dense" in description.heads and description.dim != backbone.get_embedding_dimension() and not projected(description):
        raise BadInput(
            f"dim is {description.dim}; expected {backbone.get_embedding_dimension()}, the size of the token states, or a "
            "projection in dense"
        )


def projected(description: ModelDescription) -> bool:
    """Whether the dense head projects to another dimension."""
    return description.dense is not None and description.dense.projection is not None


def first_word(tokens: Tokens) -> int:
    """The first id of a word, after special and unused tokens: 999 in BERT's uncased vocabulary."""
    ids = range(tokens.size)
    return next((id_ for id_ in ids if not tokens.special[id_] and not NO_WORD.fullmatch(tokens.raw(id_))), 0)


def init_heads(heads: Heads, backbone: Backbone, generator: Generator) -> None:
    """Initialise heads so that they can be trained.

    The projection of token vectors is orthogonal. The products of the sparse head have mean 0, because the common component of
    all states would activate the same words everywhere, and standard deviation 1, because elu(x) + 1 is flat below -3. Its
    transform is close to the identity: states of trained encoders are already near the embeddings of their own words, nearer
    than a regression on random words would bring them. Query token weights are 1.
    """
    with torch.no_grad():
        for linear in (heads.multi and heads.multi.linear, heads.dense and heads.dense.linear):
            if linear is not None:
                nn.init.orthogonal_(linear.weight, generator=generator)
                if linear.bias is not None:
                    linear.bias.zero_()
        if heads.multi is not None and heads.multi.weigh is not None:
            heads.multi.weigh.weight.zero_()
            heads.multi.weigh.bias.fill_(SOFTPLUS_ONE)
        if heads.lexical is not None:
            scale = LEXICAL_SPREAD / heads.hidden**0.5
            heads.lexical.linear.weight.normal_(0, scale, generator=generator)
            heads.lexical.linear.bias.fill_(LEXICAL_BIAS)
        if heads.sparse is not None:
            words = backbone.model.get_input_embeddings().weight[heads.sparse.shift :]
            init_sparse(heads.sparse, sample_states(backbone, heads.sparse.shift, generator), words, generator)


def init_sparse(head: SparseHeadModule, states: Tensor, words: Tensor, generator: Generator, own: Tensor | None = None) -> None:
    """Initialise a sparse head as described in `init_heads`; `states` (tokens, hidden), `words` (words, hidden) embeddings.

    `own` (tokens): the word of each state. If given, the transform is initialised by the regression of the states on the
    embeddings of their own words.
    """
    if head.transform is not None:
        matrix, centre = (
            (torch.eye(len(states[0])), 0 * states[0]) if own is None else regression_to_own_words(states, words, own)
        )
        scale = TRANSFORM_SPREAD / ((states - centre) @ matrix).std().clamp(min=1e-6)
        head.transform.weight.copy_(matrix.T * scale)
        head.transform.bias.copy_(-(centre @ matrix) * scale)
        states = nn.functional.gelu(head.transform(states))
    states = nn.functional.layer_norm(states, states.shape[1:])
    words = words[torch.randperm(len(words), generator=generator)[:SAMPLE_WORDS]]
    mean = states.mean(0)
    gain = 1 / ((states - mean) @ words.T).std().clamp(min=1e-6)
    head.norm.weight.fill_(gain)
    head.norm.bias.copy_(-mean * gain)


def regression_to_own_words(states: Tensor, words: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The regression matrix from centred states to the directions of their own words, and the mean of the states.

    A word with n occurrences is weighted √n in total, so that a few frequent words do not dominate.
    """
    counts = torch.bincount(own, minlength=len(words))
    weights = counts[own].rsqrt()[:, None]
    centre = states.mean(0)
    rows = states - centre
    moments = (rows * weights).T @ rows
    ridge = RIDGE * moments.trace() / len(moments) * torch.eye(len(moments))
    targets = nn.functional.normalize(words[own] - words.mean(0), dim=1)
    return torch.linalg.solve(moments + ridge, (rows * weights).T @ targets), centre


def sample_states(backbone: Backbone, shift: int, generator: Generator) -> Tensor:
    """Token states of random-word texts, (tokens, hidden)."""
    tokens, training = backbone.tokens, backbone.training
    words = torch.randint(shift, tokens.size, (SAMPLE_TEXTS, SAMPLE_TOKENS), generator=generator)
    ends = [torch.tensor(ids, dtype=torch.int64).expand(SAMPLE_TEXTS, -1) for ids in (tokens.opening, tokens.closing)]
    ids = torch.cat([ends[0], words, ends[1]], 1)
    backbone.eval()
    try:
        states = backbone({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["token_embeddings"]
    finally:
        backbone.train(training)
    return states.flatten(0, 1)
