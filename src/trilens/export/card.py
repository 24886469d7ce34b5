"""Model card of an exported folder: contents, provenance and agreement with the original."""

from collections.abc import Mapping, Sequence

from trilens.encode.folder import Head, ModelConfig
from trilens.export.check import Agreement

PRECISIONS = {
    "float32": "float32: weights and computation as in the original.",
    "int8-weights": "Weights stored in 8 bits, computation in float32.",
    "int8": "Weights and matrix products in 8 bits. Activation ranges are fixed, so a vector does not depend on its batch.",
}


def write_card(config: ModelConfig, trained: bool, sizes: Mapping[str, int], agreements: Sequence[Agreement] | None) -> str:
    """The text of `README.md`; `sizes` are file sizes in bytes."""
    files = "\n".join(f"| {name} | {size / 1e3:,.0f} kB |" for name, size in sizes.items())
    heads = "\n".join(f"- `{head}`: {_head(config, head, trained)}" for head in config.heads)
    return f"""# {config.name}

Exported by `trilens export`. Source: {config.source}. Licence: {config.licence}.

{heads}

{PRECISIONS[config.precision]}
Queries are truncated to {config.max_query_tokens} tokens{_prefix(config.query_prefix)} and encoded by {_towers(config)}.
Documents are truncated to {config.max_doc_tokens} tokens{_prefix(config.doc_prefix)}.

{_checked(agreements)}

| file | size |
|---|---:|
{files}
"""


def _head(config: ModelConfig, head: Head, trained: bool) -> str:
    if head == "dense":
        pooled = "mean" if config.pooling == "mean" else "CLS"
        steps = f", {config.dense.projection} projection" if config.dense and config.dense.projection else ""
        length = "" if config.dense and not config.dense.normalised else ", normalised"
        return f"{config.dim} dimensions, {pooled} pooling{steps}{length}."
    untrained = "" if trained else " **Untrained**: fitted to the calibration texts, as a baseline and a start for training."
    if head == "multi" and config.multi:
        length = ", normalised" if config.multi.normalised else ""
        weights = ", query tokens weighted" if config.multi.weighted else ""
        return f"one vector of {config.multi.dim} dimensions per token{length}{weights}.{untrained}"
    if head == "sparse" and config.sparse:
        return f"a weight for each of {config.sparse.dim:,} words of the vocabulary.{untrained}"
    return f"a weight for each token of the text.{untrained}"


def _towers(config: ModelConfig) -> str:
    return "separate weights" if config.query_tower else "the weights that encode documents"


def _prefix(prefix: str) -> str:
    return f" including the prefix `{prefix.strip()}`" if prefix.strip() else ""


def _checked(agreements: Sequence[Agreement] | None) -> str:
    if agreements is None:
        return "Not checked against the original."
    rows = "\n".join(f"| {row.head} | {row.mean:.5f} | {row.worst:.5f} | {row.difference:.1e} |" for row in agreements)
    return f"""Cosine similarity to the vectors of the original in torch, and the largest difference of a value:

| head | mean | worst | difference |
|---|---:|---:|---:|
{rows}"""
