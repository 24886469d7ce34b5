"""`EncoderScorer` with every head."""

from trilens.encode.folder import Head
from trilens.train.negatives.scorers import EncoderScorer

from .words import CountingEncoder


def test_encoder_scores() -> None:
    queries, passages = ["cat mat", "dog"], [["cat mat", "cat hat", "sun"], []]
    heads: list[Head] = ["dense", "sparse", "multi"]
    for head in heads:
        scores = EncoderScorer(CountingEncoder(), head).score(queries, passages)
        assert [some.tolist() for some in scores] == [[2, 1, 0], []]
    assert EncoderScorer(CountingEncoder()).name == "counting:dense"
