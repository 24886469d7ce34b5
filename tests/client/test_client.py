"""Both clients against a real service, beside the collection that it serves."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trilens import Collection, Document
from trilens.client import AsyncClient, AsyncRemoteCollection, Client, RemoteCollection
from trilens.errors import BadInput, BadOptions, CollectionMissing, ServiceFailed, TrilensError
from trilens.store.changes import Changes

from ..http.running import READ_KEY, TEXTS, WRITE_KEY, Running, running
from ..http.test_tls import certificate, client_context

QUERY = "remove a folder and everything inside it"


class Awaited:
    """An asynchronous client or collection whose methods are run to their end."""

    def __init__(self, runner: asyncio.Runner, wrapped: Any) -> None:
        self._runner, self._wrapped = runner, wrapped

    def __getattr__(self, name: str) -> Any:
        async def finish(*values: Any, **named: Any) -> Any:
            result = getattr(self._wrapped, name)(*values, **named)
            if inspect.isasyncgen(result):
                return [one async for one in result]
            return await result if inspect.isawaitable(result) else Awaited(self._runner, result)

        return lambda *values, **named: self._runner.run(finish(*values, **named))


Connect = Callable[..., Any]


@pytest.fixture(params=["synchronous", "asynchronous"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Makes clients, of which the tests see no difference."""
    made: list[Any] = []
    with asyncio.Runner() as runner:

        def make(service: Running | str, *values: Any, **named: Any) -> Any:
            address = service if isinstance(service, str) else service.address
            if request.param == "synchronous":
                client: Any = Client(address, *values, **named)
            else:
                client = Awaited(runner, AsyncClient(address, *values, **named))
            made.append(client)
            return client

        yield make
        for client in made:
            client.close()


def test_reading_is_as_with_the_collection(connect: Connect, service: Running, made: Path) -> None:
    client = connect(service)
    (facts,) = client.collections()
    remote = client.collection(facts["name"])
    assert remote.info() == facts
    with Collection.open(made) as collection:
        assert remote.search([QUERY, "square root"], 3, filter={"year": {"$lte": 2022}}) == collection.search(
            [QUERY, "square root"], 3, filter={"year": {"$lte": 2022}}
        )
        explained = collection.explain(QUERY, "rmtree", lenses=["multi"])
        assert remote.explain(QUERY, "rmtree", lenses=["multi"]).to_json() == explained.to_json()
        assert list(remote.documents()) == list(collection.documents())
        assert [remote.get(doc_id) for doc_id in (*TEXTS, "none")] == [collection.get(doc_id) for doc_id in (*TEXTS, "none")]
        assert remote.disentangle(QUERY) == collection.disentangle(QUERY)
        assert remote.disentangle(QUERY, passage=True, top=3) == collection.disentangle(QUERY, passage=True, top=3)
        encoded, expected = remote.encode([QUERY, "b"], "doc"), collection.model.encoder.encode_docs([QUERY, "b"])
    assert expected.dense and expected.sparse and expected.multi
    np.testing.assert_allclose(encoded.dense, expected.dense.vectors, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([one.vectors for one in encoded.multi]), expected.multi.vectors, atol=1e-4)
    assert np.concatenate([one.terms for one in encoded.sparse]).tolist() == expected.sparse.terms.tolist()
    assert remote.encode([QUERY], heads=["dense"]).multi is None


def test_changes_are_commits(connect: Connect, writable: Running) -> None:
    remote = connect(writable, key=WRITE_KEY).collection("notes")
    before, commit = list(remote.documents()), remote.info()["commit"]
    first, second = Document("..", "one", "title", {"n": 1}), Document("a/b?#", "two")
    assert remote.add([first, second]) == Changes(added=2)
    with pytest.raises(BadInput, match=r"'a/b\?#'"):
        remote.add([Document("new", "three"), second])
    assert remote.get("new") is None
    assert remote.upsert([first, Document("a/b?#", "changed")]) == Changes(replaced=1, unchanged=1)
    assert remote.get("a/b?#") == Document("a/b?#", "changed")
    many = [Document(f"many-{number}", f"text {number}") for number in range(230)]
    assert remote.ingest(iter(many)) == Changes(added=230)
    assert list(remote.documents())[-230:] == many
    assert remote.delete(["missing", *(one.doc_id for one in many), "..", "a/b?#"]) == ["missing"]
    assert list(remote.documents()) == before
    assert remote.info()["commit"] == commit + 8  # add, upsert, 3 of ingest, 3 of delete


def test_errors_are_those_of_the_collection(connect: Connect, service: Running, made: Path, writable: Running) -> None:
    remote = connect(service).collection("small")

    def both(method: str, *values: Any, **named: Any) -> None:
        with Collection.open(made) as collection, pytest.raises(TrilensError) as expected:
            getattr(collection, method)(*values, **named)
        with pytest.raises(TrilensError) as raised:
            getattr(remote, method)(*values, **named)
        assert type(raised.value) is type(expected.value)

    both("search", [QUERY], k=0)
    both("search", QUERY)
    both("search", [QUERY], options={"k": 3})
    both("search", [QUERY], filter={"year": {"$about": 1}})
    both("explain", QUERY, "nothing")
    both("get", 7)
    both("add", ["text"])
    both("delete", "rmtree")
    both("disentangle", " ")
    for service_, name, key, kind, says in (
        (service, "other", None, CollectionMissing, "there is no collection 'other'; expected one of small"),
        (service, "small", None, ServiceFailed, "start it with --write"),
        (writable, "notes", READ_KEY, ServiceFailed, "this key may read only"),
        (writable, "notes", None, ServiceFailed, "a write key is required"),
        (writable, "notes", WRITE_KEY, BadOptions, "documents is []"),
    ):
        with pytest.raises(kind, match=says.replace("[", r"\[")):
            changed = [] if key == WRITE_KEY else [Document("a", "b")]
            target = connect(service_, key=key).collection(name)
            target.search(["x"]) if name == "other" else target.upsert(changed)


def test_over_tls(connect: Connect, plain: Path, tmp_path: Path) -> None:
    chain, key = certificate(tmp_path)
    with running(plain, "--tls-cert", chain, "--tls-key", key) as service:
        client = connect(service, verify=client_context())
        assert client.collection("plain").search(["directory"], lenses=["bm25"])[0]
        client.close()  # TLS connections are closed by both sides, so the service would wait for this one
        with pytest.raises(ServiceFailed, match=r"cannot be reached \(.*CERTIFICATE"):
            connect(service).collections()


def test_bad_addresses_and_keys(connect: Connect) -> None:
    with pytest.raises(BadInput, match="address is 'localhost:8000'; expected one such as http"):
        connect("localhost:8000")
    with pytest.raises(BadInput, match="key has characters"):
        connect("http://localhost", key="ü\n")
    with pytest.raises(ServiceFailed, match=r"http://127\.0\.0\.1:9 cannot be reached"):
        connect("http://127.0.0.1:9").collections()


def public(kind: type) -> dict[str, inspect.Signature]:
    return {name: inspect.signature(value) for name, value in vars(kind).items() if name[0] != "_" and callable(value)}


LOCAL = ("report", "full_batches", "encoded", "keys")  # parameters that do not go over HTTP


def test_both_clients_have_the_methods_of_a_collection_with_the_same_parameters() -> None:
    for one, other in ((RemoteCollection, AsyncRemoteCollection), (Client, AsyncClient)):
        assert {name: list(signature.parameters.values()) for name, signature in public(one).items()} == {
            name: list(signature.parameters.values()) for name, signature in public(other).items()
        }
        assert inspect.signature(one) == inspect.signature(other) or one is RemoteCollection
    local = public(Collection)
    for name, signature in public(RemoteCollection).items():
        if name == "encode":  # that of the model
            continue
        expected = [p for p in local[name].parameters.values() if p.name not in LOCAL]
        assert [(p.name, p.kind, p.default) for p in signature.parameters.values()] == [
            (p.name, p.kind, p.default) for p in expected
        ]
