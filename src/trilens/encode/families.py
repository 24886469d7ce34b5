"""Model families: prefixes, lengths and heads of published models, looked up by model name."""

from dataclasses import dataclass
from typing import Literal

from trilens.encode.folder import LexicalHead, MultiHead, SparseHead


@dataclass(frozen=True, slots=True)
class Family:
    """Prefixes, maximum lengths, pooling and heads that the models of a family were trained with.

    Lengths are in tokens and include special tokens. Heads that the models do not have are None.
    """

    name: str
    pooling: Literal["mean", "cls"] = "mean"
    query_prefix: str = ""
    doc_prefix: str = ""
    max_query_tokens: int = 512
    max_doc_tokens: int = 512
    multi: MultiHead | None = None
    sparse: SparseHead | None = None
    lexical: LexicalHead | None = None


BGE_EN = "Represent this sentence for searching relevant passages: "
BGE_ZH = "为这个句子生成表示以用于检索相关文章："
E5_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

# ColBERTv2 truncates queries to the length it pads them to. Mask tokens keep their vectors.
COLBERT = MultiHead(
    dim=128,
    normalised=True,
    query_tokens=32,
    mask_token="[MASK]",
    query_marker="[unused0]",
    doc_marker="[unused1]",
    skip_punctuation=True,
    skip_special=False,
)
# XTR normalises its vectors (as the encoder of xtr-warp does), ColXTR does not. XTR expects lower-cased text; its tokenizer has
# to do that.
XTR = MultiHead(dim=128, normalised=True, skip_punctuation=False, skip_special=False)
COLXTR = MultiHead(dim=128, normalised=False, skip_punctuation=False, skip_special=False, closing_mean=True)
BGE_M3 = MultiHead(dim=1024, normalised=True, skip_punctuation=False, skip_special=False, skip_first=True)

# VDR, SVDR and SiDR: BERT's uncased vocabulary without the unused tokens at its start. Lengths are those of training, where
# passages included their titles. The cross-modal pair has a separate word list, which a shift cannot describe.
VDR = SparseHead(dim=29_523, shift=999, top=768, normalised=False)
XLM_R = LexicalHead(dim=250_002)

# The first fragment contained in the lower-cased name wins, so specific names come before general ones.
FAMILIES: tuple[tuple[str, Family], ...] = (
    ("e5-large-instruct", Family("e5-instruct", query_prefix=E5_INSTRUCT)),
    ("multilingual-e5", Family("multilingual-e5", query_prefix="query: ", doc_prefix="passage: ")),
    ("e5-small", Family("e5", query_prefix="query: ", doc_prefix="passage: ")),
    ("e5-base", Family("e5", query_prefix="query: ", doc_prefix="passage: ")),
    ("e5-large", Family("e5", query_prefix="query: ", doc_prefix="passage: ")),
    ("bge-m3", Family("bge-m3", pooling="cls", max_doc_tokens=8192, multi=BGE_M3, lexical=XLM_R)),
    ("bge-small-zh", Family("bge-zh", pooling="cls", query_prefix=BGE_ZH)),
    ("bge-base-zh", Family("bge-zh", pooling="cls", query_prefix=BGE_ZH)),
    ("bge-large-zh", Family("bge-zh", pooling="cls", query_prefix=BGE_ZH)),
    ("bge-", Family("bge-en", pooling="cls", query_prefix=BGE_EN)),
    ("gte-", Family("gte")),
    ("minilm", Family("minilm", max_query_tokens=256, max_doc_tokens=256)),
    ("all-mpnet", Family("mpnet", max_query_tokens=384, max_doc_tokens=384)),
    ("all_mpnet", Family("mpnet", max_query_tokens=384, max_doc_tokens=384)),
    ("multi-qa-mpnet", Family("mpnet", pooling="cls")),
    ("contriever", Family("contriever")),
    ("dpr-", Family("dpr", pooling="cls", max_query_tokens=256, max_doc_tokens=256)),
    ("dpr_", Family("dpr", pooling="cls", max_query_tokens=256, max_doc_tokens=256)),
    ("colbertv2", Family("colbertv2", max_query_tokens=32, max_doc_tokens=220, multi=COLBERT)),
    ("colxtr", Family("colxtr", "mean", "Query: ", "Document: ", max_query_tokens=32, max_doc_tokens=180, multi=COLXTR)),
    ("xtr-", Family("xtr", multi=XTR)),
    ("vdr-cross-modal", Family("vdr-cross-modal")),
    ("vdr-", Family("vdr", max_query_tokens=128, max_doc_tokens=256, sparse=VDR)),
    ("sidr-", Family("sidr", max_query_tokens=128, max_doc_tokens=256, sparse=VDR)),
)

UNKNOWN = Family("unknown")
"""No prefixes and mean pooling, the usual setting of sentence encoders."""


def family_of(model_name: str) -> Family:
    """The family of a hub id, folder or plain name (`intfloat/e5-base-v2`); `UNKNOWN` if none matches."""
    name = model_name.rstrip("/").rsplit("/", 1)[-1].lower()
    return next((family for fragment, family in FAMILIES if fragment in name), UNKNOWN)
