"""Routes that get and change documents. Ids may hold any characters: they stand at the end of an address, or in `id`."""

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.convertors import Convertor, register_url_convertor

from trilens.collection import Collection
from trilens.serve.http import messages
from trilens.serve.http.failures import Refused, absent
from trilens.serve.http.served import Written
from trilens.serve.http.service import Named, Served, may_read, may_write
from trilens.text.document import Document

LARGEST_KEY = (1 << 63) - 1
MOST_AT_ONCE = 100


class Anything(Convertor[str]):
    """The rest of an address, with slashes and line ends."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        """As it stands."""
        return value

    def to_string(self, value: str) -> str:
        """As it stands."""
        return value


register_url_convertor("anything", Anything())
router = APIRouter(tags=["documents"])
Ids = Annotated[list[str], Query(alias="id", description="Ids of documents, with any characters.", max_length=MOST_AT_ONCE)]
reads, writes = [Depends(may_read)], [Depends(may_write)]


@router.get("/collections/{name}/documents", dependencies=reads)
async def list_documents(
    served: Named,
    ids: Ids = [],  # noqa: B006  read by FastAPI, never changed
    after: Annotated[int, Query(ge=0, le=LARGEST_KEY, description="`next` of the last answer.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = 20,
) -> messages.DocumentPage:
    """Documents with some ids, or all documents, page by page."""
    if ids:
        found = await asyncio.to_thread(_documents, served, ids)
        missing = [doc_id for doc_id, document in zip(ids, found, strict=True) if document is None]
        return messages.DocumentPage(documents=[_message(one) for one in found if one], missing=missing, next=None)
    page = await asyncio.to_thread(lambda: served.current().page(after, limit))
    following = page[-1][0] if len(page) == limit else None
    return messages.DocumentPage(documents=[_message(document) for _, document in page], missing=[], next=following)


@router.get("/collections/{name}/documents/{doc_id:anything}", dependencies=reads)
async def get_document(doc_id: str, served: Named) -> messages.StoredDocument:
    """One document."""
    (document,) = await asyncio.to_thread(_documents, served, [doc_id])
    if document is None:
        raise absent(doc_id, served.name)
    return _message(document)


@router.put("/collections/{name}/documents", dependencies=writes)
async def put_documents(asked: messages.DocumentsAsked, served: Named, service: Served) -> messages.Changed:
    """Add documents, replacing those whose ids are there already, in one commit."""
    if len(asked.documents) > service.limits.documents:
        given, most = len(asked.documents), service.limits.documents
        raise Refused(413, f"{given:,} documents were sent; expected at most {most:,}: send them in parts")
    documents = [Document(one.doc_id, one.text, one.title, one.metadata) for one in asked.documents]
    return _changed(await served.put(documents))


@router.put("/collections/{name}/documents/{doc_id:anything}", dependencies=writes)
async def put_document(doc_id: str, asked: messages.DocumentContent, served: Named) -> messages.Changed:
    """Add or replace one document."""
    return _changed(await served.put([Document(doc_id, asked.text, asked.title, asked.metadata)]))


@router.delete("/collections/{name}/documents", dependencies=writes)
async def delete_documents(
    served: Named,
    ids: Annotated[list[str], Query(alias="id", description="Ids of documents.", min_length=1, max_length=MOST_AT_ONCE)],
) -> messages.Changed:
    """Delete documents; ids that are not there are named in the answer."""
    return _changed(await served.write(lambda collection: collection.delete(ids)))


@router.delete("/collections/{name}/documents/{doc_id:anything}", dependencies=writes)
async def delete_document(doc_id: str, served: Named) -> messages.Changed:
    """Delete one document."""

    def change(collection: Collection) -> list[str]:
        if missing := collection.delete([doc_id]):
            raise absent(missing[0], served.name)
        return []

    return _changed(await served.write(change))


def _documents(served: Named, ids: list[str]) -> list[Document | None]:
    snapshot = served.current()
    return [snapshot.document(doc_id) for doc_id in ids]


def _message(document: Document) -> messages.StoredDocument:
    return messages.StoredDocument(**asdict(document))


def _changed(done: Written) -> messages.Changed:
    return messages.Changed(**asdict(done.changes), missing=done.missing, documents=done.documents, commit=done.commit)
