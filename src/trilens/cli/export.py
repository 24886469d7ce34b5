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
from trilens.encode.folder import Head, Precision
from trilens.encode.hub import find_model
from trilens.errors import BadInput
from trilens.extras import needs_extra

if TYPE_CHECKING:
    from trilens.export.describe import ExportOptions
    from trilens.export.folder import Exported

PLAIN = "Plain encoders"
HEADS = "Untrained heads of plain encoders"


def export(
    context: typer.Context,
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
    format: Annotated[
        Literal["trilens", "sentence-transformers"],
        typer.Option(help="trilens: ONNX graphs of all heads; sentence-transformers: one head as its plain model, in torch."),
    ] = "trilens",
    head: Annotated[
        Head | None,
        typer.Option(help="Head of a sentence-transformers model.", show_default="the only one"),
    ] = None,
    precision: Annotated[
        Precision,
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
    """Export a trained or published encoder or cross-encoder to a model folder that runs without torch.

    Supports BERT, RoBERTa, XLM-R, CamemBERT, DistilBERT, MPNet, T5 and mT5. A folder of `trilens train` contains its heads and
    its input configuration; for plain encoders, prefixes, lengths and pooling default to those of the model family. BGE-M3,
    ColBERT, XTR, ColXTR, VDR, DPR, SPLADE and sentence-transformers models keep all their heads. A folder of a sequence
    classifier with one output becomes a cross-encoder, for --rerank cross; T5 is none.

    Examples:

      trilens export runs/my-model my-model

      trilens export runs/my-model plain --format sentence-transformers --head dense

      trilens export BAAI/bge-m3 bge-m3

      trilens export downloads/gte-small gte-small --precision float32 --licence MIT

      trilens export downloads/all-MiniLM-L6-v2 all-MiniLM-L6-v2 --multi-dims 128 --vdr --lexical --texts some.jsonl
    """
    if format == "sentence-transformers":
        _export_head(context, source, target, head, force)
        return
    if head is not None:
        raise BadInput(f"--head is {head}, but a model folder of trilens takes --heads; expected those, or --format")
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


def _export_head(context: typer.Context, source: str, target: Path, head: Head | None, force: bool) -> None:
    given = (context.get_parameter_source(name) for name in context.params)
    options = {name for name, origin in zip(context.params, given, strict=True) if origin and origin.name == "COMMANDLINE"}
    if others := sorted(options - {"source", "target", "format", "head", "force"}):
        raise BadInput(f"--{others[0].replace('_', '-')} does not apply to --format sentence-transformers; leave it out")
    with needs_extra("train"):
        from trilens.export.folder import require_free, written_whole
        from trilens.train.checkpoints import load_checkpoint
        from trilens.train.model import MODULES_FILE
        from trilens.train.single_head import CLASSES, save_head
    path = find_model(source)
    require_free(target, path, force, known_by=MODULES_FILE)
    model = load_checkpoint(path)
    with written_whole(target) as folder:
        saved = save_head(model, head, folder)
    out().print(f"{target}: {saved}, for sentence_transformers.{CLASSES[saved].__name__}", markup=False, soft_wrap=True)


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
    heads = ", ".join(getattr(exported.config, "heads", ["cross-encoder"]))
    summary = f"{exported.path}: {heads}; {exported.config.precision}; {megabytes:,.1f} MB"
    console.print(summary, markup=False, soft_wrap=True)
    for agreement in exported.agreements or []:
        console.print(f"  {agreement}", markup=False, soft_wrap=True)
    if exported.agreements is None and check:
        sys.stderr.write("not checked against the original: that needs torch; run `pip install 'trilens[train]'`\n")
