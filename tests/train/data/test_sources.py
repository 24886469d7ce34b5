"""Options of data sources, and the real data if it is available."""

from typing import Any

import pytest

from tests.development_data import DATA, needs_data
from trilens.errors import BadInput
from trilens.train.data.sources import parse_source, read_examples

from .files import read


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "dpr", "pth": "x"}, r"dpr\.path is missing; expected a value"),
        ({"format": "dpr", "path": "x", "lens": "y"}, r"option .dpr\.lens. is not known"),
        ({"format": "csv", "path": "x"}, "formats are triples, dpr, beir, columns, pairs"),
        ({"path": "x"}, "formats are triples"),
        ({"format": "dpr", "path": "x", "weight": 0}, r"dpr\.weight is 0; expected a value greater than 0"),
    ],
)
def test_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_source(options)


@needs_data
def test_real_beir_folder() -> None:
    scifact = read(format="beir", path=DATA / "scifact").examples
    assert (len(scifact), scifact.passage_count) == (809, 5_183)


@needs_data
@pytest.mark.long
def test_all_real_data() -> None:
    squad = read(format="dpr", path=DATA / "squad-retrieval/train.dpr.jsonl", corpus=DATA / "squad-retrieval/corpus.jsonl")
    assert (len(squad.examples), squad.examples.passage_count) == (87_599, 20_958)
    assert squad.examples.columns.negatives.lengths.mean() > 3.99
    assert squad.examples.answers(0) == ["2008"]
    assert squad.examples.passage_id(int(squad.examples.positives(0)[0])) == "train-p0"
    both = read_examples(
        [parse_source({"format": "dpr", "path": DATA / name / "train.jsonl"}) for name in ("medquad", "ni-qa")]
    )
    assert len(both.examples) == 16_407 + 15_512
    pairs = read(format="pairs", path=DATA / "debian-en.jsonl.xz", skip_bad=True)
    assert pairs.reports[0].kept + pairs.reports[0].skipped == 61_485
