"""trilens: text retrieval on an ordinary CPU, with explained scores."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilens.collection import Collection
    from trilens.errors import TrilensError
    from trilens.explain.explanation import Explanation
    from trilens.index.multi_params import MultiParams
    from trilens.lenses.feedback import Expansion
    from trilens.lenses.sparse import SparseParams
    from trilens.retriever import Retriever
    from trilens.search.fusion import Fusion
    from trilens.search.hyde import Hyde
    from trilens.search.options import SearchOptions
    from trilens.search.rerank import Rerank
    from trilens.text.document import Document

__version__ = "0.1.0"
__all__ = [
    "Collection",
    "Document",
    "Expansion",
    "Explanation",
    "Fusion",
    "Hyde",
    "MultiParams",
    "Rerank",
    "Retriever",
    "SearchOptions",
    "SparseParams",
    "TrilensError",
    "__version__",
]

_HOMES = {
    "Collection": "trilens.collection",
    "Document": "trilens.text.document",
    "Explanation": "trilens.explain.explanation",
    "Expansion": "trilens.lenses.feedback",
    "Fusion": "trilens.search.fusion",
    "Hyde": "trilens.search.hyde",
    "MultiParams": "trilens.index.multi_params",
    "Rerank": "trilens.search.rerank",
    "Retriever": "trilens.retriever",
    "SearchOptions": "trilens.search.options",
    "SparseParams": "trilens.lenses.sparse",
    "TrilensError": "trilens.errors",
}


def __getattr__(name: str) -> Any:
    """Load on first use, so that `import trilens` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trilens' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
