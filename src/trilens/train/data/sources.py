"""Data sources of a recipe: a format, a path and the options of the format; `read_examples` reads and mixes them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from trilens.datasets.beir import Beir
from trilens.errors import BadInput, first_error
from trilens.text.files import shown
from trilens.train.data.beir import read_beir
from trilens.train.data.builder import Corpus, ExamplesBuilder
from trilens.train.data.columns import ColumnNames, read_columns
from trilens.train.data.corpus import read_corpus, read_queries
from trilens.train.data.dpr import Negatives, read_dpr
from trilens.train.data.mixture import Mixture
from trilens.train.data.raw_example import Items
from trilens.train.data.triples import read_triples


class _Source(BaseModel):
    """Options of all sources. `weight`: how often its examples occur per epoch. `skip_bad`: count bad examples and continue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    skip_bad: bool = False


class Triples(_Source):
    """Lines of query id, positive id and negative ids, with a query file and a corpus file."""

    format: Literal["triples"]
    queries: Path
    corpus: Path


class Dpr(_Source):
    """DPR's JSON or JSONL, also mined files. `corpus` is required if contexts are ids."""

    format: Literal["dpr"]
    corpus: Path | None = None
    negatives: Negatives = "hard"


class BeirFolder(_Source):
    """The judged queries of a split."""

    format: Literal["beir"]
    split: str = "train"
    judged_negatives: bool = False


class Table(_Source):
    """A sentence-transformers dataset: JSONL, CSV, TSV or Parquet with a column for each part of an example."""

    format: Literal["columns"]
    query: str | None = None
    positive: str | None = None
    negatives: tuple[str, ...] | None = None
    scores: str | None = None  # column with a list of teacher scores: of the positives, then of the negatives


class Pairs(_Source):
    """Unlabelled pairs: one field of each record is the query, another the positive passage."""

    format: Literal["pairs"]
    query: str = "title"
    passage: str = "text"


Source = Annotated[Triples | Dpr | BeirFolder | Table | Pairs, Field(discriminator="format")]
AnySource = Triples | Dpr | BeirFolder | Table | Pairs
FORMATS = ("triples", "dpr", "beir", "columns", "pairs")

_ADAPTER: TypeAdapter[AnySource] = TypeAdapter(Source)


def parse_source(options: Mapping[str, Any]) -> AnySource:
    """Validate the options of a source; errors are reported in one line."""
    try:
        return _ADAPTER.validate_python(dict(options))
    except ValidationError as error:
        path = str(options.get("path", ""))
        raise BadInput(f"data source {path!r}: {first_error(error)}; formats are {', '.join(FORMATS)}") from error


def read_examples(sources: Sequence[AnySource], seed: int = 0) -> Mixture:
    """Read the examples of all sources and mix them by weight."""
    if not sources:
        raise BadInput("there are no data sources; expected at least one, with a format and a path")
    builder = ExamplesBuilder()
    for source in sources:
        if not source.path.exists():
            raise BadInput(f"{shown(source.path)} does not exist; expected {source.format} data: check the path")
    for source in sources:
        corpus, items = _READERS[type(source)](builder, source)
        builder.source(shown(source.path), items, corpus, source.skip_bad)
    return Mixture(builder.examples(), [source.weight for source in sources], seed, builder.reports)


def corpus_path(source: AnySource) -> Path | None:
    """The corpus file that the ids of a source refer to, None if it has none."""
    if isinstance(source, BeirFolder):
        return Beir(source.path).corpus_path
    return source.corpus if isinstance(source, Triples | Dpr) else None


Reader = Callable[[ExamplesBuilder, Any], tuple[Corpus | None, Items]]


def _corpus(builder: ExamplesBuilder, path: Path) -> Corpus:
    return builder.corpus(path, read_corpus(path))


def _triples(builder: ExamplesBuilder, source: Triples) -> tuple[Corpus | None, Items]:
    return _corpus(builder, source.corpus), read_triples(source.path, read_queries(source.queries))


def _dpr(builder: ExamplesBuilder, source: Dpr) -> tuple[Corpus | None, Items]:
    corpus = None if source.corpus is None else _corpus(builder, source.corpus)
    return corpus, read_dpr(source.path, source.negatives)


def _beir(builder: ExamplesBuilder, source: BeirFolder) -> tuple[Corpus | None, Items]:
    dataset = Beir(source.path)
    items = read_beir(dataset, source.split, source.judged_negatives)
    dataset.queries(source.split)  # fails on a wrong split before the corpus is read
    return _corpus(builder, dataset.corpus_path), items


def _table(builder: ExamplesBuilder, source: Table) -> tuple[Corpus | None, Items]:
    names = ColumnNames(query=source.query, positive=source.positive, negatives=source.negatives, scores=source.scores)
    return None, read_columns(source.path, names)


def _pairs(builder: ExamplesBuilder, source: Pairs) -> tuple[Corpus | None, Items]:
    return None, read_columns(source.path, ColumnNames(query=source.query, positive=source.passage, negatives=()))


_READERS: dict[type[_Source], Reader] = {Triples: _triples, Dpr: _dpr, BeirFolder: _beir, Table: _table, Pairs: _pairs}
