"""Corpora without a header."""

from pathlib import Path

from .files import read, shown


def test_headerless_tsv(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text('id\ttext\ttitle\nx\tsay "hello\tGreeting\ny\tplain\n')
    (tmp_path / "q.tsv").write_text("1\tq\n")
    (tmp_path / "t.tsv").write_text("1\tx\ty\n")
    examples = read(format="triples", path=tmp_path / "t.tsv", queries=tmp_path / "q.tsv", corpus=tmp_path / "c.tsv").examples
    assert shown(examples, 0) == ("q", ['Greeting\nsay "hello'], ["plain"])
    assert examples.document(0).title == "Greeting"
    assert examples.document(0).text == 'say "hello'
