"""The route that turns texts into representations, with every head of a model."""

from collections.abc import Callable, Sequence
from functools import partial

from fastapi import APIRouter, Depends

from trilens.encode.encoder import Encoded
from trilens.encode.onnx import OnnxEncoder
from trilens.represent import Multi, Sparse
from trilens.serve.http import messages
from trilens.serve.http.failures import Refused
from trilens.serve.http.served import ServedCollection
from trilens.serve.http.service import Served, Service, may_read
from trilens.text.document import require_utf8

router = APIRouter(tags=["encode"], dependencies=[Depends(may_read)])
TEXTS_AT_ONCE = 8
Read = Callable[[Sequence[int]], list[str]]


@router.post("/encode")
async def encode(asked: messages.EncodeAsked, service: Served) -> messages.EncodedTexts:
    """What each head of a collection's model makes of some texts."""
    if len(asked.texts) > service.limits.texts:
        raise Refused(
            413, f"{len(asked.texts):,} texts were sent; expected at most {service.limits.texts:,}: send them in parts"
        )
    for number, text in enumerate(asked.texts, start=1):
        require_utf8(f"text {number}", text)
    served = _with_model(service, asked.collection)
    deadline, parts = served.deadline(), []
    for start in range(0, len(asked.texts), TEXTS_AT_ONCE):  # so that searches of others get their turn in between
        texts = asked.texts[start : start + TEXTS_AT_ONCE]
        parts.append(await served.call(partial(_encode, served.encoder, texts, asked), deadline))
    return _join(parts)


def _with_model(service: Service, name: str | None) -> ServedCollection:
    if name is not None:
        return service.collection(name)
    found = next((served for served in service.collections.values() if served.has_model), None)
    if found is None:
        raise Refused(400, "none of the collections has a model; serve one with a lens other than bm25")
    return found


def _encode(encoder: OnnxEncoder, texts: list[str], asked: messages.EncodeAsked) -> messages.EncodedTexts:
    encode = encoder.encode_queries if asked.side == "query" else encoder.encode_docs
    found: Encoded = encode(texts, heads=asked.heads)
    return messages.EncodedTexts(
        model=encoder.fingerprint,
        side=asked.side,
        dense=found.dense.vectors.tolist() if found.dense else None,
        sparse=_terms(found.sparse, encoder.term_texts),
        lexical=_terms(found.lexical, encoder.token_texts),
        multi=_tokens(found.multi, encoder.token_texts),
        truncated=found.truncated,
    )


def _join(parts: list[messages.EncodedTexts]) -> messages.EncodedTexts:
    """Texts that were encoded one part after the other."""
    first = parts[0]
    joined = {
        head: None if getattr(first, head) is None else [one for part in parts for one in getattr(part, head)]
        for head in ("dense", "sparse", "lexical", "multi")
    }
    return first.model_copy(update={**joined, "truncated": sum(part.truncated for part in parts)})


def _terms(sparse: Sparse | None, read: Read) -> list[messages.Terms] | None:
    if sparse is None:
        return None
    found = []
    for start, end in zip(sparse.indptr[:-1].tolist(), sparse.indptr[1:].tolist(), strict=True):
        terms = sparse.terms[start:end].tolist()
        found.append(messages.Terms(terms=terms, words=read(terms), weights=sparse.weights[start:end].tolist()))
    return found


def _tokens(multi: Multi | None, read: Read) -> list[messages.TokenVectors] | None:
    if multi is None:
        return None
    return [
        messages.TokenVectors(tokens=read(multi.tokens[start:end].tolist()), vectors=multi.vectors[start:end].tolist())
        for start, end in zip(multi.offsets[:-1].tolist(), multi.offsets[1:].tolist(), strict=True)
    ]
