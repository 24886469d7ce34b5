"""The engines that `send` writes to, as tests query them: by their own clients, with the vectors that `encode_queries` returns.

Qdrant runs in its client's local mode, Milvus as Milvus Lite, PostgreSQL as a server on a socket, LanceDB in the process.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from trilens.represent import Dense, Multi, Representation, Sparse

NAME = "docs"
MOST = 1000
Scores = dict[str, float]


@dataclass(frozen=True)
class Running:
    """An address to send to, the scores of passages by id that a query by one lens returns, in its order, and their fields."""

    address: str
    scores: Callable[[str, Representation], Scores]
    fields: Callable[[], Mapping[str, Mapping[str, Any]]]


def qdrant(folder: Path) -> Running:
    from qdrant_client import QdrantClient, models

    def plain(vector: Representation) -> Any:
        match vector:
            case Dense():
                return vector.vectors[0].tolist()
            case Sparse():
                return models.SparseVector(indices=vector.terms.tolist(), values=vector.weights.tolist())
            case Multi():
                return vector.vectors.tolist()

    def scores(lens: str, vector: Representation) -> Scores:
        client = QdrantClient(path=str(folder / "qdrant"))
        try:
            found = client.query_points(NAME, query=plain(vector), using=lens, limit=MOST).points
        finally:
            client.close()
        return {str(point.id): point.score for point in found}

    def fields() -> Mapping[str, Mapping[str, Any]]:
        client = QdrantClient(path=str(folder / "qdrant"))
        try:
            return {str(point.id): point.payload or {} for point in client.scroll(NAME, limit=MOST)[0]}
        finally:
            client.close()

    return Running(f"qdrant+file:{folder / 'qdrant'}", scores, fields)


def milvus(folder: Path) -> Running:
    from pymilvus import MilvusClient

    path = folder / "milvus.db"

    def scores(lens: str, vector: Representation) -> Scores:
        query: Any = vector.vectors[0].tolist() if isinstance(vector, Dense) else None
        if isinstance(vector, Sparse):
            query = dict(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True))
        client = MilvusClient(str(path))
        client.load_collection(NAME)  # after a kill it is not
        try:
            (found,) = client.search(NAME, data=[query], anns_field=lens, limit=MOST)
        finally:
            client.close()
        return {hit["id"]: hit["distance"] for hit in found}

    def fields() -> Mapping[str, Mapping[str, Any]]:
        client = MilvusClient(str(path))
        client.load_collection(NAME)  # after a kill it is not
        try:
            names = ["id", "doc_id", "passage", "title", "text", "span_start", "span_end", "metadata", "digest"]
            return {found["id"]: found for found in client.query(NAME, filter='id != ""', output_fields=names)}
        finally:
            client.close()

    return Running(f"milvus+file:{path}", scores, fields)


def lancedb(folder: Path) -> Running:
    from lancedb import connect

    def scores(lens: str, vector: Representation) -> Scores:
        assert isinstance(vector, Dense | Multi)
        query = vector.vectors[0] if isinstance(vector, Dense) else vector.vectors
        table = connect(str(folder / "lance")).open_table(NAME)
        found = table.search(query, vector_column_name=lens).distance_type("dot").limit(MOST).to_list()
        return {row["id"]: len(vector.vectors) - row["_distance"] for row in found}

    def fields() -> Mapping[str, Mapping[str, Any]]:
        table = connect(str(folder / "lance")).open_table(NAME)
        return {row["id"]: row for row in table.search().limit(MOST).to_list()}

    return Running(f"lancedb+file:{folder / 'lance'}", scores, fields)


MAXSIM = """SELECT id::text, (
    SELECT sum(best) FROM (
        SELECT max(-(token <#> query.token_vector)) AS best
        FROM unnest({lens}) AS token, unnest(%s::{kind}[]) WITH ORDINALITY AS query(token_vector, number)
        GROUP BY query.number
    ) AS bests
) AS score FROM docs WHERE {lens} IS NOT NULL ORDER BY score DESC"""
INNER = "SELECT id::text, -({lens} <#> %s::{kind}) AS score FROM docs WHERE {lens} IS NOT NULL ORDER BY score DESC"


def postgres(address: str, kind: str = "vector") -> Running:
    from psycopg import connect
    from psycopg.rows import dict_row

    def given(vector: Representation) -> Any:
        match vector:
            case Dense():
                return str(vector.vectors[0].tolist())
            case Sparse():
                pairs = zip((vector.terms + 1).tolist(), vector.weights.tolist(), strict=True)
                return f"{{{','.join(f'{term}:{weight}' for term, weight in pairs)}}}/{vector.dim}"
            case Multi():
                return [str(token) for token in vector.vectors.tolist()]

    def scores(lens: str, vector: Representation) -> Scores:
        statement = MAXSIM if isinstance(vector, Multi) else INNER
        statement = statement.format(lens=lens, kind="sparsevec" if isinstance(vector, Sparse) else kind)
        with connect(address) as connection:
            return dict(connection.execute(statement, [given(vector)]).fetchall())

    def fields() -> Mapping[str, Mapping[str, Any]]:
        with connect(address, row_factory=dict_row) as connection:
            return {str(row["id"]): row for row in connection.execute("SELECT * FROM docs").fetchall()}

    assert urlsplit(address).path == "/postgres" and parse_qs(urlsplit(address).query)["host"]
    return Running(address, scores, fields)
