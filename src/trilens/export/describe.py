"""What `trilens.json` will say: from a trained folder as it is, from a plain encoder by its family and the options given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from trilens.encode.families import UNKNOWN, VDR, Family, family_of
from trilens.encode.folder import Head, LexicalHead, ModelConfig, MultiHead, SparseHead, first_fault
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel
from trilens.export.checkpoint import read_json
from trilens.export.layers import Precision
from trilens.export.source import Source

UNTRAINED_MULTI = {"normalised": True, "skip_punctuation": True, "skip_special": True}
NOT_STATED = "not stated"


@dataclass(frozen=True)
class Options:
    """What was asked for; None leaves it to the model's family, or to the trained folder."""

    precision: Precision = "int8"
    multi: Mapping[str, Any] = field(default_factory=dict)  # fields of `MultiHead`; with `dim` an untrained head is made
    vdr: bool = False
    vocabulary_shift: int | None = None
    lexical: bool = False
    pooling: Literal["mean", "cls"] | None = None
    query_prefix: str | None = None
    doc_prefix: str | None = None
    licence: str | None = None
    source: str | None = None

    @property
    def for_plain(self) -> list[str]:
        """The options given that say something about heads and reading, which a trained folder says itself."""
        given: dict[str, object] = {
            "multi": self.multi,
            "vdr": self.vdr,
            "vocabulary-shift": self.vocabulary_shift is not None,
            "lexical": self.lexical,
            "pooling": self.pooling,
            "query-prefix": self.query_prefix is not None,
            "doc-prefix": self.doc_prefix is not None,
        }
        return [name for name, value in given.items() if value]


def describe(options: Options, name: str, source: Source, dim: int, longest: int | None, tokens: Tokens) -> ModelConfig:
    """The configuration of the folder called `name`, for a backbone of `dim` dimensions that reads `longest` tokens."""
    try:
        if source.heads is not None:
            config = _trained(options, source.heads, dim, longest)
        else:
            config = _plain(options, name, source, dim, longest, tokens)
    except ValidationError as error:
        raise BadInput(f"these options do not go together: {first_fault(error)}") from error
    _check_tokens(config, tokens)
    return config


def _trained(options: Options, heads: Path, dim: int, longest: int | None) -> ModelConfig:
    if given := options.for_plain:
        raise BadInput(f"{heads.parent} has trained heads and says how it reads; leave out --{', --'.join(given)}")
    file = heads / "config.json"
    said = {name: value for name, value in (("licence", options.licence), ("source", options.source)) if value is not None}
    try:
        config = ModelConfig.model_validate(read_json(file) | said | {"precision": options.precision})
    except ValidationError as error:
        raise BadModel(f"{file}: {first_fault(error)}; save the model again") from error
    if config.dim != dim and not (config.dense and config.dense.projection):
        raise BadModel(f"{file} says that dim is {config.dim}; expected {dim}, as the backbone has")
    longer = max(config.max_query_tokens, config.max_doc_tokens)
    if longest is not None and longer > longest:
        raise BadModel(f"{file} has texts of {longer} tokens; expected at most the {longest} positions of the backbone")
    return config


def _plain(options: Options, name: str, source: Source, dim: int, longest: int | None, tokens: Tokens) -> ModelConfig:
    family = family_of(name)
    if family is UNKNOWN:
        family = family_of(source.backbone.resolve().name)
    limits = [limit for limit in (longest, source.longest) if limit is not None]
    multi, sparse = _multi(options, family, dim), _sparse(options, family, tokens.size)
    lexical = LexicalHead(dim=tokens.size) if options.lexical else None
    extra: tuple[tuple[Head, object], ...] = (("multi", multi), ("sparse", sparse), ("lexical", lexical))
    return ModelConfig(
        name=name,
        heads=["dense", *(head for head, described in extra if described is not None)],
        dim=dim,
        pooling=options.pooling or source.pooling or family.pooling,
        query_prefix=family.query_prefix if options.query_prefix is None else options.query_prefix,
        doc_prefix=family.doc_prefix if options.doc_prefix is None else options.doc_prefix,
        max_query_tokens=min([family.max_query_tokens, *limits]),
        max_doc_tokens=min([family.max_doc_tokens, *limits]),
        multi=multi,
        sparse=sparse,
        lexical=lexical,
        precision=options.precision,
        licence=options.licence or NOT_STATED,
        source=options.source or source.backbone.resolve().name,
    )


def _multi(options: Options, family: Family, dim: int) -> MultiHead | None:
    """The description of an untrained multi head, or None when none was asked for."""
    given = dict(options.multi)
    if "dim" not in given:
        if given:
            raise BadInput(f"{', '.join(given)} were given, but no multi head is made without --multi-dims; give it as well")
        return None
    if given["dim"] > dim:
        raise BadInput(f"--multi-dims is {given['dim']}; expected at most the {dim} of the token states")
    return MultiHead(**(family.multi.model_dump() if family.multi else UNTRAINED_MULTI) | given)


def _sparse(options: Options, family: Family, size: int) -> SparseHead | None:
    """The description of an untrained sparse head over a vocabulary of `size` tokens, or None when none was asked for."""
    if not options.vdr:
        if options.vocabulary_shift is not None:
            raise BadInput("--vocabulary-shift was given, but no sparse head is made without --vdr; give it as well")
        return None
    usual = family.sparse or VDR
    shift = usual.shift if options.vocabulary_shift is None else options.vocabulary_shift
    if shift >= size:
        raise BadInput(f"the vocabulary shift is {shift}; expected less than the {size:,} tokens: give --vocabulary-shift")
    return SparseHead(dim=size - shift, shift=shift, top=usual.top, normalised=usual.normalised)


def _check_tokens(config: ModelConfig, tokens: Tokens) -> None:
    """Refuse heads that name tokens which the tokenizer does not have, or are made for another vocabulary."""
    if multi := config.multi:
        for role in ("mask_token", "query_marker", "doc_marker"):
            if (token := getattr(multi, role)) is not None:
                tokens.id_of(token, f"multi.{role}")
    sizes = {
        "sparse": config.sparse and config.sparse.dim + config.sparse.shift,
        "lexical": config.lexical and config.lexical.dim,
    }
    for head, size in sizes.items():
        if size is not None and size != tokens.size:
            raise BadModel(
                f"{tokens.file} has {tokens.size:,} tokens, but the {head} head is made for {size:,}; save both again"
            )
