"""Small `Examples` for tests."""

from collections.abc import Sequence
from pathlib import Path

from trilens.read.decode import Place
from trilens.text.document import Document
from trilens.train.data.builder import ExamplesBuilder
from trilens.train.data.examples import Examples
from trilens.train.data.raw_example import RawExample


def make_examples(corpus: Sequence[Document], examples: Sequence[RawExample]) -> Examples:
    """Examples over the passages of a corpus, numbered in its order."""
    builder = ExamplesBuilder()
    known = builder.corpus(
        Path("corpus"), ((Place("corpus", index), document) for index, document in enumerate(corpus, start=1))
    )
    builder.source("made", ((Place("made", index), example) for index, example in enumerate(examples, start=1)), known)
    return builder.examples()
