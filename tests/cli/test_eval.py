"""`trilens eval` as users meet it: every layout, what is printed and written, and what is told when data are not in order."""

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import CORPUS, Outcome, Trilens

JUDGEMENTS = "query-id\tcorpus-id\tscore\nq1\tmkdir\t1\nq2\tsqrt\t1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three documents and two judged queries in the BEIR layout; what is written without being asked for goes elsewhere."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "tiny"
    (place / "qrels").mkdir(parents=True)
    (place / "corpus.jsonl").write_text("".join(json.dumps({"_id": d["id"], "text": d["text"]}) + "\n" for d in CORPUS))
    (place / "queries.jsonl").write_text('{"_id": "q1", "text": "delete directory"}\n{"_id": "q2", "text": "root"}\n')
    (place / "qrels" / "test.tsv").write_text(JUDGEMENTS)
    return place


def add(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def one_line(outcome: Outcome) -> str:
    """The error of a command that did nothing else."""
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    return outcome.err


def test_measures_and_runs(folder: Path, tmp_path: Path, trilens: Trilens) -> None:
    answer = trilens("eval", folder, "--lens", "bm25", "--to", tmp_path / "kept", "--runs", tmp_path / "runs", "--json").json
    (result,) = answer["results"]
    assert (answer["dataset"], answer["split"], answer["queries"]) == ("tiny", "test", 2)
    assert set(answer["data"].values()) == {0}
    assert set(result) == {"lens", "nDCG@10", "R@100", "AP", "RR@10", "ms_per_query", "nothing_found"}
    # q1 finds mkdir second, q2 finds sqrt first: reciprocal ranks 1/2 and 1.
    assert result["RR@10"] == pytest.approx((1 / 2 + 1) / 2)
    assert result["R@100"] == 1
    lines = [line.split() for line in (tmp_path / "runs" / "test.bm25.trec").read_text().splitlines()]
    assert [(line[0], line[2], line[3]) for line in lines] == [("q1", "rmtree", "1"), ("q1", "mkdir", "2"), ("q2", "sqrt", "1")]
    shown = trilens("eval", folder, "--lens", "bm25", "--to", tmp_path / "kept")
    assert "tiny, test: 2 queries" in shown.out
    assert "runs are in" in shown.out


def test_measures_are_chosen(folder: Path, trilens: Trilens) -> None:
    (result,) = trilens("eval", folder, "--lens", "bm25", "--measure", "MRR@1", "--measure", "P@2", "--json").json["results"]
    assert list(result)[1:3] == ["RR@1", "P@2"]
    assert (result["RR@1"], result["P@2"]) == (0.5, 0.5)


def test_fusions_are_measured_beside_lenses(folder: Path, trilens: Trilens) -> None:
    told = trilens("eval", folder, "--fusion", "rrf", "--fusion", "zscore:bm25=1,dense=2", "--json").json
    assert [result["lens"] for result in told["results"]] == ["bm25", "dense", "multi", "rrf", "zscore:bm25=1,dense=2"]
    assert {path.name for path in Path("runs/tiny").glob("*.trec")} == {
        "test.bm25.trec",
        "test.dense.trec",
        "test.multi.trec",
        "test.rrf.trec",
        "test.zscore_bm25=1_dense=2.trec",
    }


def test_the_corpus_is_indexed_once_and_follows_its_file(folder: Path, trilens: Trilens) -> None:
    assert trilens("eval", folder, "--json").code == 0
    assert [path.name for path in Path("runs/tiny").glob("*.trilens")] == ["all.trilens"]
    before = trilens("info", "runs/tiny/all.trilens", "--json").json
    assert trilens("eval", folder, "--lens", "bm25", "--json").code == 0
    assert trilens("info", "runs/tiny/all.trilens", "--json").json == before
    assert trilens("eval", folder, "--lens", "bm25", "--language", "none", "--json").code == 0
    assert {path.name for path in Path("runs/tiny").glob("*.trilens")} == {"all.trilens", "bm25.trilens"}
    kept = [line for line in (folder / "corpus.jsonl").read_text().splitlines() if "rmtree" not in line]
    (folder / "corpus.jsonl").write_text("\n".join(kept) + "\n")
    (result,) = trilens("eval", folder, "--lens", "bm25", "--json").json["results"]
    assert result["RR@10"] == 1  # nothing stands before mkdir any more
    assert trilens("info", "runs/tiny/all.trilens", "--json").json["documents"] == 2


def test_groups_of_languages_in_a_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    """Both documents are right for both queries; each query finds the one in its language alone."""
    monkeypatch.chdir(tmp_path)
    pool = tmp_path / "all"
    (pool / "qrels").mkdir(parents=True)
    texts = {"en": "the castle was destroyed", "de": "die Burg wurde zerstört", "fr": "le château"}
    queries = {"en": "castle", "de": "Burg", "fr": "castle zerstört"}
    for name, chosen in (("corpus", texts), ("queries", queries)):
        records = [{"_id": f"{lang}:1", "text": text, "metadata": {"lang": lang}} for lang, text in chosen.items()]
        (pool / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (pool / "qrels" / "test.tsv").write_text("".join(f"{query}:1\t{doc}:1\t1\n" for query in queries for doc in ("en", "de")))
    command = ["eval", pool, "--lens", "bm25", "--language", "none", "--by", "language", "--measure", "R@10"]
    (result,) = trilens(*command, "--json").json["results"]
    assert result["R@10"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert result["groups"] == [
        {"by": "language", "label": "de", "queries": 1, "R@10": 0.5},
        {"by": "language", "label": "en", "queries": 1, "R@10": 0.5},
        {"by": "language", "label": "fr", "queries": 1, "R@10": 1.0},
    ]
    shown = trilens(*command).out
    assert "by the language of the query" in shown
    assert "│ fr " in shown
    (result,) = trilens(*command, "--lang", "de,fr", "--json").json["results"]
    assert result["R@10"] == pytest.approx((0.5 + 1) / 2)
    assert "no query in language 'it'; expected one of de, en, fr" in one_line(trilens(*command, "--lang", "it"))


def test_groups_of_lengths(folder: Path, trilens: Trilens) -> None:
    add(folder / "corpus.jsonl", json.dumps({"_id": "long", "text": "tangent " * 65}) + "\n")
    add(folder / "queries.jsonl", '{"_id": "q3", "text": "tangent"}\n')
    add(folder / "qrels" / "test.tsv", "q3\tlong\t1\nq3\tmissing\t1\nq2\tmkdir\t0\n")
    outcome = trilens("eval", folder, "--lens", "bm25", "--by", "length", "--measure", "RR", "--json")
    assert outcome.json["results"][0]["groups"] == [
        {"by": "length", "label": "1–64 words", "queries": 2, "RR": 0.75},
        {"by": "length", "label": "65–128 words", "queries": 1, "RR": 1.0},
    ]


def hits(outcome: Outcome) -> dict[str, Any]:
    (result,) = outcome.json["results"]
    return {name: value for name, value in result.items() if name.startswith("Hit")}


def test_answers_are_looked_for_in_what_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    """DPR: the title does not count, and an answer is found token by token."""
    monkeypatch.chdir(tmp_path)
    rows = ["id\ttext\ttitle", "1\tthe priest of the book, born 1973\tAaron", "2\tthe priest priest Aaron\tBook", "3\tother\tx"]
    (tmp_path / "psgs.tsv").write_text("\n".join(rows) + "\n")
    questions = "who is the priest\t['Aaron']\nwhen was the priest of the book born\t['1973', 'never']\nwho is other\t['197']\n"
    (tmp_path / "test.qa.csv").write_text(questions)
    command = ["eval", "psgs.tsv", "--queries", "test.qa.csv", "--lens", "bm25", "--json"]
    assert hits(trilens(*command)) == pytest.approx(
        dict.fromkeys(["Hit@1", "Hit@5", "Hit@10", "Hit@20", "Hit@100"], 2 / 3), abs=1e-6
    )
    (tmp_path / "test.qa.csv").write_text("when was the priest of the book born\t['19\\\\d\\\\d']\n")
    assert hits(trilens(*command, "--measure", "Hit@1")) == {"Hit@1": 0}
    assert hits(trilens(*command, "--measure", "Hit@1", "--answers", "regex")) == {"Hit@1": 1}
    assert "--answers is 'fuzzy'; expected string or regex" in one_line(trilens(*command, "--answers", "fuzzy"))
    assert "nDCG@10 needs judgements" in one_line(trilens(*command, "--measure", "nDCG@10"))
    assert "need judgements" in one_line(trilens(*command, "--by", "length"))
    assert "--report needs a measure over judgements" in one_line(trilens(*command, "--report", "r.html"))


def test_judged_queries_may_have_answers_too(folder: Path, trilens: Trilens) -> None:
    answered = {"_id": "q1", "text": "delete directory", "metadata": {"answers": ["a directory tree"]}}
    queries = json.dumps(answered) + '\n{"_id": "q2", "text": "root"}\n'
    (folder / "queries.jsonl").write_text(queries)
    outcome = trilens("eval", folder, "--lens", "bm25", "--measure", "RR", "--measure", "Hit@1", "--json")
    (result,) = outcome.json["results"]
    assert (result["RR"], result["Hit@1"]) == (0.75, 1)
    assert outcome.json["data"]["without_answers"] == 1
    assert "1 judged queries have no answers: Hit@k is averaged over the others" in outcome.err


def test_mkqa_asks_in_every_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "corpus.jsonl").write_text(
        '{"_id": "1", "text": "Paris is the capital of France"}\n{"_id": "2", "text": "x"}\n'
    )
    example = {
        "example_id": 1,
        "queries": {"en": "capital of France", "de": "Hauptstadt von Frankreich"},
        "answers": {"en": [{"type": "entity", "text": "Paris", "aliases": []}]},
    }
    (tmp_path / "m" / "mkqa.jsonl").write_text(json.dumps(example) + "\n")
    outcome = trilens("eval", "m", "--lens", "bm25", "--by", "language", "--measure", "Hit@10", "--json")
    assert hits(outcome) == {"Hit@10": 0.5}
    assert [(group["label"], group["Hit@10"]) for group in outcome.json["results"][0]["groups"]] == [("de", 0), ("en", 1)]
    assert "bm25 found nothing for 1 queries: they count as zero" in outcome.err


def test_topics_and_judgements_of_trec(folder: Path, tmp_path: Path, trilens: Trilens) -> None:
    topics = "".join(
        f"<top>\n<num> Number: {n}\n<title> {text}\n</top>\n" for n, text in ((1, "delete directory"), (2, "root"))
    )
    (tmp_path / "topics.txt").write_text(topics)
    (tmp_path / "judged.txt").write_text("1 0 mkdir 2\n2 0 sqrt 1\n2 0 mkdir 0\n")
    command = ["eval", folder / "corpus.jsonl", "--queries", "topics.txt", "--qrels", "judged.txt", "--lens", "bm25", "--json"]
    answer = trilens(*command).json
    assert (answer["dataset"], answer["split"], answer["results"][0]["RR@10"]) == ("corpus", "topics", 0.75)


def no_qrels(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").unlink()


def malformed_qrels(folder: Path) -> None:
    add(folder / "qrels" / "test.tsv", "q1\trmtree\thigh\n")


def judged_but_unknown_query(folder: Path) -> None:
    add(folder / "qrels" / "test.tsv", "q9\trmtree\t1\n")


def duplicate_query(folder: Path) -> None:
    add(folder / "queries.jsonl", '{"_id": "q1", "text": "again"}\n')


def no_queries(folder: Path) -> None:
    (folder / "queries.jsonl").unlink()


def another_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text('{"_id": "other", "text": "root directory"}\n')


def nothing_relevant(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text("q1\tmkdir\t0\nq2\tsqrt\t-1\n")


def nothing_found(folder: Path) -> None:
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "zebra"}\n{"_id": "q2", "text": "the of"}\n')


def spaces_in_ids(folder: Path) -> None:
    (folder / "qrels" / "test.tsv").write_text("q1\tmk dir\t1\n")


def empty_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("")


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (no_qrels, "has no split 'test'; expected a file qrels/<split>.tsv"),
        (malformed_qrels, "test.tsv:4: the line is 'q1\\trmtree\\thigh'; expected"),
        (judged_but_unknown_query, "judges 1 unknown queries, such as 'q9'"),
        (duplicate_query, "queries.jsonl:3: the query id 'q1' was read before"),
        (no_queries, "has no queries.jsonl"),
        (another_corpus, "none of the 2 relevant documents of split 'test' is in the corpus, such as 'mkdir'"),
        (nothing_relevant, "judges no document relevant"),
        (nothing_found, "bm25 found no documents for any of the 2 queries"),
        (empty_corpus, "holds no record"),
        (spaces_in_ids, "id 'mk dir' cannot be written to a TREC run"),
    ],
)
def test_data_that_cannot_be_measured_is_one_line(damage: Any, says: str, folder: Path, trilens: Trilens) -> None:
    damage(folder)
    assert says in one_line(trilens("eval", folder, "--lens", "bm25"))


def unjudged_query(folder: Path) -> None:
    add(folder / "queries.jsonl", '{"_id": "q3", "text": "asked in vain"}\n')


def missing_documents(folder: Path) -> None:
    add(folder / "qrels" / "test.tsv", "q1\tnowhere\t1\nq2\tgone\t0\n")


def query_without_relevant(folder: Path) -> None:
    add(folder / "queries.jsonl", '{"_id": "q3", "text": "square"}\n')
    add(folder / "qrels" / "test.tsv", "q3\tsqrt\t0\n")


def query_that_finds_nothing(folder: Path) -> None:
    add(folder / "queries.jsonl", '{"_id": "q3", "text": "zebra"}\n')
    add(folder / "qrels" / "test.tsv", "q3\tsqrt\t1\n")


@pytest.mark.parametrize(
    ("oddity", "says", "count", "recall"),
    [
        (unjudged_query, "1 queries have neither judgements nor answers: they are skipped", {"unjudged": 1}, 1),
        (
            missing_documents,
            "2 judged documents are not in the corpus, 1 of them relevant: these count as not retrieved",
            {"missing_documents": 2, "missing_relevant": 1},
            (1 / 2 + 1) / 2,
        ),
        (query_without_relevant, "1 queries have no relevant document", {"nothing_relevant": 1}, 2 / 3),
        (query_that_finds_nothing, "bm25 found nothing for 1 queries: they count as zero", {}, 2 / 3),
    ],
)
def test_what_is_odd_is_counted_and_told(
    oddity: Any, says: str, count: dict[str, int], recall: float, folder: Path, trilens: Trilens
) -> None:
    oddity(folder)
    outcome = trilens("eval", folder, "--lens", "bm25", "--json")
    assert outcome.code == 0
    assert outcome.err.count("\n") == 1
    assert f"warning: {says}" in outcome.err
    assert {name: number for name, number in outcome.json["data"].items() if number} == count
    assert outcome.json["results"][0]["R@100"] == pytest.approx(recall, abs=1e-6)
    assert outcome.json["results"][0]["nothing_found"] == (not count)
    assert says in one_line(trilens("eval", folder, "--lens", "bm25", "--strict"))
    trilens("eval", folder, "--lens", "bm25", "--report", "report.html")
    assert says.removeprefix("1 queries have no ") in Path("report.html").read_text()


def test_queries_of_other_splits_are_not_odd(folder: Path, trilens: Trilens) -> None:
    unjudged_query(folder)
    (folder / "qrels" / "train.tsv").write_text("q3\tsqrt\t1\n")
    assert trilens("eval", folder, "--lens", "bm25", "--strict").err == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["FOLDER", "--measure", "beauty"], "measure is 'beauty'; expected one such as nDCG@10"),
        (["FOLDER", "--measure", "Hit@5"], "Hit@5 needs answers"),
        (["FOLDER", "--split", "dev"], "has no split 'dev'"),
        (["FOLDER", "--lens", "bm25", "--variant", "bm25"], "two runs would be called 'bm25'"),
        (["FOLDER", "--lens", "bm25", "--fusion", "zzz"], "variant 'zzz' does not begin with a lens"),
        (["FOLDER", "--lens", "bm25", "--fusion", "zscore:bm25=1,dense=1"], "needs the lens dense; expected it in --lens bm25"),
        (["FOLDER", "--lens", "smell"], "lenses are smell; expected one or more of bm25"),
        (["FOLDER", "--by", "colour"], "grouping is 'colour'; expected one of language, length"),
        (["FOLDER", "--by", "language"], "have no language; expected a field lang"),
        (["FOLDER", "--qrels", "x"], "--queries is missing; expected both"),
        (["FOLDER", "--queries", "nowhere.tsv"], "nowhere.tsv does not exist"),
        (["FOLDER", "--lang", "de"], "no query in language 'de'"),
        (["FOLDER/qrels"], "has no known layout; expected BEIR"),
        (["FOLDER/corpus.jsonl"], "is not a folder"),
        (["nowhere"], "nowhere is not a folder; expected one in a known layout, or beir/NAME"),
        (["beir/nowhere"], "no BEIR dataset 'nowhere'"),
    ],
)
def test_options_that_do_not_fit_are_one_line(arguments: list[str], says: str, folder: Path, trilens: Trilens) -> None:
    assert says in one_line(trilens("eval", *(argument.replace("FOLDER", str(folder)) for argument in arguments)))


def test_without_a_network_a_folder_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch, trilens: Trilens) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("TRILENS_BEIR_URL", "http://127.0.0.1:9")
    assert "pass its folder instead of the name" in one_line(trilens("eval", "beir/scifact"))
