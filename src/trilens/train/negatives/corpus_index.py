"""The passages of the examples, encoded by any encoder and made searchable for as long as negatives are looked for.

A collection is bound to a model folder; a model in training is none, but it is an `Encoder`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trilens.encode.encoder import Encoder, Progress
from trilens.errors import BadInput
from trilens.index.dense import DenseLens
from trilens.index.lens import Lens, Searcher
from trilens.index.multi import MultiLens
from trilens.index.sparse import SparseLens
from trilens.train.data.examples import Examples

LENSES: dict[str, Callable[[Encoder], Lens]] = {
    "dense": lambda encoder: DenseLens(encoder),
    "sparse": lambda encoder: SparseLens("sparse", "sparse", encoder),
    "lexical": lambda encoder: SparseLens("lexical", "lexical", encoder),
    "tokens": lambda encoder: SparseLens("tokens", "bag", encoder),
    "multi": lambda encoder: MultiLens(encoder),
}
HELD = {"dense": "dense", "sparse": "sparse", "lexical": "lexical", "tokens": "bag", "multi": "multi"}
CHUNK = {"dense": 65_536}  # passages whose vectors are held at once; enough for an approximate index where there are many
USUAL_CHUNK = 8192


@contextmanager
def corpus_searcher(examples: Examples, encoder: Encoder, lens: str, progress: Progress | None = None) -> Iterator[Searcher]:
    """A searcher whose rows are the numbers of the passages; its files are removed afterwards."""
    if lens not in LENSES:
        raise BadInput(f"lens is {lens!r}; expected one of {', '.join(LENSES)}")
    used = LENSES[lens](encoder)
    parts: list[Any] = []
    shared: list[Any] = []
    size = CHUNK.get(lens, USUAL_CHUNK)
    with TemporaryDirectory(prefix="trilens-refresh-") as folder:
        for number, start in enumerate(range(0, examples.passage_count, size)):
            chunk = range(start, min(start + size, examples.passage_count))
            encoded = encoder.encode_docs([examples.passage(passage) for passage in chunk], progress)
            if getattr(encoded, HELD[lens]) is None:
                raise BadInput(f"the encoder does not make what lens {lens!r} searches; choose a lens that it has a head for")
            common = Path(folder) / f"shared-{number}"
            common.mkdir()
            if used.share(encoded, shared, common):
                shared.append(used.open_shared(common))
            part = Path(folder) / f"part-{number}"
            part.mkdir()
            used.build(encoded, part, shared)
            parts.append(used.open(part))
        yield used.searcher(parts, [None] * len(parts), shared)
