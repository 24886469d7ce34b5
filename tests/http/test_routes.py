"""Each address of the service, over a real socket."""

import math
from pathlib import Path
from typing import Any

import pytest

from trilens import Collection

from .running import READ_KEY, TEXTS, WRITE_KEY, Running

QUESTION = "remove a folder and everything inside it"


def post(service: Running, action: str, **body: Any) -> Any:
    answer = service.call("POST", f"/collections/small/{action}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_collections_are_listed(service: Running) -> None:
    answer = service.call("GET", "/collections").json()
    (small,) = answer["collections"]
    assert (answer["writable"], answer["may_write"], answer["max_body_bytes"]) == (False, False, 200_000)
    assert (small["name"], small["documents"], small["commit"]) == ("small", len(TEXTS), 1)
    assert small["lenses"] == ["bm25", "dense", "sparse", "multi"]
    assert (small["passages"], small["problem"]) == (len(TEXTS), None)
    assert set(small["heads"]) >= {"dense", "sparse", "multi"}
    assert service.call("GET", "/collections/small").json() == small


def test_one_query_and_many(service: Running) -> None:
    answer = post(service, "search", queries=[QUESTION, "square root"], k=2)
    assert answer["collection"] == "small"
    assert [(one["query"], one["commit"]) for one in answer["answers"]] == [(QUESTION, 1), ("square root", 1)]
    first, second = (one["hits"] for one in answer["answers"])
    assert first[0]["doc_id"] == "rmtree"
    assert second[0]["doc_id"] == "sqrt"
    assert [hit["rank"] for hit in first] == [1, 2]
    hit = first[0]
    assert hit["text"] == TEXTS["rmtree"][1]
    assert hit["passage"] == {"start": 0, "end": len(hit["text"])}
    assert (hit["title"], hit["metadata"]) == ("shutil.rmtree", {"year": 2021, "topic": "files"})
    assert math.isclose(sum(seen["contribution"] for seen in hit["by_lens"].values()), hit["score"], rel_tol=1e-6)


def test_lenses_filter_rerank_and_params(service: Running) -> None:
    (only,) = post(service, "search", queries=["directory"], lenses=["bm25"], filter={"year": {"$gt": 2020}})["answers"]
    assert [hit["doc_id"] for hit in only["hits"]] == ["rmtree"]
    assert list(only["hits"][0]["by_lens"]) == ["bm25"]
    (reranked,) = post(service, "search", queries=["directory"], lenses=["bm25"], rerank="multi")["answers"]
    (exact,) = post(service, "search", queries=["directory"], lenses=["multi"], params={"multi": {"method": "exact"}})[
        "answers"
    ]
    found = {hit["doc_id"]: hit["score"] for hit in exact["hits"]}
    assert [hit["score"] for hit in reranked["hits"]] == pytest.approx(
        [found[hit["doc_id"]] for hit in reranked["hits"]], abs=1e-4
    )


def test_fusion_is_chosen_by_name(service: Running) -> None:
    (answer,) = post(service, "search", queries=[QUESTION], lenses=["bm25", "dense"], fusion="weighted:bm25=0,dense=2")[
        "answers"
    ]
    hit = answer["hits"][0]
    assert hit["score"] == pytest.approx(2 * hit["by_lens"]["dense"]["score"], rel=1e-5)


@pytest.mark.parametrize("lens", ["bm25", "dense", "sparse", "multi"])
def test_parts_of_an_explanation_add_up(service: Running, lens: str) -> None:
    (explained,) = post(service, "explain", query=QUESTION, doc_ids=["rmtree"], lenses=[lens])["explanations"]
    (answer,) = post(service, "search", queries=[QUESTION], lenses=[lens], exact=True)["answers"]
    score = next(hit["score"] for hit in answer["hits"] if hit["doc_id"] == "rmtree")
    assert explained["score"] == pytest.approx(score, rel=1e-6, abs=1e-4)
    assert sum(part["score"] for part in explained["parts"]) == pytest.approx(explained["score"], rel=1e-6, abs=1e-4)
    assert (explained["matrix"] is not None) == (lens == "multi")


def test_a_fusion_is_explained_by_lens(service: Running) -> None:
    explained = post(service, "explain", query=QUESTION, doc_ids=["rmdir", "rmtree"])["explanations"]
    assert [one["doc_id"] for one in explained] == ["rmdir", "rmtree"]
    for one in explained:
        assert {part["kind"] for part in one["parts"]} == {"lens"}
        assert [child["lens"] for child in one["children"]] == ["bm25", "dense", "sparse", "multi"]
        assert sum(part["score"] for part in one["parts"]) == pytest.approx(one["score"], abs=1e-4)
    answer = service.call("POST", "/collections/small/explain", json={"query": "x", "doc_ids": ["nothing"]})
    assert (answer.status_code, list(answer.json())) == (404, ["error"])


def test_disentangle_gives_words(service: Running) -> None:
    words = post(service, "disentangle", text="delete a directory", top=5)["words"]
    assert len(words) == 5
    assert [word["weight"] for word in words] == sorted((word["weight"] for word in words), reverse=True)
    whole = post(service, "disentangle", text="delete a directory", top=40, whole_words=True)["words"]
    assert len(whole) == 40
    assert {"delete", "directory"} <= {word["word"] for word in whole if word["own"]}
    assert not any(word["word"].startswith("##") for word in whole)


def test_examples_are_sentences_of_the_documents(service: Running) -> None:
    answer = service.call("GET", "/collections/small/examples").json()
    assert answer["commit"] == 1 and len(answer["queries"]) == 4
    sentences = [f"{title} {text}" for title, text, *_ in TEXTS.values()]
    for query in answer["queries"]:
        assert any(query in sentence for sentence in sentences)


def test_the_size_on_disk_is_that_of_the_files(made: Path, service: Running) -> None:
    facts = service.call("GET", "/collections/small").json()
    data = sum(file.stat().st_size for folder in made.iterdir() if folder.is_dir() for file in folder.rglob("*"))
    with Collection.open(made) as collection:
        info = collection.info()
    assert facts["bytes"] == info["catalog_bytes"] + sum(file.bytes for file in collection.snapshot.files)
    assert sum(info["segment_bytes"].values()) <= facts["bytes"] <= data + info["catalog_bytes"]


def test_encode_gives_every_head(service: Running) -> None:
    answer = service.call("POST", "/encode", json={"texts": ["a directory", "the root"], "side": "doc"}).json()
    dense = answer["dense"]
    assert [math.hypot(*vector) for vector in dense] == pytest.approx([1, 1], abs=1e-3)
    assert len(answer["sparse"]) == len(answer["multi"]) == 2
    for terms in answer["sparse"]:
        assert len(terms["terms"]) == len(terms["words"]) == len(terms["weights"]) > 0
    for tokens in answer["multi"]:
        assert len(tokens["tokens"]) == len(tokens["vectors"])
    alone = service.call("POST", "/encode", json={"texts": ["a directory"], "side": "doc", "heads": ["dense"]}).json()
    assert alone["dense"][0] == pytest.approx(dense[0], abs=1e-6)
    assert alone["sparse"] is None


def test_health_metrics_and_description(service: Running) -> None:
    assert service.call("GET", "/health").json()["status"] == "ok"
    post(service, "search", queries=["directory"], lenses=["bm25"])
    text = service.call("GET", "/metrics").text
    assert 'trilens_documents{collection="small"} 11' in text
    assert 'trilens_requests_total{method="GET",route="/health",status="200"}' in text
    assert 'trilens_batch_queries_bucket{collection="small",le="+Inf"}' in text
    assert 'trilens_request_seconds_count{method="POST",route="/collections/{name}/search"}' in text


@pytest.mark.parametrize("page", ["", "docs", "web/app.js", "web/style.css", "web/icon.svg", "openapi.json"])
def test_pages_call_nobody_else(service: Running, page: str) -> None:
    import httpx

    answer = httpx.get(service.address + page)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    outside = [word for word in answer.text.replace('"', " ").split() if word.startswith(("http://", "https://"))]
    assert [word for word in outside if "www.w3.org/2000/svg" not in word] == []


ODD_IDS = [
    "plain",
    "with/slash",
    "..",
    "a b?c#d%25e",
    "üñí😀",
    "line\nend",
    "'; DROP TABLE documents; --",
    "<img src=x>",
    "%",
    "a&id=b",
]


@pytest.mark.parametrize("doc_id", ODD_IDS)
def test_ids_hold_any_characters(writable: Running, doc_id: str) -> None:
    from urllib.parse import quote

    with writable.client(WRITE_KEY) as client:
        body = {"text": "odd words", "metadata": {"n": 1}}
        path = f"/collections/notes/documents/{quote(doc_id, safe='')}"
        if doc_id == "..":  # clients resolve it before they ask, so it is put by the other address
            put = client.put("/collections/notes/documents", json={"documents": [{"doc_id": doc_id, **body}]})
        else:
            put = client.put(path, json=body)
            assert client.get(path).json() == {"doc_id": doc_id, "title": "", **body}
        assert put.json()["added"] == 1
        listed = client.get("/collections/notes/documents", params={"id": [doc_id, "missing"]}).json()
        assert [document["doc_id"] for document in listed["documents"]] == [doc_id]
        assert listed["missing"] == ["missing"]
        hits = client.post("/collections/notes/search", json={"queries": ["odd words"]}).json()["answers"][0]["hits"]
        assert doc_id in [hit["doc_id"] for hit in hits]
        deleted = client.delete("/collections/notes/documents", params={"id": [doc_id, "missing"]}).json()
        assert (deleted["deleted"], deleted["missing"]) == (1, ["missing"])
        if doc_id != "..":
            assert client.get(path).status_code == client.delete(path).status_code == 404


def test_documents_are_listed_page_by_page(writable: Running) -> None:
    seen, after = [], 0
    while after is not None:
        page = writable.call("GET", "/collections/notes/documents", READ_KEY, params={"after": after, "limit": 4}).json()
        seen += [document["doc_id"] for document in page["documents"]]
        after = page["next"]
    assert seen == list(TEXTS)


def test_an_upsert_says_what_it_did(writable: Running) -> None:
    with writable.client(WRITE_KEY) as client:
        documents = [{"doc_id": "x", "text": "one"}, {"doc_id": "y", "text": "two"}]
        first = client.put("/collections/notes/documents", json={"documents": documents}).json()
        assert (first["added"], first["documents"]) == (2, len(TEXTS) + 2)
        documents[0]["text"] = "changed"
        again = client.put("/collections/notes/documents", json={"documents": documents}).json()
        assert (again["replaced"], again["unchanged"], again["commit"]) == (1, 1, first["commit"] + 1)
        assert client.delete("/collections/notes/documents/x").json()["deleted"] == 1
        assert client.delete("/collections/notes/documents/y").json()["documents"] == len(TEXTS)
