"""What is said over HTTP: the requests, and the answers with the type of every field."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(strict=True, ge=1)]
CountOrNone = Annotated[int, Field(strict=True, ge=0)]
Text = Annotated[str, Field(min_length=1)]
Side = Literal["query", "doc"]
HeadName = Literal["dense", "multi", "sparse", "lexical"]
Metadata = dict[str, Any]


class Asked(BaseModel):
    """A request; a field that is not known is an error."""

    model_config = ConfigDict(extra="forbid")


class MultiSettings(Asked):
    """Settings of the multi lens for one search; see `trilens.MultiParams`."""

    method: Literal["plaid", "xtr", "exact"] = "plaid"
    reach: Count | None = None
    probes: Count | None = None
    candidates: CountOrNone | None = None
    margin: Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)] | None = None
    nth: CountOrNone | None = None
    tokens: CountOrNone | None = None


class SparseSettings(Asked):
    """Settings of the sparse, tokens and lexical lenses for one search; see `trilens.SparseParams`."""

    query: Literal["weights", "bag"] = "weights"
    rarity: bool = True
    method: Literal["approximate", "exact"] = "approximate"
    terms: Count | None = None
    candidates: Count | None = None


class LensSettings(Asked):
    """Settings of single lenses."""

    multi: MultiSettings | None = None
    sparse: SparseSettings | None = None
    tokens: SparseSettings | None = None
    lexical: SparseSettings | None = None


class SearchAsked(Asked):
    """One or many queries, all put in the same way."""

    queries: Annotated[list[Text], Field(min_length=1)]
    k: Count = 10
    lenses: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, description="All of the collection, if none is named."
    )
    filter: Metadata | None = Field(None, description='Such as {"year": {"$gte": 2020}, "lang": "en"}.')
    fusion: str | None = Field(None, description='How several lenses are fused, such as "rrf:k=60,bm25=1,dense=2".')
    expand: str | None = Field(None, description='Adds terms of the best passages to the query: "on", or "docs=10,terms=20".')
    rerank: str | None = Field(None, description="The lens that orders what the others find.")
    exact: bool = Field(False, description="No approximation anywhere, even where it is slower.")
    params: LensSettings = LensSettings()


class ExplainAsked(Asked):
    """Documents whose scores are to be explained; the rest is that of the search which found them."""

    query: Text
    doc_ids: Annotated[list[str], Field(min_length=1)]
    k: Count = 10
    lenses: Annotated[list[str], Field(min_length=1)] | None = Field(None, description="All of the collection, if not given.")
    fusion: str | None = None
    expand: str | None = None
    rerank: str | None = None
    filter: Metadata | None = None
    params: LensSettings = LensSettings()


class DisentangleAsked(Asked):
    """A text whose words are wanted."""

    text: Text
    side: Side = "query"
    top: Count = 30


class EncodeAsked(Asked):
    """Texts to turn into representations, by the model of a collection."""

    texts: Annotated[list[str], Field(min_length=1)]
    side: Side = "query"
    heads: Annotated[list[HeadName], Field(min_length=1)] | None = Field(
        None, description="All of the model, if none is named."
    )
    collection: str | None = Field(None, description="Whose model; the first collection that has one, if none is named.")


class DocumentContent(Asked):
    """A document without its id, which the address says."""

    text: str
    title: str = ""
    metadata: Metadata = {}


class DocumentBody(DocumentContent):
    """A document."""

    doc_id: Text


class DocumentsAsked(Asked):
    """Documents to add, replacing those whose ids are there already."""

    documents: Annotated[list[DocumentBody], Field(min_length=1)]


class Failure(BaseModel):
    """What every error looks like."""

    error: str


class Passage(BaseModel):
    """Where the best passage lies in the document's text, in characters."""

    start: int
    end: int


class LensScore(BaseModel):
    """What one lens says of a document; `rank` is null where the lens did not return it, but another did.

    The contributions of all lenses add up to the score of the hit.
    """

    score: float
    rank: int | None
    contribution: float


class Hit(BaseModel):
    """A document that answers a query; `text` is its best passage."""

    doc_id: str
    rank: int
    score: float
    by_lens: dict[str, LensScore]
    title: str
    text: str
    passage: Passage
    metadata: Metadata


class Answer(BaseModel):
    """The hits of one query; `commit` is the state of the collection that was searched."""

    query: str
    commit: int
    hits: list[Hit]


class Answers(BaseModel):
    """The answers in the order of the queries. Of many queries some may be searched before a commit and some after it."""

    collection: str
    took_ms: float
    answers: list[Answer]


class Part(BaseModel):
    """One summand of a score. Spans count characters: in the query, and in the text of the passage."""

    label: str
    score: float
    kind: Literal["own", "expanded", "pair", "imputed", "token", "rest", "lens"]
    target: str | None
    query_span: list[int] | None
    doc_spans: list[list[int]]
    facts: dict[str, float | str | None]


class SeenPassage(BaseModel):
    """What a lens saw: `text` is the title, if there is one, a line break and the passage, which begins at `offset`."""

    text: str
    offset: int
    start: int
    end: int


class Matrix(BaseModel):
    """Similarities of tokens: a row for each of the query, a column for each of the document."""

    query_tokens: list[str]
    doc_tokens: list[str]
    values: list[list[float]]
    query_spans: list[list[int] | None]
    doc_spans: list[list[int] | None]


class Explanation(BaseModel):
    """Why a document got its score: the parts add up to it. Of several lenses, `children` explain the score of each."""

    lens: str
    query: str
    doc_id: str
    score: float
    approximate: bool
    passage: SeenPassage
    parts: list[Part]
    matrix: Matrix | None
    children: list["Explanation"] | None
    expansion: dict[str, Any] | None


class Explanations(BaseModel):
    """In the order of the ids."""

    explanations: list[Explanation]


class Word(BaseModel):
    """A word that a text activates; `own` tells whether the text holds it, or the model adds it."""

    word: str
    weight: float
    own: bool


class Words(BaseModel):
    """The words of a text, heaviest first."""

    text: str
    words: list[Word]


class Terms(BaseModel):
    """Weighted terms of one text; the three lists go together."""

    terms: list[int]
    words: list[str]
    weights: list[float]


class TokenVectors(BaseModel):
    """One vector per token of one text."""

    tokens: list[str]
    vectors: list[list[float]]


class EncodedTexts(BaseModel):
    """What each head makes of the texts, in their order; null for a head that was not asked for or is not there."""

    model: str
    side: Side
    dense: list[list[float]] | None
    sparse: list[Terms] | None
    lexical: list[Terms] | None
    multi: list[TokenVectors] | None
    truncated: int


class StoredDocument(BaseModel):
    """A document as it is stored."""

    doc_id: str
    text: str
    title: str
    metadata: Metadata


class DocumentPage(BaseModel):
    """Some documents; `next` goes into `after` to read on, null at the end. `missing` are ids that are not there."""

    documents: list[StoredDocument]
    missing: list[str]
    next: int | None


class Changed(BaseModel):
    """What a commit did, and what the collection is then."""

    added: int
    replaced: int
    unchanged: int
    deleted: int
    truncated: int
    missing: list[str]
    documents: int
    commit: int


class CollectionFacts(BaseModel):
    """A collection that is served. `heads` are those of its model, which /encode and /disentangle use."""

    name: str
    documents: int
    lenses: list[str]
    model: str | None
    heads: list[str]
    commit: int


class CollectionList(BaseModel):
    """All collections that are served; `writable` tells whether documents can be changed, given a write key."""

    collections: list[CollectionFacts]
    writable: bool
    version: str


class Health(BaseModel):
    """That the service answers."""

    status: Literal["ok"]
    version: str
