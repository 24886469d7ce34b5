"""BEIR folders."""

from pathlib import Path

import pytest

from trilens.errors import BadInput

from .files import jsonl, read, shown


def test_beir(tmp_path: Path, corpus: Path) -> None:
    jsonl(tmp_path / "queries.jsonl", {"_id": "q1", "text": "one"}, {"_id": "q2", "text": "two"})
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\t3\t0\nq1\tb\t1\nq2\ta\t0\n")
    with pytest.raises(BadInput, match=r"train\.tsv: the query 'q2' has no relevant document"):
        read(format="beir", path=tmp_path)
    mixture = read(format="beir", path=tmp_path, skip_bad=True)
    assert shown(mixture.examples, 0) == ("one", ["A\nabout a", "about b"], [])
    assert (mixture.reports[0].kept, mixture.reports[0].skipped) == (1, 1)
    assert "q2" in mixture.reports[0].messages[0]
    judged = read(format="beir", path=tmp_path, skip_bad=True, judged_negatives=True).examples
    assert shown(judged, 0)[2] == ["about c"]
