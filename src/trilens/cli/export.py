"""The command `export`."""

import json as jsonlib
import sys
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trilens.cli.options import Json, parse_heads
from trilens.cli.progress import Work, progress_bar
from trilens.cli.render import out, print_json
from trilens.encode.hub import find_model
from trilens.errors import BadInput
from trilens.extras import needs_extra

if TYPE_CHECKING:
    from trilens.export.describe import ExportOptions
    from trilens.export.folder import Exported

PLAIN = "Plain encoders"
HEADS = "Untrained heads of plain encoders"


def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="Folder of a published checkpoint or of `trilens train`, or hub id.", show_default=False
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET", help="Model folder to write; its name becomes the name of the model.", show_default=False
        ),
    ],
    precision: Annotated[
        Literal["float32", "int8-weights", "int8"],
        typer.Option(help="int8-weights: 8-bit weights, float computation; int8: 8-bit weights and computation."),
    ] = "int8",
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSONL file of texts, to calibrate int8 ranges and untrained heads.",
            show_default="docstrings of the standard library",
        ),
    ] = None,
    licence: Annotated[
        str | None, typer.Option(metavar="NAME", help="Licence of the weights, such as Apache-2.0.", show_default=False)
    ] = None,
    origin: Annotated[
        str | None, typer.Option("--source", metavar="URL", help="Origin of the weights.", show_default=False)
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(metavar="HEAD,...", help="Export these heads only.", show_default="all that the checkpoint has"),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Passage encoder of a DPR that is published in two parts.",
            show_default="ctx_encoder, where SOURCE has question_encoder",
        ),
    ] = None,
    multi_dims: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Add a multi head with N dimensions, from a PCA.",
            show_default=False,
            rich_help_panel=HEADS,
        ),
    ] = None,
    multi: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='Configuration of the multi head: {"skip_first": true, …}.',
            show_default=False,
            rich_help_panel=HEADS,
        ),
    ] = None,
    vdr: Annotated[bool, typer.Option("--vdr", help="Add a sparse head.", rich_help_panel=HEADS)] = False,
    vocabulary_shift: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="First token id in the vocabulary of the sparse head.",
            show_default=False,
            rich_help_panel=HEADS,
        ),
    ] = None,
    lexical: Annotated[bool, typer.Option("--lexical", help="Add a lexical head.", rich_help_panel=HEADS)] = False,
    pooling: Annotated[
        Literal["mean", "cls"] | None,
        typer.Option(help="Pooling of the dense head.", show_default=False, rich_help_panel=PLAIN),
    ] = None,
    query_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Prefix of queries.", show_default=False, rich_help_panel=PLAIN)
    ] = None,
    doc_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Prefix of documents.", show_default=False, rich_help_panel=PLAIN)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model folder.")] = False,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Compare the outputs with the original in torch.")] = True,
    json: Json = False,
) -> None:
    """Export a trained or published encoder to a model folder that runs without torch.

    Supports BERT, RoBERTa, XLM-R, CamemBERT, DistilBERT, MPNet, T5 and mT5. A folder of `trilens train` contains its heads and
    its input configuration; for plain encoders, prefixes, lengths and pooling default to those of the model family. BGE-M3,
    ColBERT, XTR, ColXTR, VDR, DPR, SPLADE and sentence-transformers models keep all their heads.

    Examples:

      trilens export runs/my-model my-model

      trilens export BAAI/bge-m3 bge-m3

      trilens export downloads/gte-small gte-small --precision float32 --licence MIT

      trilens export downloads/all-MiniLM-L6-v2 all-MiniLM-L6-v2 --multi-dims 128 --vdr --lexical --texts some.jsonl
    """
    with needs_extra("export"):
        from trilens.export.describe import ExportOptions
    fields = _fields(multi) | ({} if multi_dims is None else {"dim": multi_dims})
    path = find_model(source)
    options = ExportOptions(
        precision,
        parse_heads(heads),
        fields,
        vdr,
        vocabulary_shift,
        lexical,
        pooling,
        query_prefix,
        doc_prefix,
        licence,
        origin or (None if Path(source).exists() else source),
    )
    exported = _export(source, path, target, options, texts, force, check, documents)
    if json:
        print_json(_as_json(exported))
        return
    _print(exported, check)


def _export(
    source: str,
    path: Path,
    target: Path,
    options: "ExportOptions",
    texts: Path | None,
    force: bool,
    check: bool,
    documents: str | None,
) -> "Exported":
    """Export through the loaders of published checkpoints what is more than a plain encoder."""
    from trilens.export.folder import export
    from trilens.export.published import layout_of

    def steps(what: str, total: int) -> AbstractContextManager[Work]:
        return progress_bar(what, total, "parts")

    layout = layout_of(path, source) if path.exists() else None
    if layout is None and documents is None:
        return export(path, target, options, texts, force, check, steps)
    if given := options.for_plain:
        raise BadInput(
            f"{source} is a {layout or 'DPR'} checkpoint with heads and settings of its own; remove --{', --'.join(given)}"
        )
    with needs_extra("train"):
        from trilens.train.checkpoints.export import export_published
    return export_published(source, path, target, options, texts, force, check, steps, documents)


def _fields(multi: str | None) -> dict[str, Any]:
    if multi is None:
        return {}
    try:
        fields = jsonlib.loads(multi)
    except ValueError as error:
        raise BadInput(f'--multi is {multi!r}; expected a JSON object such as {{"skip_first": true}}') from error
    if not isinstance(fields, dict) or "dim" in fields:
        raise BadInput(f"--multi is {multi!r}; expected a JSON object without dim: use --multi-dims")
    return fields


def _as_json(exported: "Exported") -> dict[str, Any]:
    agreements = None if exported.agreements is None else [asdict(agreement) for agreement in exported.agreements]
    return {
        "model": str(exported.path),
        "config": exported.config.model_dump(by_alias=True),
        "bytes": exported.sizes,
        "agreement": agreements,
    }


def _print(exported: "Exported", check: bool) -> None:
    console = out()
    megabytes = sum(exported.sizes.values()) / 1e6
    summary = f"{exported.path}: {', '.join(exported.config.heads)}; {exported.config.precision}; {megabytes:,.1f} MB"
    console.print(summary, markup=False, soft_wrap=True)
    for agreement in exported.agreements or []:
        console.print(
            f"  {agreement.head:<8} cosine with the original {agreement.mean:.5f} (mean), {agreement.worst:.5f} (worst); "
            f"largest difference {agreement.difference:.1e}",
            markup=False,
            soft_wrap=True,
        )
    if exported.agreements is None and check:
        sys.stderr.write("not checked against the original: that needs torch; run `pip install 'trilens[train]'`\n")
