"""The embeddings of the service through OpenAI's own client."""

import base64
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("openai")

import openai

from trilens import Collection
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.store.config import DEFAULT_MODEL

from ..bundled import described
from .running import READ_KEY, Running, running

QUERIES = f"{DEFAULT_MODEL}:query"
TEXTS = ["Remove a directory.", "The square root of a number.", *(f"Passage number {number}." for number in range(9))]


@pytest.fixture(scope="module")
def prefixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that encodes queries and passages differently."""
    return described(tmp_path_factory.mktemp("models") / "prefixed", query_prefix="query: ")


@pytest.fixture(scope="module")
def serving(made: Path, plain: Path, prefixed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Three collections: of the bundled model, of the other model and of no model."""
    other = tmp_path_factory.mktemp("prefixed") / "other.trilens"
    Collection.create(other, lenses=["dense"], model=str(prefixed)).close()
    with running(plain, made, other, "--max-body", 200_000) as started:
        yield started


@pytest.fixture(scope="module")
def client(serving: Running) -> Iterator[Any]:
    with openai.OpenAI(base_url=serving.address + "v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return OnnxEncoder(resolve_model(DEFAULT_MODEL), threads=1)


def test_texts_are_passages_unless_the_request_says_query(client: Any, prefixed: Path) -> None:
    encoder, model = OnnxEncoder(prefixed, threads=1), str(prefixed)
    passages, queries = encoder.encode_docs(TEXTS, heads=["dense"]).dense, encoder.encode_queries(TEXTS, heads=["dense"]).dense
    assert passages and queries and not np.allclose(passages.vectors, queries.vectors, atol=1e-3)
    plain = client.embeddings.create(model=model, input=TEXTS)
    assert [one.index for one in plain.data] == list(range(len(TEXTS)))
    np.testing.assert_allclose([one.embedding for one in plain.data], passages.vectors, atol=1e-5)
    by_name = client.embeddings.create(model=f"{model}:query", input=TEXTS, encoding_format="float")
    by_field = client.embeddings.create(model=model, input=TEXTS, extra_body={"input_type": "query"})
    for answer in (by_name, by_field):
        np.testing.assert_allclose([one.embedding for one in answer.data], queries.vectors, atol=1e-5)


def test_one_text_its_tokens_and_both_formats(serving: Running, client: Any, encoder: OnnxEncoder) -> None:
    answer = client.embeddings.create(model=DEFAULT_MODEL, input=TEXTS[0], dimensions=encoder.dim, user="somebody")
    tokens = len(encoder.read_tokens(TEXTS[0], "doc").ids)
    assert (answer.object, answer.model, answer.truncated) == ("list", DEFAULT_MODEL, 0)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == tokens > 4
    assert math.hypot(*answer.data[0].embedding) == pytest.approx(1, abs=1e-3)
    body = {"model": DEFAULT_MODEL, "input": TEXTS[0], "encoding_format": "base64"}
    raw = httpx.post(serving.address + "v1/embeddings", json=body, timeout=60).json()["data"][0]["embedding"]
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(raw), "<f4"), answer.data[0].embedding, rtol=1e-6)


def test_texts_that_the_model_does_not_read_to_the_end_are_counted(client: Any, encoder: OnnxEncoder) -> None:
    answer = client.embeddings.create(model=DEFAULT_MODEL, input=["short", "word " * 2_000])
    assert answer.truncated == 1
    assert answer.usage.total_tokens < 1_000


def test_models_are_listed(client: Any, prefixed: Path) -> None:
    expected = {f"{model}{suffix}" for model in (DEFAULT_MODEL, prefixed) for suffix in ("", ":query")}
    assert {model.id for model in client.models.list()} == expected
    assert client.models.retrieve(str(prefixed)).id == str(prefixed)
    assert client.models.retrieve(f"{DEFAULT_MODEL}:query").object == "model"


@pytest.mark.parametrize(
    ("changes", "kind", "says"),
    [
        ({"input": [[1, 2], [3]]}, "BadRequestError", "input has token ids; expected texts"),
        ({"input": [1, 2]}, "BadRequestError", "input has token ids; expected texts"),
        ({"input": []}, "BadRequestError", "input is []; expected a text"),
        ({"input": ["x", ""]}, "BadRequestError", "text 2 of input is ''"),
        ({"input": ["x"] * 101}, "APIStatusError", "101 texts were sent; expected at most 100"),
        ({"input": "x" * 200_001}, "APIStatusError", "larger than 200,000 bytes"),
        ({"dimensions": 3}, "BadRequestError", "dimensions is 3; model"),
        ({"model": "text-embedding-3-small"}, "NotFoundError", "expected one of "),
        ({"model": QUERIES, "extra_body": {"input_type": "passage"}}, "BadRequestError", "but input_type is 'passage'"),
        ({"extra_body": {"input_type": "sentence"}}, "BadRequestError", "input_type is 'sentence'; expected"),
        ({"extra_body": {"truncate": "END"}}, "BadRequestError", "option 'truncate' is not known"),
    ],
)
def test_refusals_have_the_form_of_openai(client: Any, changes: dict[str, Any], kind: str, says: str) -> None:
    with pytest.raises(getattr(openai, kind)) as refused:
        client.embeddings.create(**{"model": DEFAULT_MODEL, "input": "x"} | changes)
    assert refused.value.type == "invalid_request_error"
    message = refused.value.body["message"]
    assert says in message and "\n" not in message


def test_keys_and_collections_without_a_model(writable: Running) -> None:
    for key, kind in (("a-key-that-nobody-knows", "AuthenticationError"), (READ_KEY, "NotFoundError")):
        client = openai.OpenAI(base_url=writable.address + "v1", api_key=key, max_retries=0)
        with client, pytest.raises(getattr(openai, kind)) as refused:
            client.embeddings.create(model=DEFAULT_MODEL, input="x")
    assert "expected one of none" in refused.value.body["message"]


def test_unknown_addresses_and_hosts(serving: Running) -> None:
    for path, headers, status in (("v1/files", {}, 404), ("v1/models", {"Host": "evil.example"}, 403)):
        answer = httpx.get(serving.address + path, headers=headers)
        assert answer.status_code == status
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
