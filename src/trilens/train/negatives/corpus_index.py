"""A temporary index of the training passages, to search for negatives with the model in training."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trilens.encode.encoder import Encoder, Progress
from trilens.encode.folder import TermWeighting
from trilens.encode.model import ModelEncoder
from trilens.errors import BadInput
from trilens.lenses.lens import LensSetup, Searcher
from trilens.lenses.registry import lens_type, lens_types
from trilens.train.data.examples import Examples


@contextmanager
def corpus_searcher(examples: Examples, encoder: Encoder, lens: str, progress: Progress | None = None) -> Iterator[Searcher]:
    """A searcher whose rows are the numbers of the passages; its files are removed afterwards."""
    trainable = [name for name, known in lens_types().items() if known.heads]
    if lens not in trainable:
        raise BadInput(f"lens is {lens!r}; expected one of {', '.join(trainable)}")
    known = lens_type(lens)
    made = known.make(LensSetup(known.config(), ModelEncoder("", known.heads), TermWeighting()))
    parts: list[Any] = []
    shared: list[Any] = []
    with TemporaryDirectory(prefix="trilens-refresh-") as folder:
        for number, start in enumerate(range(0, examples.passage_count, known.batch_rows)):
            chunk = range(start, min(start + known.batch_rows, examples.passage_count))
            encoded = encoder.encode_docs([examples.passage(passage) for passage in chunk], progress)
            if missing := [head for head in known.heads if getattr(encoded, head) is None]:
                raise BadInput(f"the encoder has no {missing[0]} head, which lens {lens} needs; choose another lens")
            shared_folder = Path(folder) / f"shared-{number}"
            shared_folder.mkdir()
            if made.share(encoded, shared, shared_folder):
                shared.append(made.open_shared(shared_folder))
            part = Path(folder) / f"part-{number}"
            part.mkdir()
            made.build(encoded, part, shared)
            parts.append(made.open(part))
        yield made.searcher(parts, [None] * len(parts), shared)
