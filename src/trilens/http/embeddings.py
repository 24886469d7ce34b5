"""The routes `/v1/embeddings` and `/v1/models`: dense vectors of the served models in the form of OpenAI's API.

OpenAI's API does not distinguish queries from passages, but models encode them differently. Texts are passages unless the
request has `"input_type": "query"` or the name of the model ends in `:query`.
"""

import asyncio
import base64
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel, WithJsonSchema

from trilens.encode.onnx import OnnxEncoder
from trilens.encode.reading import Side
from trilens.errors import BadInput
from trilens.http.attended import AttendedRoute
from trilens.http.encoding import in_pieces, require_texts
from trilens.http.failures import POSSIBLE as POSSIBLE_ELSEWHERE
from trilens.http.failures import Refused
from trilens.http.messages import Count, RequestBody
from trilens.http.served import ServedCollection
from trilens.http.service import Served, Service, may_read
from trilens.kernels.array_types import Float32s

router = APIRouter(route_class=AttendedRoute, tags=["openai"], dependencies=[Depends(may_read)])
InputType = Literal["query", "passage"]
SIDES: dict[InputType, Side] = {"query": "query", "passage": "doc"}
QUERY_SUFFIX = ":query"
TEXT = {"type": "string", "minLength": 1}


class EmbeddingsRequest(RequestBody):
    """Texts to encode. `input_type` is an extension of OpenAI's API; `user` is ignored."""

    model: str
    input: Annotated[Any, WithJsonSchema({"anyOf": [TEXT, {"type": "array", "items": TEXT}]})]
    input_type: InputType | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Count | None = None
    user: str | None = None


class Embedding(BaseModel):
    """The vector of one text: numbers, or base64 of little-endian 32-bit floats."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """The number of tokens that the model read, special tokens and prefixes included."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(BaseModel):
    """One vector per text, in order. `truncated`, an extension, is the number of texts longer than the model reads."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage
    truncated: int


class ModelFacts(BaseModel):
    """A model that `/v1/embeddings` accepts."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "trilens"


class ModelList(BaseModel):
    """The models that `/v1/embeddings` accepts."""

    object: Literal["list"] = "list"
    data: list[ModelFacts]


class OpenaiError(BaseModel):
    """An error as OpenAI's API describes it."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenaiFailure(BaseModel):
    """The body of every error response of `/v1`."""

    error: OpenaiError


POSSIBLE: dict[int | str, dict[str, Any]] = {
    status: {**possible, "model": OpenaiFailure} for status, possible in POSSIBLE_ELSEWHERE.items()
}


@router.post("/embeddings", name="create_embeddings")
async def create_embeddings(request: EmbeddingsRequest, service: Served) -> Embeddings:
    """Encode texts into dense vectors, as OpenAI's API does."""
    texts = _texts(request.input)
    require_texts(texts, service.limits)
    served, side = await asyncio.to_thread(_model, service, request)
    dim = served.encoder.dim
    if request.dimensions not in (None, dim):
        raise Refused(400, f"dimensions is {request.dimensions}; model {request.model!r} has {dim}: leave it out")
    pieces = await in_pieces(served, texts, lambda piece: _embed(served.encoder, piece, side))
    vectors = [vector for piece, _, _ in pieces for vector in piece]
    tokens = sum(count for _, count, _ in pieces)
    write = _to_base64 if request.encoding_format == "base64" else _to_list
    return Embeddings(
        data=[Embedding(index=index, embedding=write(vector)) for index, vector in enumerate(vectors)],
        model=request.model,
        usage=Usage(prompt_tokens=tokens, total_tokens=tokens),
        truncated=sum(count for _, _, count in pieces),
    )


@router.get("/models", name="list_models")
async def list_models(service: Served) -> ModelList:
    """The models of the served collections; with `:query`, for queries."""
    names = await asyncio.to_thread(_models, service)
    return ModelList(data=[ModelFacts(id=name + suffix) for name in names for suffix in ("", QUERY_SUFFIX)])


@router.get("/models/{model:any_text}", name="get_model")
async def get_model(model: str, service: Served) -> ModelFacts:
    """One model."""
    await asyncio.to_thread(_named, service, model.removesuffix(QUERY_SUFFIX))
    return ModelFacts(id=model)


def _texts(given: object) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise BadInput(f"input is {texts!r}; expected a text or a list of texts")
    for number, text in enumerate(texts, start=1):
        if isinstance(text, int | list):
            raise BadInput(
                "input has token ids; expected texts, since each model has its own tokens: configure the client to send text "
                "(LangChain: check_embedding_ctx_length=False)"
            )
        if not isinstance(text, str) or not text:
            raise BadInput(f"text {number} of input is {text!r}; expected a non-empty text")
    return texts


def _models(service: Service) -> dict[str, ServedCollection]:
    """By name of the model, a collection whose encoder computes dense vectors with it."""
    able = [served for served in service.collections.values() if "dense" in served.heads]
    return {served.collection.config.model: served for served in reversed(able)}


def _named(service: Service, name: str) -> ServedCollection:
    models = _models(service)
    if name not in models:
        raise Refused(404, f"there is no model {name!r}; expected one of {', '.join(models) or 'none'}")
    return models[name]


def _model(service: Service, request: EmbeddingsRequest) -> tuple[ServedCollection, Side]:
    name = request.model.removesuffix(QUERY_SUFFIX)
    by_name: InputType | None = "query" if name != request.model else None
    if by_name and request.input_type == "passage":
        raise Refused(400, f"model is {request.model!r}, but input_type is 'passage'; expected {name!r}, or no input_type")
    return _named(service, name), SIDES[request.input_type or by_name or "passage"]


def _embed(encoder: OnnxEncoder, texts: list[str], side: Side) -> tuple[list[Float32s], int, int]:
    """The vectors, the number of tokens, and how many texts were cut."""
    encoded = (encoder.encode_queries if side == "query" else encoder.encode_docs)(texts, heads=("dense",))
    assert encoded.dense
    return list(encoded.dense.vectors), sum(len(encoder.read_tokens(text, side).ids) for text in texts), encoded.truncated


def _to_list(vector: Float32s) -> list[float]:
    numbers: list[float] = vector.tolist()
    return numbers


def _to_base64(vector: Float32s) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
