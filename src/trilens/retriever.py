"""`Retriever`: the interface of the VDR papers' code: embed texts over the vocabulary, multiply, disentangle and retrieve.

It keeps an index in memory and scores every passage, without approximation. `Collection` has the same searches over indexes on
disk: lens `sparse` is the full search, with `query=bag` α; lens `tokens` is β, and with `rerank=sparse` the late search.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from trilens.encode.folder import CONFIG_FILE, Precision, SparseHead
from trilens.encode.hub import hub_model, is_hub_id
from trilens.encode.models import resolve_model
from trilens.encode.onnx import OnnxEncoder
from trilens.encode.reading import Side
from trilens.encode.terms import SparseMode
from trilens.errors import BadInput, BadModel
from trilens.explain.disentangle import disentangle
from trilens.explain.pictures import show_cloud, word_cloud
from trilens.explain.word import Word
from trilens.index.exact import exact_dense, exact_sparse
from trilens.kernels.activations import ALL, keep_weights
from trilens.kernels.array_types import Float32s, Int64s
from trilens.represent import Dense, Sparse
from trilens.represent.scipy_file import read_csr, write_csr

Texts = str | Sequence[str]
IndexType = Literal["dense", "sparse", "bag_of_token"]
SearchName = Literal["full", "alpha", "beta", "late"]
SEARCHES: dict[IndexType, tuple[SearchName, ...]] = {
    "dense": ("full",),
    "sparse": ("full", "alpha"),
    "bag_of_token": ("beta", "late"),
}
"""The searches of each index, the default one first."""
TOP = 768
BATCH = 128  # texts; an embedding over the vocabulary of BERT takes 120 kilobytes


class EmbeddingArray(np.ndarray[Any, np.dtype[np.float32]]):
    """Embeddings of texts, (texts, dimensions); `@` of two gives their scores."""

    def t(self) -> "EmbeddingArray":
        """The transposed array, as torch writes it."""
        return self.T

    @staticmethod
    def of(rows: Float32s) -> "EmbeddingArray":
        """An array as embeddings."""
        return rows.view(EmbeddingArray)


class SearchResults(NamedTuple):
    """Positions of passages in the index (queries, k), best first, and their scores."""

    ids: Int64s
    scores: Float32s


class TowerEncoder:
    """The query encoder or the passage encoder of a retriever."""

    def __init__(self, encoder: OnnxEncoder, side: Side) -> None:
        self._encoder, self._side = encoder, side
        self.config = encoder.folder.config

    def embed(
        self,
        texts: Texts,
        batch_size: int = BATCH,
        topk: int | None = None,
        bow: bool = False,
        activate_lexical: bool = True,
    ) -> EmbeddingArray:
        """The embeddings of texts: weights of the vocabulary, or dense vectors of a model without a sparse head.

        `topk` is the number of highest weights to keep (None: that of the model, -1: all, 0: none); `activate_lexical` keeps
        those of the text's own tokens as well. `bow` gives the bag of tokens instead, for which the model does not run.
        """
        listed = [texts] if isinstance(texts, str) else list(texts)
        if (sparse := self.config.sparse) is None:
            return EmbeddingArray.of(self._dense(listed))
        if bow:
            return EmbeddingArray.of(to_rows(self.bags(listed)))
        return EmbeddingArray.of(to_rows(self.vectors(listed, sparse, batch_size, topk, activate_lexical)))

    def vectors(
        self, texts: Sequence[str], sparse: SparseHead, batch_size: int, topk: int | None, activate_lexical: bool
    ) -> Sparse:
        """Vocabulary weights of texts."""
        top = sparse.top if topk is None else topk
        SparseMode(None if top == ALL else top, activate_lexical)  # refuses what keeps nothing
        parts = [empty(sparse.dim)]
        for start in range(0, len(texts), batch_size):
            batch = texts[start : start + batch_size]
            encoded = self._encoder.encode_queries(batch) if self._side == "query" else self._encoder.encode_docs(batch)
            assert encoded.sparse is not None and encoded.bag is not None
            rows, bag = to_rows(encoded.sparse), encoded.bag
            parts.append(Sparse(*keep_weights(rows, top, bag.indptr, bag.terms, activate_lexical), sparse.dim))
        return Sparse.concat(parts)

    def bags(self, texts: Sequence[str]) -> Sparse:
        """Which terms each text contains: weights of 1, or with unit length if the model's vectors have it."""
        encoder = self._encoder.bags
        bag = (encoder.encode_queries(texts) if self._side == "query" else encoder.encode_docs(texts)).bag
        assert bag is not None
        counts = np.diff(bag.indptr)
        unit = self.config.sparse is not None and self.config.sparse.normalised
        weights = np.repeat(np.maximum(counts, 1) ** -0.5 if unit else np.ones(len(counts)), counts)
        return Sparse(bag.indptr, bag.terms, weights.astype(np.float32), bag.dim)

    def disentangle(
        self, text: str, topk: int = TOP, visual: bool = False, save_file: str | Path | None = None
    ) -> dict[str, float]:
        """The terms that a text activates, heaviest first; `visual` draws a word cloud, into a file if one is given."""
        words = disentangle(self._encoder, text, self._side, topk)
        return drawn(words, visual, save_file)

    dst = disentangle

    def _dense(self, texts: list[str]) -> Float32s:
        encoded = self._encoder.encode_queries(texts) if self._side == "query" else self._encoder.encode_docs(texts)
        assert encoded.dense is not None
        return encoded.dense.vectors


@dataclass(frozen=True, eq=False)
class Index:
    """Passages in memory: their vectors and, unless only vectors were loaded, their texts."""

    index_type: IndexType
    vectors: Dense | Sparse
    data: Sequence[str] | None

    def __len__(self) -> int:
        return len(self.vectors)

    def search(self, queries: Float32s, k: int) -> SearchResults:
        """The k best passages of each query embedding by inner product; all of them if there are fewer."""
        kept = max(1, min(k, len(self)))
        if isinstance(self.vectors, Dense):
            top = exact_dense(Dense(np.asarray(queries, np.float32)), self.vectors, kept)
        else:
            top = exact_sparse(to_sparse(queries), self.vectors, kept)
        return SearchResults(top.rows, top.scores)


class Retriever:
    """A model with its query and passage encoders, and an index."""

    def __init__(self, folder: Path) -> None:
        every = SparseMode(top=None)
        encoder = OnnxEncoder(folder, mode=every)
        heads = [head for head in ("sparse", "dense") if head in encoder.heads]
        if not heads:
            raise BadModel(f"{folder} has the heads {', '.join(encoder.heads)}; expected sparse or dense")
        self.folder = encoder.folder
        encoder = OnnxEncoder(folder, mode=every, heads=[heads[0]])
        self.encoder_q, self.encoder_p = TowerEncoder(encoder, "query"), TowerEncoder(encoder, "doc")
        self._encoder = encoder
        self.index: Index | None = None

    @staticmethod
    def from_pretrained(name: str | Path, precision: Precision = "float32") -> "Retriever":
        """Load a model by its hub id, which is exported once in this precision, its name, or the path of its model folder."""
        return Retriever(hub_model(str(name), precision) if is_hub_id(str(name)) else resolve_model(str(name)))

    def save_pretrained(self, path: str | Path) -> None:
        """Copy the model folder to a new path, from which `from_pretrained` loads it."""
        target = Path(path)
        if target.exists() and any(target.iterdir()):
            raise BadInput(f"{target} exists; expected a new or empty folder for {CONFIG_FILE} and the graphs")
        shutil.copytree(self.folder.path, target, dirs_exist_ok=True)

    def to(self, _device: Any) -> Self:
        """The retriever itself, which computes on the CPU: code written for several devices runs unchanged."""
        return self

    def encode_queries(self, queries: Sequence[str], batch_size: int = BATCH, topk: int | None = None) -> EmbeddingArray:
        """EmbeddingArray of queries without those weights of their own tokens that are not among the highest, as for BEIR."""
        return self.encoder_q.embed(queries, batch_size, topk, activate_lexical=False)

    def encode_corpus(
        self, corpus: Sequence[str | Mapping[str, str]], batch_size: int = BATCH, topk: int | None = None
    ) -> EmbeddingArray:
        """EmbeddingArray of passages, given as texts or as objects with text and title, as for BEIR."""
        return self.encoder_p.embed([passage_text(passage) for passage in corpus], batch_size, topk, activate_lexical=False)

    def explain(
        self, q: str, p: str, topk: int = TOP, visual: bool = False, save_file: str | Path | None = None
    ) -> dict[str, float]:
        """What each vocabulary term adds to the score of a query and a passage, most first."""
        if self.folder.config.sparse is None:
            raise BadModel(f"{self.folder.path} has no sparse head; expected one to explain a score by terms")
        products = np.asarray(self.encoder_q.embed(q)[0] * self.encoder_p.embed(p)[0])
        best = [int(term) for term in np.argsort(-products, kind="stable")[:topk] if products[term] > 0]
        own = set(self.encoder_q.bags([q]).terms.tolist()) & set(self.encoder_p.bags([p]).terms.tolist())
        texts = self._encoder.term_texts(best)
        words = [Word(word, float(products[term]), term in own) for word, term in zip(texts, best, strict=True)]
        return drawn(words, visual, save_file)

    def build_index(self, corpus: Sequence[str], index_type: IndexType | None = None, batch_size: int = BATCH) -> Index:
        """Index texts by their bags of tokens, for which the model does not run, or by their embeddings (the default)."""
        texts, sparse = list(corpus), self.folder.config.sparse
        kind: IndexType = index_type or ("dense" if sparse is None else "sparse")
        if kind not in SEARCHES or (kind == "dense") != (sparse is None):
            fitting = ["dense"] if sparse is None else ["sparse", "bag_of_token"]
            raise BadInput(
                f"index_type is {index_type!r}; expected {' or '.join(fitting)} for the model {self.folder.config.name}"
            )
        if sparse is None:
            vectors: Dense | Sparse = Dense(np.asarray(self.encoder_p.embed(texts)))
        elif kind == "sparse":
            vectors = self.encoder_p.vectors(texts, sparse, batch_size, None, True)
        else:
            vectors = self.encoder_p.bags(texts)
        self.index = Index(kind, vectors, texts)
        return self.index

    def save_index(self, path: str | Path) -> None:
        """Write the index as a SciPy matrix (.npz), as vsearch does."""
        index = self._indexed()
        if not isinstance(index.vectors, Sparse):
            raise BadInput("the index is dense; expected one of vocabulary weights or bags of tokens for a .npz file")
        write_csr(Path(path), index.vectors)

    def load_index(
        self, index_file: str | Path, data_file: str | Path | None = None, index_type: IndexType = "bag_of_token"
    ) -> Index:
        """Read an index of vsearch: .npz files that match a pattern, one after the other, and a JSONL file of the texts.

        Matrices over the whole vocabulary lose the columns before the vocabulary shift.
        """
        if (sparse := self.folder.config.sparse) is None or index_type == "dense":
            raise BadInput("only indexes of vocabulary weights or bags of tokens can be loaded, by a model with a sparse head")
        vectors = read_csr(Path(index_file), sparse.dim, sparse.shift)
        texts = None if data_file is None else read_texts(Path(data_file))
        if texts is not None and len(texts) != len(vectors):
            raise BadInput(f"{data_file} has {len(texts):,} texts; expected {len(vectors):,}, as many as {index_file} has rows")
        self.index = Index(index_type, vectors, texts)
        return self.index

    def retrieve(
        self,
        queries: Texts | Float32s,
        k: int = 5,
        topk: int | None = None,
        search: SearchName | None = None,
        rerank: bool = False,
        candidates: int = 100,
    ) -> SearchResults:
        """The k best passages of each query, given as text or as embedding.

        full   embeddings of queries and passages
        alpha  bags of tokens of queries, embeddings of passages
        beta   embeddings of queries, bags of tokens of passages
        late   beta, then the best `candidates` passages are embedded and scored again, which `rerank` requests as well
        """
        index = self._indexed()
        name = search or ("late" if rerank and index.index_type == "bag_of_token" else SEARCHES[index.index_type][0])
        if name not in SEARCHES[index.index_type]:
            expected = " or ".join(SEARCHES[index.index_type])
            raise BadInput(f"search is {name!r}; expected {expected} in an index of type {index.index_type}")
        if isinstance(queries, np.ndarray):
            embedded: Float32s = np.atleast_2d(np.asarray(queries, np.float32))
        else:
            embedded = np.asarray(self.encoder_q.embed(queries, topk=topk, bow=name == "alpha"))
        if name != "late":
            return index.search(embedded, k)
        return self._late(index, embedded, k, max(k, candidates))

    def _late(self, index: Index, queries: Float32s, k: int, candidates: int) -> SearchResults:
        """Embed and score the best candidates; of equal scores, the one that was better before stays first."""
        if index.data is None:
            raise BadInput("the index has no texts; expected a data_file with them for the late search")
        found = index.search(queries, candidates)
        wanted = np.unique(found.ids)
        passages = np.asarray(self.encoder_p.embed([index.data[row] for row in wanted.tolist()]))
        scores = np.take_along_axis(queries @ passages.T, np.searchsorted(wanted, found.ids), axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return SearchResults(np.take_along_axis(found.ids, order, axis=1), np.take_along_axis(scores, order, axis=1))

    def _indexed(self) -> Index:
        if self.index is None:
            raise BadInput("the retriever has no index; call build_index or load_index first")
        return self.index


def drawn(words: list[Word], visual: bool, file: str | Path | None) -> dict[str, float]:
    """Words with their weights, drawn if asked for; of words that look alike, the heaviest."""
    if visual and file is None:
        show_cloud(words)
    elif visual:
        word_cloud(words, Path(str(file)))
    weights: dict[str, float] = {}
    for word in words:
        weights.setdefault(word.word, word.weight)
    return weights


def read_texts(file: Path) -> list[str]:
    """The texts of a JSONL file of strings, or of objects with text and title."""
    try:
        with file.open(encoding="utf-8") as lines:
            return [passage_text(json.loads(line)) for line in lines if line.strip()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{file} cannot be read ({error!r}); expected a JSON string, or an object with text, in each line"
        ) from error


def passage_text(passage: str | Mapping[str, str]) -> str:
    """A passage as one text; a title comes first."""
    if isinstance(passage, str):
        return passage
    title, text = passage.get("title", ""), passage["text"]
    return f"{title} [SEP] {text}" if title else text


def empty(dim: int) -> Sparse:
    """Vectors of no texts."""
    return Sparse(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), dim)


def to_rows(vectors: Sparse) -> Float32s:
    """Sparse vectors as rows of an array."""
    rows = np.zeros((len(vectors), vectors.dim), np.float32)
    rows[np.repeat(np.arange(len(vectors)), np.diff(vectors.indptr)), vectors.terms] = vectors.weights
    return rows


def to_sparse(rows: Float32s) -> Sparse:
    """Rows of an array as sparse vectors."""
    texts, terms = np.nonzero(rows)
    indptr = np.searchsorted(texts, np.arange(len(rows) + 1)).astype(np.int64)
    return Sparse(indptr, terms.astype(np.int32), np.asarray(rows[texts, terms], np.float32), rows.shape[1])
