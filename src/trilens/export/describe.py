"""The `trilens.json` of an exported folder: from a trained folder, or from a plain encoder's family and the options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from trilens.encode.families import UNKNOWN, VDR, Family, family_of
from trilens.encode.folder import DenseHead, Head, LexicalHead, ModelConfig, MultiHead, Precision, SparseHead
from trilens.encode.tokens import Tokens
from trilens.errors import BadInput, BadModel, first_error
from trilens.export.checkpoint import read_json
from trilens.export.source import Source

UNTRAINED_MULTI = {"normalised": True, "skip_punctuation": True, "skip_special": True}
NOT_STATED = "not stated"


@dataclass(frozen=True)
class ExportOptions:
    """Export options; None selects the default of the model's family, or of the trained folder."""

    precision: Precision = "int8"
    heads: tuple[Head, ...] = ()  # those to export; none: all
    multi: Mapping[str, Any] = field(default_factory=dict)  # fields of `MultiHead`; `dim` adds an untrained head
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
        """The given options that define heads and tokenisation, which a trained folder defines itself."""
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


def describe(options: ExportOptions, name: str, source: Source, dim: int, longest: int | None, tokens: Tokens) -> ModelConfig:
    """The config of the folder `name`, for a backbone of `dim` dimensions that reads `longest` tokens."""
    try:
        if source.heads is not None:
            config = _trained(options, source.heads, dim, longest)
        else:
            config = _plain(options, name, source, dim, longest, tokens)
    except ValidationError as error:
        raise BadInput(f"the options are inconsistent: {first_error(error)}") from error
    _check_tokens(config, tokens)
    return config


def _trained(options: ExportOptions, heads: Path, dim: int, longest: int | None) -> ModelConfig:
    if given := options.for_plain:
        raise BadInput(f"{heads.parent} has trained heads and its own settings; remove --{', --'.join(given)}")
    file = heads / "config.json"
    overrides = {name: value for name, value in (("licence", options.licence), ("source", options.source)) if value is not None}
    try:
        described = chosen_heads(read_json(file), options.heads, dim)
        config = ModelConfig.model_validate(described | overrides | {"precision": options.precision})
    except ValidationError as error:
        raise BadModel(f"{file}: {first_error(error)}; save the model again") from error
    if config.dim != dim and not (config.dense and config.dense.projection):
        raise BadModel(f"{file} has dim {config.dim}; expected {dim}, the dimension of the backbone")
    longer = max(config.max_query_tokens, config.max_doc_tokens)
    if longest is not None and longer > longest:
        raise BadModel(f"{file} has texts of {longer} tokens; expected at most the {longest} positions of the backbone")
    return config


def chosen_heads(described: Mapping[str, Any], heads: tuple[Head, ...], dim: int) -> dict[str, Any]:
    """A description with some of its heads, for a backbone of `dim` dimensions."""
    present = described.get("heads") or []
    if not heads or not isinstance(present, list):
        return dict(described)
    if missing := [head for head in heads if head not in present]:
        raise BadInput(f"--heads names {', '.join(missing)}; expected some of those of the model, {', '.join(present)}")
    multi = described.get("multi") or {}
    if "multi" not in heads and any(multi.get(field) for field in ("query_tokens", "query_marker", "doc_marker")):
        raise BadInput("--heads leaves out multi, whose markers are a part of what all heads read; name it as well")
    left_out: dict[str, Any] = {head: None for head in present if head not in heads}
    size = {} if "dense" in heads else {"dim": dim}
    return dict(described) | left_out | size | {"heads": [head for head in present if head in heads]}


def _plain(options: ExportOptions, name: str, source: Source, dim: int, longest: int | None, tokens: Tokens) -> ModelConfig:
    names = (options.source or "", name, source.backbone.resolve().name)
    family = next((known for known in map(family_of, names) if known is not UNKNOWN), UNKNOWN)
    if set(options.heads) - {"dense"}:
        raise BadInput(f"--heads is {','.join(options.heads)}; expected dense, which is all that {source.backbone} has")
    limits = [limit for limit in (longest, source.longest) if limit is not None]
    multi, sparse = _multi(options, family, dim), _sparse(options, family, tokens.size)
    lexical = LexicalHead(dim=tokens.size) if options.lexical else None
    extra: tuple[tuple[Head, object], ...] = (("multi", multi), ("sparse", sparse), ("lexical", lexical))
    return ModelConfig(
        name=name,
        heads=["dense", *(head for head, described in extra if described is not None)],
        dim=dim,
        pooling=options.pooling or source.pooling or family.pooling,
        query_prefix=first_given(options.query_prefix, source.query_prefix, family.query_prefix),
        doc_prefix=first_given(options.doc_prefix, source.doc_prefix, family.doc_prefix),
        max_query_tokens=min([family.max_query_tokens, *limits]),
        max_doc_tokens=min([family.max_doc_tokens, *limits]),
        dense=None if source.normalised else DenseHead(normalised=False),
        multi=multi,
        sparse=sparse,
        lexical=lexical,
        precision=options.precision,
        licence=options.licence or NOT_STATED,
        source=options.source or source.backbone.resolve().name,
    )


def first_given(*prefixes: str | None) -> str:
    """The first prefix that is given."""
    return next((prefix for prefix in prefixes if prefix is not None), "")


def _multi(options: ExportOptions, family: Family, dim: int) -> MultiHead | None:
    """The description of an untrained multi head, None if it was not requested."""
    fields = dict(options.multi)
    if "dim" not in fields:
        if fields:
            raise BadInput(f"{', '.join(fields)} were given without --multi-dims, which adds a multi head; give it as well")
        return None
    if fields["dim"] > dim:
        raise BadInput(f"--multi-dims is {fields['dim']}; expected at most {dim}, the dimension of the token states")
    return MultiHead(**(family.multi.model_dump() if family.multi else UNTRAINED_MULTI) | fields)


def _sparse(options: ExportOptions, family: Family, size: int) -> SparseHead | None:
    """The description of an untrained sparse head over a vocabulary of `size` tokens, None if it was not requested."""
    if not options.vdr:
        if options.vocabulary_shift is not None:
            raise BadInput("--vocabulary-shift was given without --vdr, which adds a sparse head; give it as well")
        return None
    default = family.sparse or VDR
    shift = default.shift if options.vocabulary_shift is None else options.vocabulary_shift
    if shift >= size:
        raise BadInput(f"the vocabulary shift is {shift}; expected less than the {size:,} tokens: give --vocabulary-shift")
    return SparseHead(dim=size - shift, shift=shift, top=default.top, normalised=default.normalised)


def _check_tokens(config: ModelConfig, tokens: Tokens) -> None:
    """Require that the tokens used by the heads exist, and that vocabulary sizes match."""
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
            raise BadModel(f"{tokens.file} has {tokens.size:,} tokens, but the {head} head expects {size:,}; save both again")
