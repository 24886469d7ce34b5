"""Routes that read and change documents. Ids may contain any character: they end a path, or are passed as `id`."""

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.convertors import Convertor, register_url_convertor

from trilens.collection import Collection
from trilens.http import messages
from trilens.http.failures import Refused, absent
from trilens.http.served import Written
from trilens.http.service import Named, Served, may_read, may_write
from trilens.http.uploads import read_upload
from trilens.text.document import Document

LARGEST_KEY = (1 << 63) - 1
MOST_AT_ONCE = 100


class AnyText(Convertor[str]):
    """A path parameter that matches the rest of a path, with slashes and line breaks."""

    regex = r"[\s\S]+"

    def convert(self, value: str) -> str:
        """The matched text, unchanged."""
        return value

    def to_string(self, value: str) -> str:
        """The value, unchanged."""
        return value


register_url_convertor("any_text", AnyText())
router = APIRouter(tags=["documents"])
Ids = Annotated[list[str], Query(alias="id", description="Document ids; may be repeated.", max_length=MOST_AT_ONCE)]
Replace = Annotated[bool, Query(description="Replace documents with the same ids; otherwise they are an error.")]
reads, writes = [Depends(may_read)], [Depends(may_write)]
FILE_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("/collections/{name}/documents", dependencies=reads)
async def list_documents(
    served: Named,
    ids: Ids = [],  # noqa: B006  read by FastAPI, never changed
    after: Annotated[int, Query(ge=0, le=LARGEST_KEY, description="`next` of the previous page.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = 20,
) -> messages.DocumentPage:
    """The documents with the given ids, or all documents, page by page."""
    if ids:
        documents = await asyncio.to_thread(_documents, served, ids)
        missing = [doc_id for doc_id, document in zip(ids, documents, strict=True) if document is None]
        return messages.DocumentPage(documents=[document for document in documents if document], missing=missing, next=None)
    page = await asyncio.to_thread(lambda: served.current().page(after, limit))
    next_key = page[-1][0] if len(page) == limit else None
    return messages.DocumentPage(documents=[document for _, document in page], missing=[], next=next_key)


@router.get("/collections/{name}/documents/{doc_id:any_text}", dependencies=reads)
async def get_document(doc_id: str, served: Named) -> Document:
    """One document."""
    (document,) = await asyncio.to_thread(_documents, served, [doc_id])
    if document is None:
        raise absent(doc_id, served.name)
    return document


@router.put("/collections/{name}/documents", dependencies=writes)
async def put_documents(request: messages.DocumentsRequest, served: Named, service: Served, http: Request) -> messages.Changed:
    """Add documents in one commit; documents with existing ids are replaced, or refused with `"replace": false`."""
    if len(request.documents) > service.limits.documents:
        count, most = len(request.documents), service.limits.documents
        raise Refused(413, f"{count:,} documents were sent; expected at most {most:,}: split the request")
    documents = [Document(body.doc_id, body.text, body.title, body.metadata) for body in request.documents]
    recorded = service.recorded(http, served.name, "put", [document.doc_id for document in documents])
    return _changed(await served.put(documents, recorded, request.replace))


@router.post("/collections/{name}/files/{file_name:any_text}", dependencies=writes, openapi_extra=FILE_BODY)
async def add_file(file_name: str, served: Named, service: Served, http: Request, replace: Replace = False) -> messages.Changed:
    """Add the documents of a file in one commit. The body is the file; the suffix of its name selects the format."""
    content = await http.body()
    documents = await asyncio.to_thread(read_upload, file_name, content, service.limits.documents)
    recorded = service.recorded(http, served.name, "put", [document.doc_id for document in documents])
    return _changed(await served.put(documents, recorded, replace))


@router.put("/collections/{name}/documents/{doc_id:any_text}", dependencies=writes)
async def put_document(
    doc_id: str, request: messages.DocumentContent, served: Named, service: Served, http: Request
) -> messages.Changed:
    """Add or replace one document."""
    document = Document(doc_id, request.text, request.title, request.metadata)
    return _changed(await served.put([document], service.recorded(http, served.name, "put", [doc_id])))


@router.delete("/collections/{name}/documents", dependencies=writes)
async def delete_documents(
    served: Named,
    service: Served,
    http: Request,
    ids: Annotated[
        list[str], Query(alias="id", description="Document ids; may be repeated.", min_length=1, max_length=MOST_AT_ONCE)
    ],
) -> messages.Changed:
    """Delete documents; the response lists ids that do not exist."""
    recorded = service.recorded(http, served.name, "delete", ids)
    return _changed(await served.write(lambda collection: collection.delete(ids), recorded))


@router.delete("/collections/{name}/documents/{doc_id:any_text}", dependencies=writes)
async def delete_document(doc_id: str, served: Named, service: Served, http: Request) -> messages.Changed:
    """Delete one document."""

    def change(collection: Collection) -> list[str]:
        if missing := collection.delete([doc_id]):
            raise absent(missing[0], served.name)
        return []

    return _changed(await served.write(change, service.recorded(http, served.name, "delete", [doc_id])))


def _documents(served: Named, ids: list[str]) -> list[Document | None]:
    snapshot = served.current()
    return [snapshot.document(doc_id) for doc_id in ids]


def _changed(written: Written) -> messages.Changed:
    return messages.Changed(
        **asdict(written.changes), missing=written.missing, documents=written.documents, commit=written.commit
    )
