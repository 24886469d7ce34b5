"""Elasticsearch and OpenSearch: a mapping, and numbered files of NDJSON for `_bulk`.

All files in order make an index what the collection is. Each run adds files with the differences, so those of earlier runs are
the record of what was sent. A file gets its name when it is complete and on disk.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

from trilens.errors import BadInput
from trilens.represent import Dense, Multi, Representation, Sparse
from trilens.send.address import Address
from trilens.send.layout import Layout, VectorField
from trilens.send.passages import DIGEST, DOC_ID, END, METADATA, NUMBER, START, TEXT, TITLE, Passage, values
from trilens.send.target import Engine, answering, require_same_form

FILE_BYTES = 20_000_000
UNFINISHED = ".part"
ACTION = re.compile(r'\{"(index|delete)": \{"_index": "[a-z0-9_]+", "_id": "([0-9a-f-]{36})"\}\}\n')
SOURCE = re.compile(r'\{"digest": "([0-9a-f]{32})", .*\}\n')
METADATA_LEVELS = 40  # more than documents can have
COMMON = {
    DIGEST: {"type": "keyword", "index": False},
    DOC_ID: {"type": "keyword"},
    NUMBER: {"type": "integer"},
    TITLE: {"type": "text"},
    TEXT: {"type": "text"},
    START: {"type": "integer", "index": False},
    END: {"type": "integer", "index": False},
}
KINDS = {"elasticsearch": frozenset({Dense, Sparse, Multi}), "opensearch": frozenset({Dense, Sparse})}
TITLES = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}


class BulkTarget:
    """The files of one index in a folder."""

    def __init__(self, address: Address, name: str, layout: Layout) -> None:
        assert address.path is not None
        self._address, self._name, self._folder = address, name, address.path
        self._file: IO[bytes] | None = None
        with self._answering():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._open(index_settings(address.engine, layout))
        self._number = max((int(path.stem.rpartition("-")[2]) for path in self._files()), default=0)

    def stored(self) -> Iterator[tuple[str, str]]:
        """See `Destination`."""
        stored: dict[str, str] = {}
        with self._answering():
            for path in self._files():
                with path.open(encoding="utf-8") as lines:
                    _replay(path, lines, stored)
        yield from stored.items()

    def write(self, passages: Sequence[Passage]) -> None:
        """See `Destination`."""
        for passage in passages:
            vectors = {lens: _vector(vector) for lens, vector in passage.vectors.items()}
            fields = passage.fields() | {lens: vector for lens, vector in vectors.items() if vector}
            self._append({"index": self._action(passage.id)}, fields)

    def delete(self, ids: Sequence[str]) -> None:
        """See `Destination`."""
        for passage_id in ids:
            self._append({"delete": self._action(passage_id)})

    def finish(self) -> None:
        """See `Destination`. Completes the last file."""
        if self._file is None:
            return
        part = Path(self._file.name)
        with self._answering():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            part.rename(part.with_suffix(""))
        self._file = None

    def close(self) -> None:
        """See `Destination`. An unfinished file is removed."""
        if self._file is not None:
            self._file.close()
            Path(self._file.name).unlink(missing_ok=True)

    def _answering(self) -> AbstractContextManager[None]:
        return answering(self._address, OSError, UnicodeDecodeError)

    def _open(self, settings: dict[str, Any]) -> None:
        """Write the settings of the index, or compare the layout with those that are there."""
        path = self._folder / f"{self._name}.index.json"
        text = json.dumps(settings, indent=2) + "\n"
        if path.exists():
            try:
                found = json.loads(path.read_text(encoding="utf-8"))["mappings"]["properties"]
            except (ValueError, KeyError, TypeError) as error:
                raise BadInput(f"{path} is no mapping; expected the file of an earlier run: choose another folder") from error
            wanted = settings["mappings"]["properties"]
            require_same_form(self._address, self._name, *({key: str(form[key]) for key in form} for form in (found, wanted)))
            return
        unfinished = path.with_name(path.name + UNFINISHED)
        unfinished.write_text(text, encoding="utf-8")
        unfinished.rename(path)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._name}-[0-9]*.ndjson"), key=lambda path: int(path.stem.rpartition("-")[2]))

    def _action(self, passage_id: str) -> dict[str, str]:
        return {"_index": self._name, "_id": passage_id}

    def _append(self, *lines: dict[str, Any]) -> None:
        with self._answering():
            if self._file is None:
                self._number += 1
                path = self._folder / f"{self._name}-{self._number:06}.ndjson{UNFINISHED}"
                self._file = path.open("wb")
            self._file.write("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
        if self._file.tell() >= FILE_BYTES:
            self.finish()


def engine(address: Address) -> Engine:
    """The engine of an address."""
    return Engine(TITLES[address.engine], KINDS[address.engine], False, BulkTarget)


def index_settings(name: str, layout: Layout) -> dict[str, Any]:
    """The body of the request that creates the index."""
    elastic = name == "elasticsearch"
    metadata = {"type": "flattened", "depth_limit": METADATA_LEVELS} if elastic else {"type": "flat_object"}
    vectors = {field.lens: (_elastic_field if elastic else _open_field)(field) for field in layout.fields}
    mappings = {"dynamic": "strict", "properties": {**COMMON, METADATA: metadata, **vectors}}
    return {"mappings": mappings} if elastic else {"settings": {"index": {"knn": True}}, "mappings": mappings}


def _elastic_field(field: VectorField) -> dict[str, Any]:
    if field.kind is Dense:
        return {"type": "dense_vector", "dims": field.dim, "index": True, "similarity": "max_inner_product"}
    return {"type": "sparse_vector"} if field.kind is Sparse else {"type": "rank_vectors", "dims": field.dim}


def _open_field(field: VectorField) -> dict[str, Any]:
    if field.kind is Sparse:
        return {"type": "rank_features"}
    method = {"name": "hnsw", "space_type": "innerproduct", "engine": "faiss"}
    return {"type": "knn_vector", "dimension": field.dim, "method": method}


def _vector(vector: Representation) -> Any:
    """A vector as JSON; empty without terms or tokens. Terms are features, which are named by their number."""
    match vector:
        case Dense():
            return values(vector.vectors[0])
        case Sparse():
            return dict(zip(map(str, vector.terms.tolist()), values(vector.weights), strict=True))
        case Multi():
            return [values(token) for token in vector.vectors]


def _replay(path: Path, lines: IO[str], stored: dict[str, str]) -> None:
    """Do with `stored` what the lines of a file do with an index."""
    for line in lines:
        action = ACTION.fullmatch(line)
        source = SOURCE.fullmatch(next(lines, "")) if action and action[1] == "index" else None
        if action is None or (action[1] == "index" and source is None):
            raise BadInput(f"{path} is not as it was written; restore it, or remove all files of this index and send again")
        if source is None:
            stored.pop(action[2], None)
        else:
            stored[action[2]] = source[1]
