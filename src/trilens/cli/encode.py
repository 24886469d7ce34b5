"""The command `encode`."""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from trilens.cli.options import Json, Threads, parse_heads
from trilens.cli.progress import Work, progress_bar
from trilens.cli.render import out as standard_output
from trilens.cli.render import print_json
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput
from trilens.export.vector_files import SUFFIXES, Batch, suffix_of, write_vectors
from trilens.read.dump import dump_file
from trilens.read.readers import read
from trilens.store.config import DEFAULT_MODEL
from trilens.text.document import Document
from trilens.text.passages import passage_text

AT_ONCE = 1024  # documents


def encode(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files, folders, BEIR folders, as for `index`.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help=f"File to write: {', '.join(SUFFIXES)}.", show_default=False)
    ],
    model: Annotated[str, typer.Option(metavar="MODEL", help="Bundled model, model folder or hub id.")] = DEFAULT_MODEL,
    query: Annotated[bool, typer.Option("--query", help="Encode the texts as queries instead of documents.")] = False,
    heads: Annotated[
        str | None, typer.Option(metavar="HEAD,...", help="Encode by these heads only.", show_default="all of the model")
    ] = None,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Write what the heads of a model compute of texts, for other programs.

    Documents are encoded whole, title first, and are cut at the length that the model reads. A line of JSON has `id`,
    `dense_vecs`, `lexical_weights` ({token: weight}), `sparse_weights` ({word: weight}) and `colbert_vecs`, as FlagEmbedding
    names them; .npz and .safetensors hold arrays of the same names.

    Examples:

      trilens encode docs/ --out vectors.jsonl.gz

      trilens encode queries.jsonl --out queries.npz --query --heads dense,lexical
    """
    suffix = suffix_of(out)
    encoder = OnnxEncoder(resolve_model(model), threads=threads, heads=parse_heads(heads) or None)
    truncated = count = 0

    def batches(work: Work) -> Iterator[Batch]:
        nonlocal truncated, count
        documents = read(sources)
        while chunk := list(islice(documents, AT_ONCE)):
            encoded = encoder.encode_queries(_texts(chunk)) if query else encoder.encode_docs(_texts(chunk), work)
            truncated, count = truncated + encoded.truncated, count + len(chunk)
            yield Batch([document.doc_id for document in chunk], encoded)
        if not count:
            raise BadInput("no document could be read; expected at least one")

    with dump_file(out) as stream, progress_bar("encoding", None, "docs") as work:
        write_vectors(stream, suffix, encoder, batches(work))
    if truncated:
        sys.stderr.write(f"note: {truncated:,} texts are longer than the model reads; only their beginning is encoded\n")
    if json:
        print_json({"file": str(out), "texts": count, "heads": list(encoder.heads), "truncated": truncated})
    else:
        standard_output().print(f"{count:,} texts in {out}: {', '.join(encoder.heads)}", markup=False, soft_wrap=True)


def _texts(documents: Sequence[Document]) -> list[str]:
    return [passage_text(document, 0, len(document.text)) for document in documents]
