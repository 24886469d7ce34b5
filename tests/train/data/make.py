"""Small examples for the tests of everything that uses them."""

from collections.abc import Sequence
from pathlib import Path

from trilens.text.decode import Place
from trilens.text.document import Document
from trilens.train.data.builder import ExamplesBuilder
from trilens.train.data.example import Example
from trilens.train.data.examples import Examples


def make_examples(corpus: Sequence[Document], examples: Sequence[Example]) -> Examples:
    """Examples whose passages are those of the corpus, numbered as there."""
    builder = ExamplesBuilder()
    known = builder.corpus(Path("corpus"), ((Place("corpus", at), document) for at, document in enumerate(corpus, start=1)))
    builder.source("made", ((Place("made", at), example) for at, example in enumerate(examples, start=1)), known)
    return builder.examples()
