"""`build_model`: a trainable model from any Hugging Face encoder, with heads that start sensibly."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import ValidationError
from sentence_transformers import SentenceTransformer
from torch import Generator, Tensor, nn

from trilens.encode.families import family_of
from trilens.encode.folder import Head, ModelDescription, first_fault
from trilens.encode.terms import Terms
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.export.fit import RIDGE, SOFTPLUS_ONE
from trilens.train.backbone import Backbone
from trilens.train.heads import SparseHead
from trilens.train.layers import keep_layers
from trilens.train.model import Heads, Stack, assemble, biased, stacks_of

Towers = Literal["shared", "separate"]

NO_WORD = re.compile(r"\[(unused\d+|PAD|UNK|CLS|SEP|MASK)\]|<(s|pad|/s|unk|mask)>")
MULTI_DIM = 128
# A multi head of a family that has none: with these, a text's own words have vectors and nothing else.
UNTRAINED_MULTI = {"normalised": True, "skip_punctuation": True, "skip_special": True}
SPARSE_TOP = 768
# Enough to know the mean of the states; a fraction of a second.
SAMPLE_TEXTS, SAMPLE_TOKENS, SAMPLE_WORDS = 32, 14, 4096
# All tokens have about this weight at first: a ReLU that starts below zero gets no gradient.
LEXICAL_BIAS, LEXICAL_SPREAD = 0.1, 0.02
# Deviation of what a GELU is first given: small enough for it to be nearly linear, so that the transform changes little.
TRANSFORM_SPREAD = 0.3


def build_model(
    backbone: str | Path,
    heads: Sequence[Head] = ("dense",),
    towers: Towers = "shared",
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
    layers: int | None = None,
) -> SentenceTransformer:
    """A model of a Hugging Face id or folder with untrained heads; of its layers the first `layers` (None: all).

    Prefixes, pooling, lengths and the like are those of the model's family (`encode/families.py`), as far as `changes`,
    fields of `ModelDescription`, does not say otherwise; what it says of a head, such as {"multi": {"dim": 96}}, changes
    single fields of it. With `separate` towers queries and documents have backbones and heads of their own, equal at first.
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
    """A trained model with these heads as well: those that it has stay as they are, others begin untrained."""
    query, document = (stacks_of(model)[task] for task in ("query", "document"))
    first = _with_heads(query, heads, changes or {}, seed)
    if document.backbone is query.backbone:
        return assemble(first)
    return assemble(first, _with_heads(document, heads, changes or {}, seed))


def _with_heads(stack: Stack, heads: Sequence[Head], changes: Mapping[str, Any], seed: int) -> Stack:
    old = stack.heads
    known = old.description.model_dump(exclude={"heads"}, exclude_none=True)
    wanted = list(dict.fromkeys([*old.description.heads, *heads]))
    description = describe(stack.backbone, old.description.source, wanted, known | dict(changes))
    stack.backbone.read_as(description)
    require_readable(stack.backbone, description)
    made = Heads(description, old.hidden, biased(old.state_dict()))
    start_heads(made, stack.backbone, Generator().manual_seed(seed))
    lost = made.load_state_dict(old.state_dict(), strict=False).unexpected_keys
    if lost:
        raise BadInput(f"the heads have trained {', '.join(lost)}, which the description leaves out; expected a place for each")
    return Stack(stack.backbone, made)


def open_backbone(source: str, layers: int | None = None) -> Backbone:
    """The encoder of a folder or of the hub; of its layers the first `layers` (None: all)."""
    if source.startswith(("/", ".", "~")) and not Path(source).is_dir():
        raise BadModel(f"{source} is no folder; expected a Hugging Face model: check the path, or give an id of the hub")
    try:
        backbone = Backbone(source)
    except OSError as error:
        told = " ".join(str(error).split())[:200]
        raise BadModel(f"{source} is neither a folder nor a model that the hub has, or could be asked for ({told})") from error
    if layers is not None:
        keep_layers(backbone.model, layers)
    return backbone


def build_stack(backbone: Backbone, source: str, heads: Sequence[Head], changes: Mapping[str, Any], seed: int = 0) -> Stack:
    """One tower with untrained heads."""
    description = describe(backbone, source, heads, changes)
    backbone.read_as(description)
    require_readable(backbone, description)
    made = Heads(description, backbone.get_embedding_dimension(), ["dense"] if "dense" in heads else ())
    start_heads(made, backbone, Generator().manual_seed(seed))
    return Stack(backbone, made)


def describe(backbone: Backbone, source: str, heads: Sequence[Head], changes: Mapping[str, Any]) -> ModelDescription:
    """The description of a model with these heads: what `changes` says, else its family."""
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
    usual: dict[str, dict[str, Any]] = {
        "dense": {},
        "multi": family.multi.model_dump() if family.multi else {"dim": min(MULTI_DIM, hidden), **UNTRAINED_MULTI},
        "lexical": {"dim": size},
    }
    if "sparse" in heads:
        sparse = {"top": SPARSE_TOP, "normalised": False} | (family.sparse.model_dump() if family.sparse else {})
        shift = {"shift": first_word(backbone.tokens)} | dict(changes.get("sparse") or {})
        usual["sparse"] = sparse | {"shift": shift["shift"], "dim": size - shift["shift"]}
    for field, value in changes.items():
        if field in usual and value is not None:
            fields[field] = usual[field] | dict(value)
        elif value is not None:
            fields[field] = value
    for head in heads:
        if head in usual and head != "dense":
            fields.setdefault(head, usual[head])
    try:
        description = ModelDescription.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"a model of {source} cannot be described so: {first_fault(error)}") from error
    return description


def require_readable(backbone: Backbone, description: ModelDescription) -> None:
    """Refuse a description that the tokenizer or the encoder cannot follow."""
    Terms(backbone.tokens, description)
    for side, tokens in (("query", description.max_query_tokens), ("doc", description.max_doc_tokens)):
        backbone.reading("query" if side == "query" else "doc", fill=True)
        if backbone.longest is not None and tokens > backbone.longest:
            raise BadInput(f"max_{side}_tokens is {tokens}; expected at most {backbone.longest}, which the encoder reads")
    if len(backbone.model.get_input_embeddings().weight) < backbone.tokens.size:
        raise BadModel(
            f"{description.source} has {backbone.tokens.size:,} tokens and fewer word embeddings; expected one for each token"
        )
    if "dense" in description.heads and description.dim != backbone.get_embedding_dimension() and not projected(description):
        raise BadInput(
            f"dim is {description.dim}; expected {backbone.get_embedding_dimension()}, the size of the token states, or a "
            "projection in dense"
        )


def projected(description: ModelDescription) -> bool:
    """Whether dense vectors have other dimensions than states."""
    return description.dense is not None and description.dense.projection is not None


def first_word(tokens: Tokens) -> int:
    """The first id that stands for a word: 999 in BERT's uncased vocabulary, after special and unused tokens."""
    ids = range(tokens.size)
    return next((id_ for id_ in ids if not tokens.special[id_] and not NO_WORD.fullmatch(tokens.raw(id_))), 0)


def start_heads(heads: Heads, backbone: Backbone, generator: Generator) -> None:
    """Weights that an untrained head can learn from.

    The projection of token vectors keeps as many directions as it can. The products of the sparse head have mean 0, since
    what all states have in common would make the same words active everywhere, and deviation 1, since elu(x) + 1 tells
    values below -3 no longer apart. Its transform begins as next to none: states of trained encoders lie near the embeddings of
    their own words already, nearer than a regression on texts of random words brings them. Tokens of queries weigh 1.
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
            start_sparse(heads.sparse, sample_states(backbone, heads.sparse.shift, generator), words, generator)


def start_sparse(head: SparseHead, states: Tensor, words: Tensor, generator: Generator, own: Tensor | None = None) -> None:
    """See `start_heads`; `states` (tokens, hidden) of some texts, `words` (words, hidden) the embeddings.

    `own` (tokens): the word that each state stands for. With it the transform begins as the regression that brings states
    nearest to the embeddings of their own words.
    """
    if head.transform is not None:
        matrix, middle = (torch.eye(len(states[0])), 0 * states[0]) if own is None else towards_own(states, words, own)
        scale = TRANSFORM_SPREAD / ((states - middle) @ matrix).std().clamp(min=1e-6)
        head.transform.weight.copy_(matrix.T * scale)
        head.transform.bias.copy_(-(middle @ matrix) * scale)
        states = nn.functional.gelu(head.transform(states))
    states = nn.functional.layer_norm(states, states.shape[1:])
    words = words[torch.randperm(len(words), generator=generator)[:SAMPLE_WORDS]]
    mean = states.mean(0)
    gain = 1 / ((states - mean) @ words.T).std().clamp(min=1e-6)
    head.norm.weight.fill_(gain)
    head.norm.bias.copy_(-mean * gain)


def towards_own(states: Tensor, words: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The matrix that brings states, less their mean, nearest to the directions of their own words; and the mean.

    A word that stands there n times counts √n times, so that a few frequent ones do not decide.
    """
    counts = torch.bincount(own, minlength=len(words))
    weights = counts[own].rsqrt()[:, None]
    middle = states.mean(0)
    rows = states - middle
    moments = (rows * weights).T @ rows
    ridge = RIDGE * moments.trace() / len(moments) * torch.eye(len(moments))
    wanted = nn.functional.normalize(words[own] - words.mean(0), dim=1)
    return torch.linalg.solve(moments + ridge, (rows * weights).T @ wanted), middle


def sample_states(backbone: Backbone, shift: int, generator: Generator) -> Tensor:
    """Token states of texts of random words, (tokens, hidden)."""
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
