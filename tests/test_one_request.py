"""Every search option means the same in Python, on the command line, over HTTP, in the client, and in evaluations."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from trilens import Collection, SearchOptions
from trilens.client import Client
from trilens.errors import TrilensError
from trilens.evaluate.variants import parse_variant

from .cli.conftest import Trilens
from .cli.conftest import trilens as trilens
from .http.running import Running, make_collection, running
from .language.servers import Service
from .search.test_hyde import service as service

QUERY = "remove a folder and everything inside it"


class Case(NamedTuple):
    """Options as Python and HTTP take them, and the arguments of the command line that mean the same."""

    options: dict[str, Any]
    arguments: list[str]


# One or more of each option; HYDE stands for the address of a running service.
CASES = {
    "k": [Case({"k": 3}, ["-k", "3"])],
    "offset": [
        Case({"k": 2, "offset": 2}, ["-k", "2", "--offset", "2"]),
        Case({"k": 2, "offset": 1, "lenses": ["bm25"]}, ["-k", "2", "--offset", "1", "--lens", "bm25"]),
    ],
    "lenses": [Case({"lenses": ["bm25", "multi"]}, ["--lens", "bm25,multi"])],
    "filter": [Case({"filter": {"year": {"$lte": 2020}}}, ["--filter", '{"year": {"$lte": 2020}}'])],
    "exact": [Case({"exact": True}, ["--exact"])],
    "rerank": [Case({"lenses": ["bm25"], "rerank": "multi"}, ["--lens", "bm25", "--rerank", "multi"])],
    "params": [
        Case(
            {"lenses": ["multi"], "params": {"multi": {"method": "xtr", "probes": 2}}},
            ["--lens", "multi", "--params", "multi:method=xtr,probes=2"],
        ),
        Case(
            {"lenses": ["sparse"], "params": {"sparse": {"query": "bag", "idf": False}}},
            ["--lens", "sparse", "--params", '{"sparse": {"query": "bag", "idf": false}}'],
        ),
    ],
    "fusion": [
        Case({"fusion": "zscore:bm25=1,dense=2"}, ["--fusion", "zscore:bm25=1,dense=2"]),
        Case({"fusion": {"policy": "minmax", "depth": 5}}, ["--fusion", "minmax:depth=5"]),
        Case({"fusion": "all"}, ["--fusion", "all"]),
    ],
    "expand": [
        Case(
            {"lenses": ["bm25", "sparse"], "expand": "docs=2,terms=3"}, ["--lens", "bm25,sparse", "--expand", "docs=2,terms=3"]
        )
    ],
    "hyde": [
        Case(
            {"lenses": ["dense"], "hyde": {"url": "HYDE", "model": "tiny"}},
            ["--lens", "dense", "--hyde", "HYDE", "--hyde-model", "tiny"],
        ),
        Case(
            {"lenses": ["bm25", "dense"], "hyde": {"url": "HYDE", "lenses": ["bm25"]}},
            ["--lens", "bm25,dense", "--hyde", "HYDE", "--hyde-lens", "bm25"],
        ),
    ],
    "details": [Case({"details": True}, ["--details"])],
}
MISTAKES = [
    (Case({"k": 0}, ["-k", "0"]), "k is 0; expected a value greater than or equal to 1"),
    (Case({"offset": -1}, ["--offset", "-1"]), "offset is -1; expected a value greater than or equal to 0"),
    (Case({"lenses": ["smell"]}, ["--lens", "smell"]), "there is no lens 'smell' in this collection"),
    (Case({"lenses": ["bm25", "bm25"]}, ["--lens", "bm25,bm25"]), "lenses are bm25, bm25; expected one or more, each once"),
    (Case({"filter": {"year": {"$about": 1}}}, ["--filter", '{"year": {"$about": 1}}']), "operator '$about'"),
    (Case({"rerank": "smell"}, ["--rerank", "smell"]), "there is no lens 'smell'"),
    (Case({"params": {"bm52": {}}}, ["--params", '{"bm52": {}}']), "params has 'bm52', which is no lens"),
    (Case({"params": {"multi": {"probes": 0}}}, ["--params", "multi:probes=0"]), "params.multi.probes is 0; expected a value"),
    (Case({"params": {"dense": {"x": 1}}}, ["--params", "dense:x=1"]), "lens dense has no search parameters"),
    (
        Case({"lenses": ["bm25"], "params": {"multi": {"probes": 2}}}, ["--lens", "bm25", "--params", "multi:probes=2"]),
        "params are given for multi, but the lenses searched are bm25",
    ),
    (Case({"fusion": "magic"}, ["--fusion", "magic"]), "fusion is 'magic'; expected a policy"),
    (
        Case({"lenses": ["bm25"], "fusion": "zscore"}, ["--lens", "bm25", "--fusion", "zscore"]),
        "fusion is zscore, but the lenses",
    ),
    (
        Case({"rerank": "multi", "fusion": "zscore"}, ["--rerank", "multi", "--fusion", "zscore"]),
        "fusion is zscore, but multi re-ranks the candidates",
    ),
    (Case({"expand": "docs=0"}, ["--expand", "docs=0"]), "docs is 0; expected a value greater than or equal to 1"),
    (Case({"lenses": ["dense"], "expand": "on"}, ["--lens", "dense", "--expand", "on"]), "expand is given, but the lenses"),
    (Case({"hyde": "nowhere"}, ["--hyde", "nowhere"]), "hyde.url is 'nowhere'; expected an address"),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("parity") / "small.trilens")


@pytest.fixture(scope="module")
def collection(path: Path) -> Iterator[Collection]:
    with Collection.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(path: Path) -> Iterator[Running]:
    with running(path) as started:
        yield started


def with_address(case: Case, url: str) -> Case:
    options, arguments = (
        json.dumps(case.options).replace("HYDE", url),
        [url if one == "HYDE" else one for one in case.arguments],
    )
    return Case(json.loads(options), arguments)


def scores(hits: Any) -> list[tuple[str, Any]]:
    return [(hit["doc_id"], pytest.approx(hit["score"], rel=1e-6)) for hit in hits]


def test_every_option_has_a_case() -> None:
    assert list(CASES) == list(SearchOptions.model_fields)


@pytest.mark.parametrize(("option", "number"), [(option, i) for option, cases in CASES.items() for i in range(len(cases))])
def test_every_option_is_accepted_everywhere_with_the_same_meaning(
    option: str, number: int, path: Path, collection: Collection, served: Running, service: Service, trilens: Trilens
) -> None:
    case = with_address(CASES[option][number], service.url)
    (hits,) = collection.search([QUERY], **case.options)
    expected = [(hit.doc_id, hit.score) for hit in hits]
    assert expected
    assert expected != [(hit.doc_id, hit.score) for hit in collection.search([QUERY])[0]] or option in ("exact", "details")

    said = trilens("search", path, QUERY, *case.arguments, "--json")
    assert said.code == 0, said.err
    assert scores(said.json["hits"]) == expected

    with running(path, "--hyde", service.url) if option == "hyde" else nullcontext(served) as http:
        answer = http.call("POST", "/collections/small/search", json={"queries": [QUERY], **case.options})
        assert answer.status_code == 200, answer.text
        assert scores(answer.json()["answers"][0]["hits"]) == expected
        body = {"query": QUERY, "doc_ids": [hits[0].doc_id], **case.options}
        over_http = http.call("POST", "/collections/small/explain", json=body).json()["explanations"][0]
        with Client(http.address) as client:
            remote = client.collection("small")
            assert remote.search([QUERY], **case.options) == [hits]
            assert remote.search([QUERY], options=SearchOptions(**case.options)) == [hits]
            assert remote.explain(QUERY, hits[0].doc_id, **case.options).to_json() == over_http

    explained = collection.explain(QUERY, hits[0].doc_id, **case.options)
    assert explained.score == pytest.approx(hits[0].score, abs=1e-4)
    assert sum(part.score for part in explained.parts) == pytest.approx(explained.score, abs=1e-4)
    by_command = trilens("explain", path, QUERY, hits[0].doc_id, *case.arguments, "--json").json
    assert by_command == over_http == explained.to_json()

    if option not in ("k", "offset"):  # an evaluation sets it by its measures
        variant = parse_variant(f"named={json.dumps(case.options)}", collection.lenses, collection.model.fusions)
        assert [(hit.doc_id, hit.score) for hit in variant.search(collection, [QUERY], 10)[0]] == expected
        assert variant.explain(collection, QUERY, hits[0].doc_id).score == pytest.approx(explained.score)


@pytest.mark.parametrize(("case", "message"), MISTAKES)
def test_every_mistake_is_refused_everywhere_in_the_same_words(
    case: Case, message: str, path: Path, collection: Collection, served: Running, trilens: Trilens
) -> None:
    with pytest.raises(TrilensError) as searching:
        collection.search([QUERY], **case.options)
    text = str(searching.value)
    assert message in text and "\n" not in text
    with pytest.raises(TrilensError) as explaining:
        collection.explain(QUERY, "rmtree", **case.options)
    assert str(explaining.value) == text
    for command in (["search", path, QUERY], ["explain", path, QUERY, "rmtree"]):
        said = trilens(*command, *case.arguments)
        assert (said.code, said.err) == (1, f"trilens: {text}\n")
    for action, asked in (("search", {"queries": [QUERY]}), ("explain", {"query": QUERY, "doc_ids": ["rmtree"]})):
        answer = served.call("POST", f"/collections/small/{action}", json={**asked, **case.options})
        assert answer.status_code in (400, 422) and answer.json()["error"] == text
    with Client(served.address) as client:
        remote = client.collection("small")
        for ask in (partial(remote.search, [QUERY]), partial(remote.explain, QUERY, "rmtree")):
            with pytest.raises(TrilensError) as over_client:
                ask(**case.options)
            assert (type(over_client.value), str(over_client.value)) == (type(searching.value), text)
    if not {"k", "offset"} & case.options.keys():
        with pytest.raises(TrilensError) as evaluating:
            variant = parse_variant(json.dumps(case.options), collection.lenses, collection.model.fusions)
            variant.search(collection, [QUERY], 10)
        assert str(evaluating.value).endswith(text)


def test_unknown_options_are_refused(path: Path, collection: Collection, served: Running) -> None:
    with pytest.raises(TrilensError, match="option 'where' is not known; expected one of k, offset, lenses") as error:
        collection.search([QUERY], where={})
    answer = served.call("POST", "/collections/small/search", json={"queries": [QUERY], "where": {}})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(str(error.value).split(";")[0])


def test_the_service_calls_only_the_language_models_that_it_was_started_with(path: Path, served: Running) -> None:
    body = {"queries": [QUERY], "lenses": ["dense"], "hyde": "http://127.0.0.1:1/v1"}
    answer = served.call("POST", "/collections/small/search", json=body)
    assert (answer.status_code, "start the service with --hyde URL" in answer.json()["error"]) == (403, True)
    longer = {**body, "hyde": {"url": "http://127.0.0.1:1/v1", "prompt": "Say hello"}}
    with running(path, "--hyde", "http://127.0.0.1:1/v1/") as started:
        answer = started.call("POST", "/collections/small/search", json=body)
        assert (answer.status_code, "cannot be reached" in answer.json()["error"]) == (502, True)
        answer = started.call("POST", "/collections/small/search", json=longer)
        assert (answer.status_code, answer.json()["error"].startswith("hyde has 'prompt'")) == (403, True)
