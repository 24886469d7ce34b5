"""Mining in a real collection with BM25, also interrupted and resumed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trilens.collection import Collection
from trilens.errors import BadInput
from trilens.text.document import Document
from trilens.train.data.examples import Examples
from trilens.train.data.raw_example import RawExample
from trilens.train.data.sources import parse_source, read_examples
from trilens.train.negatives import mine as mining
from trilens.train.negatives.mine import MiningConfig, corpus_collection, mine

from ..data.make import make_examples

CORPUS = [
    Document("best", "storm storm storm over the harbour"),
    Document("copy", "storm storm storm over the harbour"),
    Document("longer", "storm storm storm over the harbour at night"),
    Document("answer", "the storm called Élise reached us in May"),
    Document("third", "a storm and a calm sea", "Weather"),
    Document("fourth", "one storm among many other words that make this text a long one"),
    Document("other", "cats sleep"),
]
EXAMPLES = [RawExample("storm", ["best"], answers=["elise", "Élise"], query_id="q1"), RawExample("cats", ["other"], ["best"])]


@pytest.fixture(scope="module")
def examples() -> Examples:
    return make_examples(CORPUS, EXAMPLES)


@pytest.fixture(scope="module")
def collection(examples: Examples) -> Iterator[Collection]:
    with corpus_collection(examples, "bm25") as made:
        yield made


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def found(path: Path, line: int = 0) -> list[str]:
    return [context["passage_id"] for context in lines(path)[line]["hard_negative_ctxs"]]


def run(examples: Examples, collection: Collection, out: Path, **options: Any) -> mining.MiningReport:
    return mine(examples, collection, MiningConfig.of(**options), out)


def test_false_negatives_are_dropped(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    ranking = [hit.doc_id for hit in collection.search(["storm"], 10)[0]]
    assert sorted(ranking) == ["answer", "best", "copy", "fourth", "longer", "third"]
    report = run(examples, collection, tmp_path / "all", near=None)
    assert sorted(found(tmp_path / "all")) == ["answer", "fourth", "longer", "third"]
    assert (report.examples, report.negatives, report.short, report.dropped) == (2, 4, 2, {"positive": 3})
    report = run(examples, collection, tmp_path / "near")
    assert sorted(found(tmp_path / "near")) == ["answer", "fourth", "third"]
    report = run(examples, collection, tmp_path / "answers", answers="string")
    assert sorted(found(tmp_path / "answers")) == ["fourth", "third"]
    assert report.dropped == {"positive": 3, "near": 1, "answer": 1}


def test_output_is_readable_as_dpr(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    out = tmp_path / "mined.jsonl"
    run(examples, collection, out, answers="string")
    first, second = lines(out)
    assert first["id"] == "q1"
    assert first["positive_ctxs"] == [{"passage_id": "best", "title": "", "text": CORPUS[0].text}]
    assert [context["rank"] for context in first["hard_negative_ctxs"]] == sorted(
        context["rank"] for context in first["hard_negative_ctxs"]
    )
    assert second["hard_negative_ctxs"] == []
    again = read_examples([parse_source({"format": "dpr", "path": out})]).examples
    assert again.answers(0) == ["elise", "Élise"]
    assert "Weather\na storm and a calm sea" in [again.passage(number) for number in again.negatives(0).tolist()]


def test_output_with_ids_only(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    out = tmp_path / "mined.jsonl"
    mine(examples, collection, MiningConfig(near=None), out, texts=False)
    assert lines(out)[0]["positive_ctxs"] == [{"passage_id": "best"}]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"_id": d.doc_id, "title": d.title, "text": d.text}) + "\n" for d in CORPUS))
    again = read_examples([parse_source({"format": "dpr", "path": out, "corpus": corpus})]).examples
    assert again.passage_count == len(CORPUS)
    assert len(again.negatives(0)) == 4


def test_ranks_and_sampling(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    ranking = [hit.doc_id for hit in collection.search(["storm"], 10)[0]]
    run(examples, collection, tmp_path / "ranks", first=4, last=5, near=None)
    assert found(tmp_path / "ranks") == [name for name in ranking[3:5] if name not in ("best", "copy")]
    run(examples, collection, tmp_path / "one", negatives=1, near=None)
    assert found(tmp_path / "one") == [next(name for name in ranking if name not in ("best", "copy"))]
    drawn = set()
    for seed in range(12):
        run(examples, collection, tmp_path / f"random-{seed}", negatives=1, near=None, sampling="random", seed=seed)
        drawn.update(found(tmp_path / f"random-{seed}"))
    assert len(drawn) > 1


class LengthScorer:
    """Longer texts score lower, so that expected scores can be computed by hand."""

    name = "length"

    def __init__(self) -> None:
        self.scored = 0

    def score(self, queries: Sequence[str], passages: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        self.scored += sum(map(len, passages))
        return [np.array([100 - len(text) for text in some], np.float32) for some in passages]


def test_score_rules(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    """The positive has 34 characters, so 66; longer has 43: 57, answer 40: 60, third 30: 70, fourth 63: 37."""
    out = tmp_path / "scored.jsonl"
    config = MiningConfig.of(near=None, rules={"relative_margin": 0.1})  # up to 59.4
    report = mine(examples, collection, config, out, scorer=LengthScorer())
    line = lines(out)[0]
    scores = dict(zip(found(out), line["teacher_scores"][1:], strict=True))
    assert scores == {"longer": 57, "fourth": 37}
    assert line["teacher_scores"][0] == 66
    assert report.dropped["score"] == 2
    again = read_examples([parse_source({"format": "dpr", "path": out})]).examples
    assert again.teacher(0).tolist() == line["teacher_scores"]  # type: ignore[union-attr]


def test_scoring_is_lazy(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    scorer = LengthScorer()
    mine(examples, collection, MiningConfig.of(near=None, negatives=1), tmp_path / "o", scorer=scorer)
    assert scorer.scored == 2 + 1  # both positives, and the one candidate that is wanted


def test_interrupted_mining_resumes(
    examples: Examples, collection: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = examples.take(np.arange(40) % 2)
    monkeypatch.setattr(mining, "CHUNK", 4)
    whole = run(many, collection, tmp_path / "whole", answers="string")

    def stop(count: float) -> None:
        if (tmp_path / "out.partial.json").exists() and json.loads((tmp_path / "out.partial.json").read_text())["done"] >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine(many, collection, MiningConfig(answers="string"), tmp_path / "out", progress=stop)
    with (tmp_path / "out.partial").open("a") as file:
        file.write('{"question": "cut in the mid')
    counted: list[float] = []
    report = mine(many, collection, MiningConfig(answers="string"), tmp_path / "out", progress=counted.append)
    assert counted[0] == 12
    assert sum(counted) == 40
    assert report == whole
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


def test_resuming_with_other_settings_is_an_error(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def stop(count: float) -> None:
        if count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine(examples, collection, MiningConfig(), out, progress=stop)
    with pytest.raises(BadInput, match=r"was started with other settings \(config\)"):
        run(examples, collection, out, negatives=3)
    (tmp_path / "out.partial").write_text("")
    with pytest.raises(BadInput, match="has 0 bytes; expected"):
        run(examples, collection, out)
    (tmp_path / "out.partial.json").write_text("{")
    with pytest.raises(BadInput, match=r"out.partial.json is damaged; remove it"):
        run(examples, collection, out)
    out.write_text("")
    with pytest.raises(BadInput, match="out exists already"):
        run(examples, collection, out)


def test_invalid_options(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="ranks are 5 to 4"):
        MiningConfig.of(first=5, last=4)
    with pytest.raises(BadInput, match="option 'depth' is not known; expected one of lens, first, last"):
        MiningConfig.of(depth=4)
    with pytest.raises(BadInput, match="without a scorer"):
        run(examples, collection, tmp_path / "o", rules={"max_score": 1})
    with pytest.raises(BadInput, match="no lens 'dense'; expected one of bm25"):
        run(examples, collection, tmp_path / "o", lens="dense")


SCRIPT = """
import sys
from pathlib import Path
from trilens.train.data.sources import parse_source, read_examples
from trilens.train.negatives import mine as mining
mining.CHUNK = 2
examples = read_examples([parse_source({"format": "dpr", "path": sys.argv[1], "corpus": sys.argv[2]})]).examples
with mining.corpus_collection(examples, "bm25") as collection:
    mining.mine(examples, collection, mining.MiningConfig(), Path(sys.argv[3]))
"""


def test_killed_process_resumes(examples: Examples, collection: Collection, tmp_path: Path) -> None:
    corpus, data, out = tmp_path / "corpus.jsonl", tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    corpus.write_text("".join(json.dumps({"_id": d.doc_id, "title": d.title, "text": d.text}) + "\n" for d in CORPUS))
    rows = [{"question": f"storm {number}", "positive_ctxs": ["best"]} for number in range(120)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-c", SCRIPT, str(data), str(corpus), str(out)]
    state = tmp_path / "out.jsonl.partial.json"
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 60
    while not state.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert state.exists()
    assert not out.exists()
    done = json.loads(state.read_text())["done"]
    assert 0 < done < 120
    subprocess.run(command, check=True)
    assert [line["question"] for line in lines(out)] == [row["question"] for row in rows]
