from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.send.address import Address, target_name


@pytest.mark.parametrize(
    "text, module, url, shown",
    [
        ("qdrant+http://localhost:6333", "qdrant", "http://localhost:6333", "qdrant+http://localhost:6333"),
        ("milvus+https://me:secret@host/db", "milvus", "https://me:secret@host/db", "milvus+https://host/db"),
        ("qdrant+file:some/folder", "qdrant", "some/folder", "qdrant+file:some/folder"),
        ("milvus+file:///data/m.db", "milvus", "/data/m.db", "milvus+file:/data/m.db"),
        ("lancedb+s3://bucket/path", "lancedb", "s3://bucket/path", "lancedb+s3://bucket/path"),
        (
            "postgresql://me:se@cret@host:5432/db?password=x&sslmode=require",
            "pgvector",
            "postgresql://me:se@cret@host:5432/db?password=x&sslmode=require",
            "postgresql://host:5432/db?password=…&sslmode=require",
        ),
        ("postgresql:///db?host=/run/postgresql", "pgvector", "postgresql:///db?host=/run/postgresql", None),
        ("opensearch+file:bulk", "bulk", "bulk", "opensearch+file:bulk"),
    ],
)
def test_addresses(text: str, module: str, url: str, shown: str | None) -> None:
    address = Address.of(text)
    assert (address.module, address.url, str(address)) == (module, url, shown or text)
    assert address.path == (Path(url) if "+file" in text else None)


@pytest.mark.parametrize(
    "text", ["", "here", "qdrant", "qdrant:", "qdrant+ftp://host", "http://host", "postgresql+http://host", "lancedb+file:"]
)
def test_an_unknown_scheme_lists_the_known_ones(text: str) -> None:
    with pytest.raises(BadInput, match=r"expected an address that begins with one of qdrant\+http:, .*postgresql:, ") as raised:
        Address.of(text)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize("text", ["qdrant+http:host", "postgresql:", "postgresql:db", "milvus+http://"])
def test_an_address_without_a_host(text: str) -> None:
    with pytest.raises(BadInput, match="expected"):
        Address.of(text)


def test_a_refused_address_does_not_show_its_password() -> None:
    with pytest.raises(BadInput) as raised:
        Address.of("mysql://me:secret@host/db?password=secret")
    assert "secret" not in str(raised.value)


def test_names() -> None:
    assert target_name(None, Path("/data/My docs.v2.trilens")) == "my_docs_v2"
    assert target_name("books", Path("x")) == "books"
    for given, path in (("Books", "x"), ("a" * 49, "x"), ("1", "x"), ("a;b", "x"), (None, "2020.trilens")):
        with pytest.raises(BadInput, match=r"expected a lower-case letter .*: choose it with --name$"):
            target_name(given, Path(path))
