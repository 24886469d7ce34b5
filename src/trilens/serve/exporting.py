"""The export command."""

import json as jsonlib
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from trilens.errors import BadInput
from trilens.serve.options import Json
from trilens.serve.progress import counting
from trilens.serve.render import out, print_json

if TYPE_CHECKING:
    from trilens.export.folder import Exported

INSTALL = "exporting needs more packages: run `pip install 'trilens[export]'`"
PLAIN = "Of a plain encoder"
HEADS = "Untrained heads of a plain encoder"


def export_command(
    source: Annotated[
        Path,
        typer.Argument(metavar="SOURCE", help="Folder as transformers or sentence-transformers saves it.", show_default=False),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Model folder to write; its name is the model's.", show_default=False)
    ],
    precision: Annotated[
        Literal["float32", "int8-weights", "int8"],
        typer.Option(help="As the original; stored in 8 bits; stored and computed in 8 bits."),
    ] = "int8",
    texts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON lines with a text each, to fit ranges and untrained heads to.",
            show_default="Python's own docstrings",
        ),
    ] = None,
    licence: Annotated[str | None, typer.Option(help="Of the weights, such as Apache-2.0.", show_default=False)] = None,
    origin: Annotated[
        str | None, typer.Option("--source", metavar="URL", help="Where the weights come from.", show_default=False)
    ] = None,
    multi_dims: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Add a vector per token: principal components.", show_default=False, rich_help_panel=HEADS
        ),
    ] = None,
    multi: Annotated[
        str | None,
        typer.Option(
            metavar="JSON", help='How they are read: {"skip_first": true, …}.', show_default=False, rich_help_panel=HEADS
        ),
    ] = None,
    vdr: Annotated[bool, typer.Option("--vdr", help="Add weights over the vocabulary.", rich_help_panel=HEADS)] = False,
    vocabulary_shift: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="First token that is a dimension of it.", show_default=False, rich_help_panel=HEADS
        ),
    ] = None,
    lexical: Annotated[bool, typer.Option("--lexical", help="Add weights of tokens.", rich_help_panel=HEADS)] = False,
    pooling: Annotated[
        Literal["mean", "cls"] | None,
        typer.Option(help="How token states become a vector.", show_default=False, rich_help_panel=PLAIN),
    ] = None,
    query_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Put before queries.", show_default=False, rich_help_panel=PLAIN)
    ] = None,
    doc_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Put before documents.", show_default=False, rich_help_panel=PLAIN)
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a model folder that is there.")] = False,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Compare with the original in torch.")] = True,
    json: Json = False,
) -> None:
    """Make a model folder from a trained or published encoder, which then runs without torch.

    BERT, RoBERTa, XLM-R, CamemBERT, DistilBERT, MPNet, T5 and mT5. A folder that `trilens train` wrote brings its heads
    and says how it reads; of a plain encoder, prefixes, lengths and pooling are those of its family.

    Examples:

      trilens export runs/my-model my-model

      trilens export downloads/gte-small gte-small --precision float32 --licence MIT

      trilens export downloads/all-MiniLM-L6-v2 all-MiniLM-L6-v2 --multi-dims 128 --vdr --lexical --texts some.jsonl
    """
    try:
        from trilens.export.describe import Options
        from trilens.export.folder import export
    except ImportError as error:
        if (error.name or "").startswith("trilens"):
            raise
        raise BadInput(INSTALL) from error
    fields = _fields(multi) | ({} if multi_dims is None else {"dim": multi_dims})
    options = Options(precision, fields, vdr, vocabulary_shift, lexical, pooling, query_prefix, doc_prefix, licence, origin)
    done = export(source, target, options, texts, force, check, lambda what, total: counting(what, total, "parts"))
    if json:
        print_json(_as_json(done))
        return
    _print(done, check)


def _fields(multi: str | None) -> dict[str, Any]:
    if multi is None:
        return {}
    try:
        fields = jsonlib.loads(multi)
    except ValueError as error:
        raise BadInput(f'--multi is {multi!r}; expected a JSON object such as {{"skip_first": true}}') from error
    if not isinstance(fields, dict) or "dim" in fields:
        raise BadInput(f"--multi is {multi!r}; expected a JSON object without dim, which --multi-dims gives")
    return fields


def _as_json(done: "Exported") -> dict[str, Any]:
    agreements = None if done.agreements is None else [asdict(one) for one in done.agreements]
    return {"model": str(done.path), "config": done.config.model_dump(), "bytes": done.sizes, "agreement": agreements}


def _print(done: "Exported", wanted: bool) -> None:
    console = out()
    megabytes = sum(done.sizes.values()) / 1e6
    summary = f"{done.path}: {', '.join(done.config.heads)}; {done.config.precision}; {megabytes:,.1f} MB"
    console.print(summary, markup=False, soft_wrap=True)
    for one in done.agreements or []:
        console.print(
            f"  {one.head:<8} cosine with the original {one.mean:.5f} on average, {one.worst:.5f} at worst; "
            f"largest difference {one.difference:.1e}",
            markup=False,
            soft_wrap=True,
        )
    if done.agreements is None and wanted:
        sys.stderr.write("not checked against the original: that needs torch, see `pip install 'trilens[train]'`\n")
