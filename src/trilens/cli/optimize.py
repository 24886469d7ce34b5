"""The command `optimize`."""

from contextlib import ExitStack
from typing import Annotated

import typer

from trilens.cli.options import CollectionPath, Json, Threads
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.store.progress import no_report


def optimize(
    path: CollectionPath,
    retrain: Annotated[
        bool,
        typer.Option("--retrain", help="Encode all documents again and train codebooks on all of them."),
    ] = False,
    segments: Annotated[
        int, typer.Option("--segments", min=1, metavar="N", help="Leave N segments of equal size, for as many shards.")
    ] = 1,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Merge all segments into one, or a few, and remove deleted documents.

    Examples:

      trilens optimize my.trilens

      trilens optimize my.trilens --retrain
    """
    with Collection.open(path, threads=threads) as collection:
        before = collection.info()
        with ExitStack() as stack:
            bar = stack.enter_context(progress_bar("encoding", before["documents"], "docs")) if retrain else no_report
            collection.optimize(retrain, bar, segments=segments)
        after = collection.info()
    if json:
        print_json({"segments_before": before["segments"], "segments": after["segments"], "documents": after["documents"]})
    else:
        out().print(f"{before['segments']} segments → {after['segments']}; {after['documents']:,} documents")
