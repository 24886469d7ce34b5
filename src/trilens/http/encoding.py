"""The route `/encode`: texts encoded by the heads of a collection's model."""

from collections.abc import Callable, Sequence
from functools import partial

from fastapi import APIRouter, Depends

from trilens.encode.encoder import Encoded
from trilens.encode.onnx import OnnxEncoder
from trilens.http import messages
from trilens.http.attended import AttendedRoute
from trilens.http.failures import Refused
from trilens.http.served import ServedCollection
from trilens.http.service import Served, Service, may_read
from trilens.represent import Multi, Sparse
from trilens.text.document import require_utf8

router = APIRouter(route_class=AttendedRoute, tags=["encode"], dependencies=[Depends(may_read)])
TEXTS_AT_ONCE = 8
Decode = Callable[[Sequence[int]], list[str]]
"""The texts of term or token ids."""


@router.post("/encode")
async def encode(request: messages.EncodeRequest, service: Served) -> messages.EncodedTexts:
    """Encode texts with each head of a collection's model."""
    if len(request.texts) > service.limits.texts:
        raise Refused(
            413, f"{len(request.texts):,} texts were sent; expected at most {service.limits.texts:,}: split the request"
        )
    for number, text in enumerate(request.texts, start=1):
        require_utf8(f"text {number}", text)
    served = _with_model(service, request.collection)
    deadline, parts = served.deadline(), []
    for start in range(0, len(request.texts), TEXTS_AT_ONCE):  # so that other requests can run in between
        texts = request.texts[start : start + TEXTS_AT_ONCE]
        parts.append(await served.call(partial(_encode, served.encoder, texts, request), deadline))
    return _join(parts)


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
