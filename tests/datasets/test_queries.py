"""Queries in every published format."""

import gzip
from pathlib import Path

import pytest

from trilens.datasets.queries import Query, read_queries
from trilens.errors import BadInput

TOPICS = """
<top>
<num> Number: 051
<title> Topic:  Airbus
   Subsidies

<desc> Description:
Document will discuss government assistance.
</top>

<top><num>A-2</num><title>second title</title></top>
"""
PLAIN = {"1": Query("who, and when?"), "2": Query('the "second" one')}
ANSWERED = {
    "1": Query("who wrote it", answers=("J. R. R. Tolkien", 'the "Prof"')),
    "2": Query("how many", answers=("7", "seven")),
}
FORMS = {
    "beir.jsonl": (
        '{"_id": "1", "text": "who, and when?"}\n{"_id": 2, "text": "the \\"second\\" one", "metadata": {}}\n',
        PLAIN,
    ),
    "topics.tsv": ('1\twho, and when?\n2\tthe "second" one\n', PLAIN),
    "header.tsv": ('query_id\ttext\n1\twho, and when?\n\n2\tthe "second" one\n', PLAIN),
    "comma.csv": ('id,text\r\n1,"who, and when?"\r\n2,"the ""second"" one"\r\n', PLAIN),
    "nq-test.qa.csv": ('who wrote it\t[\'J. R. R. Tolkien\', \'the "Prof"\']\nhow many\t["7", "seven"]\n', ANSWERED),
    "quoted.qa.csv": ('who wrote it\t"[\'J. R. R. Tolkien\', \'the ""Prof""\']"\nhow many\t"[""7"", ""seven""]"\n', ANSWERED),
    "three.tsv": ('1\twho wrote it\t["J. R. R. Tolkien", "the \\"Prof\\""]\n2\thow many\t["7", "seven"]\n', ANSWERED),
    "train.json": (
        '[{"question": "who wrote it", "answers": ["J. R. R. Tolkien", "the \\"Prof\\""], "positive_ctxs": []},\n'
        ' {"question": "how many", "answers": ["7", "seven"]}]',
        ANSWERED,
    ),
    "topics.txt": (TOPICS, {"51": Query("Airbus Subsidies"), "A-2": Query("second title")}),
    "topics.51-100": (TOPICS, {"51": Query("Airbus Subsidies"), "A-2": Query("second title")}),
    "languages.jsonl": (
        '{"id": "a", "query": "wo", "metadata": {"lang": "de", "answers": ["hier"], "more": 1}}\n'
        '{"id": "b", "question": "où", "language": "fr", "answers": ["ici"]}\n'
        '{"id": "c", "text": "where", "metadata": {"answers": "free text", "lang": 5}}\n',
        {"a": Query("wo", "de", ("hier",)), "b": Query("où", "fr", ("ici",)), "c": Query("where")},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read(name: str, tmp_path: Path) -> None:
    text, expected = FORMS[name]
    (tmp_path / name).write_bytes(text.encode())
    assert read_queries(tmp_path / name) == expected
    assert list(read_queries(tmp_path / name)) == list(expected)


def test_compressed_files_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "nq.qa.csv.gz", "wt") as file:
        file.write("who\t['me']\n")
    assert read_queries(tmp_path / "nq.qa.csv.gz") == {"1": Query("who", answers=("me",))}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("q.jsonl", "", "q.jsonl holds no query"),
        ("q.tsv", "", "q.tsv holds no query"),
        ("q.txt", "plain words", "q.txt holds no query; expected JSON, a table, or TREC topics"),
        ("q.jsonl", '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', "q.jsonl:2: the query id 'a' was read before"),
        ("q.tsv", "a\tx\nb\ty\na\tz\n", "q.tsv:3: the query id 'a' was read before"),
        ("q.txt", TOPICS + TOPICS, "q.txt:13: the query id '51' was read before"),
        ("q.jsonl", '{"id": "a", "text": ""}\n', "q.jsonl:1: the query 'a' is ''; expected"),
        ("q.jsonl", '{"id": "a", "title": "x"}\n', "q.jsonl:1: there is no field 'text' or 'question' or 'query'"),
        ("q.jsonl", '{"id": "a", "text": "x", "answers": [1]}\n', "q.jsonl:1: the field 'answers' holds"),
        ("q.jsonl", '{"id": "a", "text": "\\ud800"}\n', "lone surrogate"),
        ("q.jsonl", '{"id": "a", "text"\n', "q.jsonl:1: broken JSON"),
        ("q.tsv", "a\n", "q.tsv:1: the row has 1 columns"),
        ("q.tsv", "a\tb\tc\td\n", "q.tsv:1: the row has 4 columns"),
        ("q.csv", "who\t[broken\n", r"q.csv:1: the answers are '\[broken'; expected a list such as"),
        ("q.csv", "who\t[1, 2]\n", "q.csv:1: the answers are .* expected a list of strings"),
        ("q.csv", "who\t['a', open('x')]\n", "q.csv:1: the answers are"),
        ("q.txt", "<top><num> 1 </top>", "q.txt:1: the topic has no <title>"),
        ("q.txt", "<top><title> 1 </top>", "q.txt:1: the topic has no <num>"),
        ("q.txt", "<top><num> 1 <title> a </top>\n<top><num> 2 <title> b", "q.txt:2: the topic that starts here is not closed"),
        ("q.txt", "<top><num> 1 <title> a\n<top><num> 2 <title> b </top>", "q.txt:1: the topic that starts here is not closed"),
    ],
)
def test_errors_name_the_line(name: str, text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=says):
        read_queries(tmp_path / name)
