"""The route `/encode`: texts encoded by the heads of a collection's model."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from fastapi import APIRouter, Depends

from trilens.encode.encoder import Encoded
from trilens.encode.onnx import OnnxEncoder
from trilens.http import messages
from trilens.http.attended import AttendedRoute
from trilens.http.failures import Refused
from trilens.http.limits import Limits
from trilens.http.served import ServedCollection
from trilens.http.service import Served, Service, may_read
from trilens.represent import Multi, Sparse
from trilens.text.document import require_utf8

router = APIRouter(route_class=AttendedRoute, tags=["encode"], dependencies=[Depends(may_read)])
TEXTS_AT_ONCE = 8
Result = TypeVar("Result")
Decode = Callable[[Sequence[int]], list[str]]
"""The texts of term or token ids."""


@router.post("/encode")
async def encode(request: messages.EncodeRequest, service: Served) -> messages.EncodedTexts:
    """Encode texts with each head of a collection's model."""
    require_texts(request.texts, service.limits)
    served = _with_model(service, request.collection)
    return _join(await in_pieces(served, request.texts, lambda texts: _encode(served.encoder, texts, request)))


def require_texts(texts: Sequence[str], limits: Limits) -> None:
    """Refuse texts that are too many, or that are not Unicode."""
    if len(texts) > limits.texts:
        raise Refused(413, f"{len(texts):,} texts were sent; expected at most {limits.texts:,}: split the request")
    for number, text in enumerate(texts, start=1):
        require_utf8(f"text {number}", text)


async def in_pieces(served: ServedCollection, texts: Sequence[str], encode: Callable[[list[str]], Result]) -> list[Result]:
    """Encode a few texts at a time on the search threads, so that other requests can run in between."""
    deadline = served.deadline()
    pieces = [list(texts[start : start + TEXTS_AT_ONCE]) for start in range(0, len(texts), TEXTS_AT_ONCE)]
    return [await served.call(partial(encode, piece), deadline) for piece in pieces]


def _with_model(service: Service, name: str | None) -> ServedCollection:
    if name is not None:
        return service.collection(name)
    served = next((served for served in service.collections.values() if served.has_model), None)
    if served is None:
        raise Refused(400, "no collection has a model; serve one with a lens that uses a model")
    return served


def _encode(encoder: OnnxEncoder, texts: list[str], request: messages.EncodeRequest) -> messages.EncodedTexts:
    encode = encoder.encode_queries if request.side == "query" else encoder.encode_docs
    encoded: Encoded = encode(texts, heads=request.heads)
    return messages.EncodedTexts(
        model=encoder.fingerprint,
        side=request.side,
        dense=encoded.dense.vectors.tolist() if encoded.dense else None,
        sparse=_terms(encoded.sparse, encoder.term_texts),
        lexical=_terms(encoded.lexical, encoder.token_texts),
        multi=_tokens(encoded.multi, encoder.token_texts),
        truncated=encoded.truncated,
    )


def _join(parts: list[messages.EncodedTexts]) -> messages.EncodedTexts:
    """Concatenate the batches of one request."""
    first = parts[0]
    joined = {
        head: None if getattr(first, head) is None else [row for part in parts for row in getattr(part, head)]
        for head in ("dense", "sparse", "lexical", "multi")
    }
    return first.model_copy(update={**joined, "truncated": sum(part.truncated for part in parts)})


def _terms(sparse: Sparse | None, decode: Decode) -> list[messages.TermVector] | None:
    if sparse is None:
        return None
    vectors = []
    for start, end in zip(sparse.indptr[:-1].tolist(), sparse.indptr[1:].tolist(), strict=True):
        terms = sparse.terms[start:end].tolist()
        vectors.append(messages.TermVector(terms=terms, words=decode(terms), weights=sparse.weights[start:end].tolist()))
    return vectors


def _tokens(multi: Multi | None, decode: Decode) -> list[messages.TokenVectors] | None:
    if multi is None:
        return None
    return [
        messages.TokenVectors(tokens=decode(multi.tokens[start:end].tolist()), vectors=multi.vectors[start:end].tolist())
        for start, end in zip(multi.offsets[:-1].tolist(), multi.offsets[1:].tolist(), strict=True)
    ]
