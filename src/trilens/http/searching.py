"""Routes that search a collection: search, explain, disentangle."""

import asyncio
from functools import partial
from time import perf_counter

from fastapi import APIRouter, Depends, Request, Response

from trilens.explain.disentangle import disentangle, whole_words
from trilens.explain.explanation import Explanation
from trilens.explain.word import Word
from trilens.http import messages
from trilens.http.access_log import note_queries
from trilens.http.answers import answers_json
from trilens.http.attended import AttendedRoute
from trilens.http.failures import Refused, absent
from trilens.http.limits import Limits
from trilens.http.service import Named, Served, may_read
from trilens.search.hyde import Hyde
from trilens.search.options import SearchOptions
from trilens.search.rerank import Rerank
from trilens.text.document import require_utf8

router = APIRouter(route_class=AttendedRoute, tags=["search"], dependencies=[Depends(may_read)])


@router.post("/collections/{name}/search", response_model=messages.Answers)
async def search(request: messages.SearchRequest, served: Named, http: Request) -> Response:
    """The top-k documents of each query, by one lens or several fused lenses."""
    started = perf_counter()
    note_queries(http, request.queries)
    require_queries(request.queries, served.limits)
    require_allowed(request, served.limits)
    answers = await served.search(_options(request, served.limits), request.queries, request.document_texts)
    took_ms = round(1000 * (perf_counter() - started), 3)
    return Response(answers_json(served.name, took_ms, answers), media_type="application/json")


@router.post("/collections/{name}/explain")
async def explain(request: messages.ExplainRequest, served: Named, service: Served, http: Request) -> messages.Explanations:
    """Explain scores: the parts that add up to each score, with their spans in the text."""
    note_queries(http, [request.query])
    require_queries([request.query], service.limits)
    require_allowed(request, service.limits)
    if len(request.doc_ids) > service.limits.explained:
        count, most = len(request.doc_ids), service.limits.explained
        raise Refused(413, f"{count:,} document ids were sent; expected at most {most:,}: split the request")
    options = _options(request, service.limits)

    def explain_one(doc_id: str) -> Explanation:
        collection = served.pinned()
        if collection.snapshot.key(doc_id) is None:
            raise absent(doc_id, served.name)
        return collection.explain(request.query, doc_id, options=options)

    deadline = served.deadline()
    # One at a time, so that other requests can run in between.
    explanations = [await served.call(partial(explain_one, doc_id), deadline) for doc_id in request.doc_ids]
    return messages.Explanations(explanations=explanations)


@router.post("/collections/{name}/disentangle", name="disentangle")
async def words(request: messages.DisentangleRequest, served: Named, service: Served) -> messages.Words:
    """The vocabulary terms of a text in the collection's model, heaviest first."""
    require_queries([request.text], service.limits)

    def terms() -> list[Word]:
        if not request.whole_words:
            return disentangle(served.encoder, request.text, request.side, request.top)
        return whole_words(disentangle(served.encoder, request.text, request.side), request.text)[: request.top]

    return messages.Words(text=request.text, words=await served.call(terms, served.deadline()))


@router.get("/collections/{name}/examples")
async def examples(served: Named) -> messages.ExampleQueries:
    """Example queries from the documents of the collection."""
    commit, queries = await asyncio.to_thread(served.examples)
    return messages.ExampleQueries(commit=commit, queries=queries)


def _options(request: SearchOptions, limits: Limits) -> SearchOptions:
    """The search options without the queries. Requests with equal options share a batch."""
    fields = request.model_fields_set & set(SearchOptions.model_fields)
    options = SearchOptions(**{name: getattr(request, name) for name in fields})
    if options.rerank and options.rerank.is_cross and options.rerank.model is None:
        return options.updated(rerank=options.rerank.model_copy(update={"model": limits.cross_encoders[0]}))
    return options


def require_allowed(options: SearchOptions, limits: Limits) -> None:
    """Refuse a k or offset above the limit, and HyDE endpoints and cross-encoders that the service was not started with.

    Otherwise a client could make the service send its API key to any URL, or open any file.
    """
    if options.last_rank > limits.k:
        what = f"k + offset is {options.last_rank}" if options.offset else f"k is {options.k}"
        raise Refused(413, f"{what}; expected at most {limits.k}")
    if options.rerank:
        require_reranker(options.rerank, limits)
    if not options.hyde:
        return
    if options.hyde.address not in [Hyde(url=url).address for url in limits.hyde_urls]:
        allowed = f"one of {', '.join(limits.hyde_urls)}" if limits.hyde_urls else "none"
        raise Refused(403, f"hyde.url is {options.hyde.url!r}; expected {allowed}: start the service with --hyde URL")
    if own := options.hyde.model_fields_set - {"url", "model", "lenses"}:
        raise Refused(403, f"hyde has {min(own)!r}; expected only url, model and lenses: the service sets the others")


def require_reranker(rerank: Rerank, limits: Limits) -> None:
    """Refuse to re-rank more documents than a search may return, or by a cross-encoder that the service does not have."""
    if (rerank.depth or 0) > limits.k:
        raise Refused(413, f"rerank.depth is {rerank.depth}; expected at most {limits.k}")
    known = limits.cross_encoders
    if rerank.is_cross and (not known or rerank.model not in (None, *known)):
        given = "rerank is cross" if rerank.model is None else f"rerank.model is {rerank.model!r}"
        allowed = f"one of {', '.join(known)}" if known else "none"
        raise Refused(403, f"{given}; expected {allowed}: start the service with --cross-encoder MODEL")


def require_queries(queries: list[str], limits: Limits) -> None:
    """Refuse invalid queries before they share a batch with valid ones."""
    if len(queries) > limits.queries:
        raise Refused(413, f"{len(queries):,} queries were sent; expected at most {limits.queries:,}: split the request")
    for number, query in enumerate(queries, start=1):
        if len(query) > limits.query_characters:
            raise Refused(
                413, f"query {number} has {len(query):,} characters; expected at most {limits.query_characters:,}: shorten it"
            )
        require_utf8(f"query {number}", query)
        if not query.strip():
            raise Refused(400, f"query {number} is empty; expected text")
