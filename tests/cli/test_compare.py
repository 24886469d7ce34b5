"""The compare command and the report of eval, as users meet them."""

import json
import shutil
from pathlib import Path

import pytest

from tests.development_data import DATA, needs_data

from .conftest import Trilens

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
ADI = DATA / "adi"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "letters"
    (folder / "qrels").mkdir(parents=True)
    docs = [{"_id": name, "title": "", "text": f"All about {name} and other letters."} for name in NAMES]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    (folder / "queries.jsonl").write_text("".join(json.dumps({"_id": f"q-{n}", "text": f"what is {n}"}) + "\n" for n in NAMES))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"q-{n}\t{n}\t1\n" for n in NAMES))
    return folder


def write(path: Path, ranks: dict[str, list[str]]) -> Path:
    lines = [
        f"q-{query} Q0 {doc} {rank} {10 - rank} tag\n"
        for query, docs in ranks.items()
        for rank, doc in enumerate(docs, start=1)
    ]
    path.write_text("".join(lines))
    return path


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    good = {name: [name, "alpha" if name != "alpha" else "beta"] for name in NAMES}
    bad = {name: list(reversed(docs)) for name, docs in good.items()}
    return write(tmp_path / "test.good.trec", good), write(tmp_path / "test.bad.trec", bad)


def test_for_people_and_programs(data: Path, runs: tuple[Path, Path], trilens: Trilens) -> None:
    shown = trilens("compare", *runs, "--dataset", data)
    assert (shown.code, shown.err) == (0, "")
    words = " ".join(shown.out.split())
    assert "good reaches nDCG@10 1.000 over 10 queries" in words
    assert "The lead is significant" in words
    found = trilens("compare", *runs, "--dataset", data, "--measure", "RR", "--examples", 10, "--json").json
    [pair] = found["pairs"]
    assert (pair["first"], pair["second"], pair["difference"], pair["wins"]) == ("good", "bad", 0.5, 10)
    assert pair["p"] == pair["p_holm"] == 2 / 2**10
    assert found["examples"][0]["ranks"] == {"good": 1, "bad": 2}
    assert found["examples"][0]["query"] == "what is alpha"


def test_datasets_of_other_layouts(data: Path, runs: tuple[Path, Path], tmp_path: Path, trilens: Trilens) -> None:
    trec, answered = tmp_path / "trec", tmp_path / "answered"
    for folder in (trec, answered):
        folder.mkdir()
        shutil.copy(data / "corpus.jsonl", folder)
    (trec / "topics.test.tsv").write_text("".join(f"q-{name}\twhat is {name}\n" for name in NAMES))
    (trec / "qrels.test.txt").write_text("".join(f"q-{name} 0 {name} 1\n" for name in NAMES))
    (answered / "nq-test.qa.csv").write_text("".join(f"what is {name}\t['{name}']\n" for name in NAMES))
    plain = trilens("compare", *runs, "--dataset", data, "--json").json
    assert trilens("compare", *runs, "--dataset", trec, "--json").json == plain
    judged = trilens("compare", *runs, "--dataset", trec, "--qrels", trec / "qrels.test.txt", "--json").json
    assert judged == plain
    refused = trilens("compare", *runs, "--dataset", answered, "--split", "nq-test")
    assert (refused.code, refused.err.count("\n")) == (1, 1)
    assert "has answers but no judgements" in refused.err
    made = trilens("index", data, "--to", tmp_path / "letters.trilens", "--lens", "bm25,tokens")
    assert made.code == 0
    (trec / "topics.dev.tsv").write_text((trec / "topics.test.tsv").read_text())
    (trec / "qrels.dev.txt").write_text((trec / "qrels.test.txt").read_text())
    tuned = trilens("tune", tmp_path / "letters.trilens", trec, "--policy", "zscore", "--json").json
    assert (tuned["dataset"], tuned["queries"]) == ("trec", len(NAMES))


def test_judgements_from_a_trec_file(tmp_path: Path, runs: tuple[Path, Path], trilens: Trilens) -> None:
    qrels = tmp_path / "judged.qrels"
    qrels.write_text("".join(f"q-{name} 0 {name} 1\n" for name in [*NAMES[:6], "never"]))
    found = trilens("compare", f"a={runs[0]}", f"b={runs[1]}", "--qrels", qrels, "--measure", "RR", "--json").json
    assert found["queries"] == 7
    assert found["runs"][0] == {
        "run": "a",
        "RR": pytest.approx(6 / 7),
        "absent_queries": ["q-never"],
        "unjudged_queries": [f"q-{name}" for name in NAMES[6:]],
    }
    shown = trilens("compare", f"a={runs[0]}", f"b={runs[1]}", "--qrels", qrels)
    words = " ".join(shown.out.split())
    assert "note: a lacks 1 judged query (q-never); each counts as zero" in words
    assert "note: b has 4 queries (q-eta, q-theta, q-iota, q-kappa) without judgements" in words


def test_a_returned_document_that_is_not_in_the_collection(
    data: Path, runs: tuple[Path, Path], tmp_path: Path, trilens: Trilens
) -> None:
    trilens("index", data / "corpus.jsonl", "--to", tmp_path / "c", "--lens", "bm25")
    strange = write(tmp_path / "test.strange.trec", {name: ["elsewhere", name] for name in NAMES[:3]})
    outcome = trilens("compare", runs[0], strange, "--dataset", data, "--collection", tmp_path / "c", "--examples", 10)
    assert outcome.code == 0
    assert "warning: q-alpha is not explained" in outcome.err and "has no document 'elsewhere'" in outcome.err


def test_ranks_are_those_that_were_measured(data: Path, tmp_path: Path, runs: tuple[Path, Path], trilens: Trilens) -> None:
    """Scores that differ beyond 32 bits are equal, and of equals the larger id comes first."""
    (tmp_path / "test.near.trec").write_text("q-alpha Q0 alpha 1 5.00000001 x\nq-alpha Q0 beta 2 5.0 x\n")
    found = trilens(
        "compare", runs[0], tmp_path / "test.near.trec", "--dataset", data, "--measure", "RR", "--examples", 10, "--json"
    ).json
    shown = {example["query_id"]: (example["values"]["near"], example["ranks"]["near"]) for example in found["examples"]}
    assert shown["q-alpha"] == (0.5, 2)


def test_a_run_against_itself(data: Path, runs: tuple[Path, Path], trilens: Trilens) -> None:
    found = trilens("compare", runs[0], f"again={runs[0]}", "--dataset", data, "--json").json
    assert all((pair["p"], pair["p_holm"], pair["ties"]) == (1.0, 1.0, 10) for pair in found["pairs"])
    assert found["examples"] == []


def test_reasons_pages_and_pictures(tmp_path: Path, data: Path, runs: tuple[Path, Path], trilens: Trilens) -> None:
    collection = tmp_path / "c.trilens"
    assert trilens("index", data, "--to", collection, "--lens", "bm25,tokens").code == 0
    page, picture, table = tmp_path / "c.html", tmp_path / "c.png", tmp_path / "c.md"
    files = ["--html", page, "--png", picture, "--markdown", table]
    shown = trilens("compare", *runs, "--dataset", data, "--collection", collection, "--examples", 2, *files)
    assert (shown.code, shown.err) == (0, "")
    assert "q-alpha: alpha against beta, which bad put above it" in " ".join(shown.out.split())
    assert "what is alpha" in page.read_text() and "tokens" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "| good | 1.0000 |" in table.read_text()
    found = trilens("compare", *runs, "--dataset", data, "--collection", collection, "--lens", "bm25", "--json").json
    [why] = found["examples"][0]["why"]
    assert why["lens"] == "bm25" and why["gains"][0]["word"] == "alpha" and why["gains"][0]["gain"] > 0
    assert sum(gain["gain"] for gain in why["gains"]) == pytest.approx(why["score"] - why["rival_score"], abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["GOOD", "--dataset", "DATA"], "got one run, test.good; expected two or more"),
        (["GOOD", "GOOD", "--dataset", "DATA"], "would both be called 'good'"),
        (["GOOD", "BAD"], "give --qrels FILE or --dataset FOLDER"),
        (["GOOD", "BAD", "--dataset", "DATA", "--measure", "beauty"], "measure is 'beauty'"),
        (["GOOD", "BAD", "--dataset", "DATA", "--measure", "alpha_nDCG@10"], "measure is 'alpha_nDCG@10'"),
        (["GOOD", "BAD", "--dataset", "DATA", "--split", "dev"], "has no split 'dev'"),
        (["GOOD", "nowhere.trec", "--dataset", "DATA"], "nowhere.trec does not exist"),
        (["GOOD", "broken=QRELS", "--dataset", "DATA"], "test.tsv:1: the line is"),
        (["GOOD", "=BAD", "--dataset", "DATA"], "has no name or no file"),
        (["GOOD", "BAD", "--qrels", "GOOD"], "expected query-id, corpus-id"),
        (["GOOD", "BAD", "--dataset", "DATA", "--collection", "nowhere"], "there is no collection at nowhere"),
        (["GOOD", "BAD", "--qrels", "QRELS", "--collection", "nowhere"], "expected --dataset FOLDER"),
        (["GOOD", "BAD", "--dataset", "DATA", "--png", "c.gif"], "expected .png"),
        (["GOOD", "BAD", "--dataset", "DATA", "--html", "/nowhere/c.html"], "no folder /nowhere for c.html"),
    ],
)
def test_what_is_refused(arguments: list[str], says: str, data: Path, runs: tuple[Path, Path], trilens: Trilens) -> None:
    places = {"GOOD": str(runs[0]), "BAD": str(runs[1]), "DATA": str(data), "QRELS": str(data / "qrels" / "test.tsv")}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    outcome = trilens("compare", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert says in outcome.err
    assert outcome.err.count("\n") == 1


def test_eval_writes_a_report_of_lenses_and_variants(tmp_path: Path, data: Path, trilens: Trilens) -> None:
    report = tmp_path / "report.html"
    variants = ["--variant", "rrf", "--variant", "tokens:query=bag"]
    outcome = trilens("eval", data, "--lens", "bm25,tokens", *variants, "--to", tmp_path / "runs", "--report", report, "--json")
    assert [row["lens"] for row in outcome.json["results"]] == ["bm25", "tokens", "rrf", "tokens:query=bag"]
    assert (tmp_path / "runs" / "test.tokens_query=bag.trec").exists()
    page = report.read_text()
    assert "Retrieval quality by lens" in page and "tokens:query=bag" in page
    files = [tmp_path / "runs" / f"test.{name}.trec" for name in ("bm25", "rrf", "tokens_query=bag")]
    assert trilens("compare", *files, "--dataset", data, "--json").json["runs"][1]["run"] == "rrf"


def test_eval_of_several_folders(tmp_path: Path, data: Path, trilens: Trilens) -> None:
    report = tmp_path / "report.html"
    folders = [data, shutil.copytree(data, tmp_path / "second")]
    outcome = trilens("eval", *folders, "--lens", "bm25,tokens", "--to", tmp_path / "runs", "--report", report, "--json")
    assert [json.loads(line)["dataset"] for line in outcome.out.splitlines()] == ["letters", "second"]
    assert (tmp_path / "runs" / "second" / "test.bm25.trec").exists()
    assert 'href="#set-2"' in report.read_text()
    outcome = trilens("eval", data, data, "--to", tmp_path / "runs")
    assert outcome.code == 1 and "two datasets are named letters" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--variant", "smell"], "variant 'smell'"),
        (["--variant", "bm25"], "two runs would be called 'bm25'"),
        (["--report", "/nowhere/report.html"], "no folder /nowhere"),
        (["--report", "."], "cannot be written; expected a file"),
        (["--runs", "DATA/corpus.jsonl"], "runs cannot be written to"),
        (["--measure", "ERR@10"], "some measures require numeric query ids"),
    ],
)
def test_what_eval_refuses(arguments: list[str], says: str, tmp_path: Path, data: Path, trilens: Trilens) -> None:
    arguments = [argument.replace("DATA", str(data)) for argument in arguments]
    outcome = trilens("eval", data, "--lens", "bm25", "--to", tmp_path / "runs", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert not (tmp_path / "runs").exists()
    assert says in outcome.err


@needs_data
def test_eval_and_compare_agree_on_real_judgements(tmp_path: Path, trilens: Trilens) -> None:
    measured = trilens("eval", ADI, "--lens", "bm25,tokens", "--to", tmp_path, "--json").json["results"]
    files = [tmp_path / f"test.{name}.trec" for name in ("bm25", "tokens")]
    found = trilens("compare", *files, "--dataset", ADI, "--json").json
    for told, row in zip(found["runs"], measured, strict=True):
        for name in found["measures"]:
            assert told[name] == pytest.approx(row[name], abs=1e-3)  # run files round scores, which may tie
