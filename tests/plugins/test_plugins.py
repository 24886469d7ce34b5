"""A lens and a reader of another package, from the index to the web page, with nothing but their entry points."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")

from ..http.running import SOURCE, Running, running

HERE = Path(__file__).parent
MODULES = ("overlap_lens.py", "upper_reader.py")
ENTRY_POINTS = "[trilens.lenses]\noverlap = overlap_lens:OVERLAP\n\n[trilens.readers]\nupper = upper_reader:UPPER\n"
DOCUMENTS = {"fox": "The quick brown fox jumps over the lazy dog.", "cab": "A bad cab.", "sea": "Seals eat eels."}

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name in MODULES:
        shutil.copy(HERE / name, folder)
    info = folder / "overlap-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: overlap\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


@pytest.fixture(scope="module")
def trilens(site: Path) -> Run:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(SOURCE)])}

    def run(*arguments: object) -> Any:
        command = [sys.executable, "-m", "trilens", *map(str, arguments), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="module")
def collection(trilens: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    for name, text in DOCUMENTS.items():
        (folder / f"{name}.txt").write_text(text)
    (folder / "zebra.upper").write_bytes(b"\x05zEBRAignored")
    path = folder.parent / "letters.trilens"
    trilens("index", folder, "--to", path, "--lens", "bm25,overlap", "--config", '{"overlap": {"ignore": " ."}}')
    return path


@pytest.fixture(scope="module")
def served(site: Path, collection: Path) -> Iterator[Running]:
    with running(collection, PYTHONPATH=os.pathsep.join([str(site), str(SOURCE)])) as service:
        yield service


def test_the_plug_ins_are_small() -> None:
    assert all(len((HERE / name).read_text().splitlines()) < 80 for name in MODULES)


def test_the_reader_reads_a_binary_format(trilens: Run, collection: Path) -> None:
    document = trilens("get", collection, "zebra.upper")
    assert (document["text"], document["metadata"]["bytes"]) == ("Zebra", 13)


def test_the_lens_is_searched_with_its_parameters_and_configuration(trilens: Run, collection: Path) -> None:
    info = trilens("info", collection)
    assert (info["lenses"], info["config"]["overlap"]) == (["bm25", "overlap"], {"ignore": " ."})
    hits = trilens("search", collection, "abc z", "--lens", "overlap")["hits"]
    scores = {hit["doc_id"]: hit["score"] for hit in hits}
    assert scores == {"fox.txt": 1.0, "cab.txt": 0.75, "zebra.upper": 0.75, "sea.txt": 0.25}
    squared = trilens("search", collection, "abc z", "--lens", "overlap", "--params", "overlap:power=2")["hits"]
    assert {hit["doc_id"]: hit["score"] for hit in squared} == {name: score**2 for name, score in scores.items()}


def test_it_is_fused_re_ranks_and_is_explained(trilens: Run, collection: Path) -> None:
    fused = trilens("search", collection, "quick cab", "--fusion", "zscore:overlap=2,bm25=1")["hits"]
    assert set(fused[0]["by_lens"]) == {"bm25", "overlap"}
    reranked = trilens("search", collection, "quick cab", "--lens", "bm25", "--rerank", "overlap")["hits"]
    assert [hit["score"] for hit in reranked] == sorted((hit["by_lens"]["overlap"]["score"] for hit in reranked), reverse=True)
    explained = trilens("explain", collection, "quick cab", "fox.txt", "--lens", "overlap")
    assert sum(part["score"] for part in explained["parts"]) == pytest.approx(explained["score"])
    whole = trilens("explain", collection, "quick cab", "fox.txt")
    assert [child["lens"] for child in whole["children"]] == ["bm25", "overlap"]


def test_it_survives_updates_and_merges(trilens: Run, collection: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(collection, tmp_path / "copy.trilens"))
    (tmp_path / "more.jsonl").write_text('{"id": "new", "text": "zzz"}\n')
    trilens("index", tmp_path / "more.jsonl", "--to", copy)
    trilens("delete", copy, "cab.txt")
    trilens("optimize", copy)
    hits = trilens("search", copy, "z", "--lens", "overlap")["hits"]
    assert {hit["doc_id"]: hit["score"] for hit in hits} == {"fox.txt": 1, "zebra.upper": 1, "new": 1, "sea.txt": 0}
    assert trilens("check", copy)["problems"] == []


def test_it_is_evaluated(trilens: Run, tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": name, "title": "", "text": text}) + "\n" for name, text in DOCUMENTS.items())
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "1", "text": "quick brown"}\n{"_id": "2", "text": "bad cab"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\tfox\t1\n2\tcab\t1\n")
    lenses, to = ("--lens", "bm25,overlap"), ("--to", tmp_path / "runs")
    variants = ("--variant", "overlap:power=3", "--variant", "rrf:overlap=2,bm25=1")
    result = trilens("eval", tmp_path, *lenses, *to, *variants, "--measure", "RR@10")
    assert {row["lens"]: row["RR@10"] for row in result["results"]}["overlap"] == 0.75  # the fox has the letters of both
    assert len(result["results"]) == 4


def test_it_is_served(served: Running) -> None:
    facts = served.call("GET", "/collections").json()
    (lens,) = [lens for lens in facts["lenses"] if lens["name"] == "overlap"]
    assert (lens["description"], lens["colour"], lens["dark_colour"]) == ("letters in common", "#123456", "#abcdef")
    body = {"queries": ["abc"], "lenses": ["overlap"], "params": {"overlap": {"power": 2}}}
    answer = served.call("POST", "/collections/letters/search", json=body).json()
    assert answer["answers"][0]["hits"][0]["doc_id"] == "cab.txt"
    refused = served.call("POST", "/collections/letters/search", json={**body, "params": {"overlap": {"power": 0}}})
    assert (refused.status_code, "params.overlap.power is 0" in refused.json()["error"]) == (422, True)
    assert "overlap" in json.dumps(served.call("GET", "/../../openapi.json").json())


def test_it_is_shown_on_the_page(served: Running) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium: ./scripts/browser installs it")
    with sync_api.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        page = browser.new_page()
        page.goto(served.address)
        about = page.locator(".about li", has_text="overlap")
        sync_api.expect(about).to_contain_text("Letters in common.")
        assert about.locator(".dot").evaluate("dot => getComputedStyle(dot).backgroundColor") == "rgb(18, 52, 86)"
        page.goto(f"{served.address}?q=bad+cab&view=side")
        column = page.locator(".column", has_text="overlap")
        sync_api.expect(column.locator(".hit .title").first).to_contain_text("cab")
        column.locator(".hit .title").first.click()
        sync_api.expect(page.get_by_role("tab", name="overlap")).to_be_visible()
        browser.close()
