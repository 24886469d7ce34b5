"""The model card: what a folder holds, where it comes from, and how near it comes to its original."""

from collections.abc import Mapping, Sequence

from trilens.encode.folder import Head, ModelConfig
from trilens.export.check import Agreement

PRECISIONS = {
    "float32": "float32: weights and sums as in the original.",
    "int8-weights": "Weights stored in 8 bits, sums in float32.",
    "int8": "Weights and sums in 8 bits. The ranges of all activations are fixed, so a vector does not depend on its batch.",
}


def write_card(config: ModelConfig, trained: bool, sizes: Mapping[str, int], agreements: Sequence[Agreement] | None) -> str:
    """The text of `README.md`; `sizes` has the bytes of each file."""
    files = "\n".join(f"| {name} | {size / 1e3:,.0f} kB |" for name, size in sizes.items())
    heads = "\n".join(f"- `{head}`: {_head(config, head, trained)}" for head in config.heads)
    return f"""# {config.name}

Made by `trilens export`. Source: {config.source}. Licence: {config.licence}.

{heads}

{PRECISIONS[config.precision]}
Queries are read up to {config.max_query_tokens} tokens{_prefix(config.query_prefix)}, by {_towers(config)}.
Documents are read up to {config.max_doc_tokens} tokens{_prefix(config.doc_prefix)}.

{_checked(agreements)}

| file | size |
|---|---:|
{files}
"""


def _head(config: ModelConfig, head: Head, trained: bool) -> str:
    if head == "dense":
        pooled = "mean of the token states" if config.pooling == "mean" else "state of the first token"
        steps = f", {config.dense.projection} projection" if config.dense and config.dense.projection else ""
        length = "" if config.dense and not config.dense.normalised else ", of length 1"
        return f"{config.dim} dimensions, the {pooled}{steps}{length}."
    untrained = "" if trained else " **Untrained**: fitted to the calibration texts, a start and a floor for training."
    if head == "multi" and config.multi:
        length = ", of length 1" if config.multi.normalised else ""
        weights = "; those of queries by a weight for each token" if config.multi.weighted else ""
        return f"a vector of {config.multi.dim} dimensions per token{length}{weights}.{untrained}"
    if head == "sparse" and config.sparse:
        return f"a weight for each of {config.sparse.dim:,} words of the vocabulary.{untrained}"
    return f"a weight for each of the text's own tokens.{untrained}"


def _towers(config: ModelConfig) -> str:
    return "weights of their own" if config.query_tower else "the weights that read documents"


def _prefix(prefix: str) -> str:
    return f" after `{prefix.strip()}`" if prefix.strip() else ""


def _checked(agreements: Sequence[Agreement] | None) -> str:
    if agreements is None:
        return "Not checked against the original."
    rows = "\n".join(f"| {one.head} | {one.mean:.5f} | {one.worst:.5f} | {one.difference:.1e} |" for one in agreements)
    return f"""Cosines between these vectors and those of the original in torch, and the largest difference of a value:

| head | mean | worst | difference |
|---|---:|---:|---:|
{rows}"""
