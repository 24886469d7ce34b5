from dataclasses import dataclass, field
from pathlib import Path

import pytest

from trilens.datasets.dataset import (
    Split,
    answered_split,
    in_languages,
    judged_queries,
    judged_split,
    with_judgements,
    with_language,
)
from trilens.datasets.queries import Queries, Query
from trilens.errors import BadInput

QUERIES: Queries = {"1": Query("one", "en"), "2": Query("zwei", "de", ("2",)), "3": Query("drei", "de")}
QRELS = {"3": {"d": 1}, "1": {"e": 0}}


@dataclass
class OneSplit:
    """A dataset whose only split is given."""

    only: Split
    name: str = "small"
    sources: list[Path] = field(default_factory=list)

    def splits(self) -> list[str]:
        return [self.only.name]

    def split(self, name: str) -> Split:
        return self.only


def test_a_judged_split_keeps_judged_queries_in_their_order() -> None:
    split = judged_split("test", QUERIES, QRELS, "qrels.tsv")
    assert split == Split("test", {"1": QUERIES["1"], "3": QUERIES["3"]}, QRELS, ["2"])
    assert (split.texts(), split.languages(), split.answered) == ({"1": "one", "3": "drei"}, ["de", "en"], False)


def test_judgements_of_unknown_queries_are_an_error() -> None:
    with pytest.raises(BadInput, match=r"qrels.tsv judges 2 unknown queries, such as '8'; expected queries and judgements of"):
        judged_split("test", QUERIES, {"1": {"d": 1}, "8": {"d": 1}, "9": {"d": 1}}, "qrels.tsv")


def test_an_answered_split_keeps_queries_with_answers() -> None:
    split = answered_split("dev", QUERIES, "dev.jsonl")
    assert split == Split("dev", {"2": QUERIES["2"]}, {}, ["1", "3"])
    assert split.answered
    with pytest.raises(BadInput, match=r"no query of dev.jsonl has an answer; .* --qrels FILE"):
        answered_split("dev", {"1": QUERIES["1"]}, "dev.jsonl")


def test_judgements_can_be_required() -> None:
    judged = OneSplit(judged_split("test", QUERIES, QRELS, "qrels.tsv"))
    assert with_judgements(judged, "test") is judged.only
    assert judged_queries(judged, "test") == ({"1": "one", "3": "drei"}, QRELS)
    with pytest.raises(BadInput, match="split 'dev' of small has answers but no judgements"):
        judged_queries(OneSplit(answered_split("dev", QUERIES, "dev.jsonl")), "dev")


def test_a_split_is_restricted_to_languages() -> None:
    split = judged_split("test", QUERIES, QRELS, "qrels.tsv")
    german = in_languages(split, ["de"])
    assert (list(german.queries), german.qrels, german.unjudged) == (["3"], {"3": {"d": 1}}, ["2"])
    assert in_languages(answered_split("dev", QUERIES, "dev.jsonl"), ["de"]).qrels == {}
    with pytest.raises(BadInput, match="split 'test' has no query in language 'it'; expected one of de, en"):
        in_languages(split, ["de", "it"])
    with pytest.raises(BadInput, match="expected one of none: the queries have no language"):
        in_languages(Split("test", {"1": Query("one")}, {"1": {"d": 1}}), ["en"])


def test_the_language_of_queries_is_set() -> None:
    assert with_language({"2": QUERIES["2"]}, "nl") == {"2": Query("zwei", "nl", ("2",))}
