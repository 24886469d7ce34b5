"""Routes that look into a collection: search, explain, disentangle."""

import json
from functools import partial
from time import perf_counter

from fastapi import APIRouter, Depends, Response

from trilens.explain.disentangle import disentangle
from trilens.index.multi_params import MultiParams
from trilens.index.sparse_params import SparseParams
from trilens.serve.http import messages
from trilens.serve.http.answers import answers_json
from trilens.serve.http.failures import Refused, absent
from trilens.serve.http.limits import Limits
from trilens.serve.http.served import Settings
from trilens.serve.http.service import Named, Served, may_read
from trilens.text.document import require_utf8

router = APIRouter(tags=["search"], dependencies=[Depends(may_read)])


@router.post("/collections/{name}/search", response_model=messages.Answers)
async def search(asked: messages.SearchAsked, served: Named) -> Response:
    """The best documents of each query, through one lens or several."""
    started = perf_counter()
    require_queries(asked.queries, served.limits)
    require_k(asked.k, served.limits)
    settings = Settings(
        k=asked.k,
        lenses=tuple(asked.lenses) if asked.lenses else None,
        where=json.dumps(asked.filter or {}, sort_keys=True),
        exact=asked.exact,
        fusion=asked.fusion,
        expand=asked.expand,
        rerank=asked.rerank,
        params=lens_params(asked.params),
    )
    answers = await served.search(settings, asked.queries)
    took_ms = round(1000 * (perf_counter() - started), 3)
    return Response(answers_json(served.name, took_ms, answers), media_type="application/json")


@router.post("/collections/{name}/explain")
async def explain(asked: messages.ExplainAsked, served: Named, service: Served) -> messages.Explanations:
    """Why documents got their scores: parts that add up to them, with the places in the text that made them."""
    require_queries([asked.query], service.limits)
    require_k(asked.k, service.limits)
    if len(asked.doc_ids) > service.limits.explained:
        given, most = len(asked.doc_ids), service.limits.explained
        raise Refused(413, f"{given:,} documents were named; expected at most {most:,}: name them in parts")
    params = dict(lens_params(asked.params))

    def explain_one(doc_id: str) -> messages.Explanation:
        collection = served.pinned()
        if collection.snapshot.key(doc_id) is None:
            raise absent(doc_id, served.name)
        found = collection.explain(
            asked.query,
            doc_id,
            asked.lenses,
            k=asked.k,
            where=asked.filter,
            rerank=asked.rerank,
            params=params,
            fusion=asked.fusion,
            expand=asked.expand,
        )
        return messages.Explanation.model_validate(found.to_json())

    deadline = served.deadline()
    # One after the other, so that searches of others get their turn in between.
    found = [await served.call(partial(explain_one, doc_id), deadline) for doc_id in asked.doc_ids]
    return messages.Explanations(explanations=found)


@router.post("/collections/{name}/disentangle", name="disentangle")
async def words(asked: messages.DisentangleAsked, served: Named, service: Served) -> messages.Words:
    """The words that a text activates in the collection's model, heaviest first."""
    require_queries([asked.text], service.limits)
    deadline = served.deadline()
    found = await served.call(lambda: disentangle(served.encoder, asked.text, asked.side, asked.top), deadline)
    return messages.Words(
        text=asked.text, words=[messages.Word(word=word.word, weight=word.weight, own=word.own) for word in found]
    )


def require_k(k: int, limits: Limits) -> None:
    """Refuse to return more documents than the service is set up for."""
    if k > limits.k:
        raise Refused(413, f"k is {k}; expected at most {limits.k}")


def require_queries(queries: list[str], limits: Limits) -> None:
    """Refuse what cannot be searched, before it shares a batch with others."""
    if len(queries) > limits.queries:
        raise Refused(413, f"{len(queries):,} queries were sent; expected at most {limits.queries:,}: send them in parts")
    for number, query in enumerate(queries, start=1):
        if len(query) > limits.query_characters:
            raise Refused(
                413, f"query {number} has {len(query):,} characters; expected at most {limits.query_characters:,}: shorten it"
            )
        require_utf8(f"query {number}", query)
        if not query.strip():
            raise Refused(400, f"query {number} is empty; expected some text")


def lens_params(asked: messages.LensSettings) -> tuple[tuple[str, MultiParams | SparseParams], ...]:
    """The settings of single lenses, as the lenses take them."""
    found: list[tuple[str, MultiParams | SparseParams]] = []
    if asked.multi:
        found.append(("multi", MultiParams(**asked.multi.model_dump())))
    for name, said in (("sparse", asked.sparse), ("tokens", asked.tokens), ("lexical", asked.lexical)):
        if said:
            found.append((name, SparseParams(**said.model_dump())))
    return tuple(found)
