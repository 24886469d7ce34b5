"""The command `warmup`: compile all kernels before they are needed."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from trilens.cli.options import Json, Lens, lens_names
from trilens.cli.progress import progress_bar
from trilens.cli.render import out, print_json
from trilens.collection import Collection
from trilens.encode.folder import ModelFolder
from trilens.encode.models import resolve_model
from trilens.lenses.registry import lens_type, lens_types
from trilens.search.options import SearchOptions
from trilens.store.config import DEFAULT_MODEL
from trilens.text.document import Document

TEXTS = (
    "Heat flows from the casing of a pump to the air around it.",
    "To undo a commit, use git revert.",
    "Pumps move water, and valves control how much of it flows.",
    "Grease the bearings of a pump once a month.",
)
QUERY = "how does heat flow"


def warmup(lens: Lens = None, json: Json = False) -> None:
    """Compile the kernels of all lenses, once per installation.

    Indexes and searches a few sentences in a temporary folder. Kernels that are in the cache already are not compiled again.
    Without this command they compile when they are first needed, which takes seconds.

    Examples:

      trilens warmup

      trilens warmup --lens bm25,dense
    """
    start = perf_counter()
    names = lens_names(lens) or _usable_lenses()
    together = [[name for name in names if lens_type(name).reads == "text"]]
    alone = [[name] for name in names if lens_type(name).reads == "vector"]
    with progress_bar("warming up", len(names), "lenses") as work, TemporaryDirectory() as folder:
        for number, lenses in enumerate(filter(None, together + alone)):
            _use(Path(folder) / str(number), lenses)
            work(len(lenses))
    seconds = perf_counter() - start
    if json:
        print_json({"lenses": names, "compiled": work.compiled, "seconds": round(seconds, 3)})
    else:
        done = f"{work.compiled} kernels compiled" if work.compiled else "all kernels were compiled already"
        out().print(f"{done}: {', '.join(names)}; {seconds:.1f} s")


def first_search(collection: Collection) -> None:
    """Compile the kernels of searches and explanations, with progress, after those of indexing have been compiled."""
    with progress_bar("preparing searches", len(_ways(collection.lenses)), "searches") as work:
        for lenses in _ways(collection.lenses):
            (hits,) = collection.search([_text(QUERY, lenses)], k=1, lenses=lenses)
            for hit in hits:
                collection.explain(_text(QUERY, lenses), hit.doc_id, lenses=lenses)
            work(1)


def _ways(lenses: Sequence[str]) -> list[list[str]]:
    """Each lens alone, and all together."""
    return [[name] for name in lenses] + [[*lenses]] * (len(lenses) > 1)


def _usable_lenses() -> list[str]:
    """All lenses whose heads the default model has."""
    heads = set(ModelFolder.open(resolve_model(DEFAULT_MODEL)).config.heads)
    return [name for name, known in lens_types().items() if heads.issuperset(known.heads)]


def _use(path: Path, lenses: Sequence[str]) -> None:
    """Index, search, explain, delete and merge."""
    # 0 words for lenses of vectors, which are not split
    passages = {"words": 0, "overlap": 0} if lens_type(lenses[0]).reads == "vector" else {}
    with Collection.create(path, lenses=lenses, passages=passages) as collection:
        for number, text in enumerate(TEXTS):  # each becomes a segment
            collection.add([Document(str(number), _text(text, lenses), metadata={"even": number % 2 == 0})])
            collection.commit()
        for names in _ways(lenses):
            collection.search([_text(QUERY, lenses)], lenses=names)
        options: list[dict[str, Any]] = [{"filter": {"even": True}}, {"exact": True}]
        for name in lenses:
            known = lens_type(name)
            ways = [*options, *[{"expand": "on"}] * bool(known.expansion)]
            for way in ways:
                collection.search([_text(QUERY, lenses)], options=SearchOptions(lenses=[name], **way))
            collection.explain(_text(QUERY, lenses), "0", lenses=[name])
        collection.delete(["3"])
        collection.optimize()


def _text(text: str, lenses: Sequence[str]) -> str:
    """A text in the form that the lenses read."""
    if lens_type(lenses[0]).reads == "text":
        return text
    return json_format.dumps(dict.fromkeys(text.lower().strip(".").split(), 1.0))
