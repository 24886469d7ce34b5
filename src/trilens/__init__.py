"""trilens: text retrieval that can be trusted and explained, on an ordinary CPU."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trilens.collection import Collection
    from trilens.errors import TrilensError
    from trilens.explain.explanation import Explanation
    from trilens.index.multi_params import MultiParams
    from trilens.index.sparse_params import SparseParams
    from trilens.search.expansion import Feedback
    from trilens.search.fusion import Fusion
    from trilens.search.hyde import Hyde
    from trilens.text.document import Document

__version__ = "0.1.0"
__all__ = [
    "Collection",
    "Document",
    "Explanation",
    "Feedback",
    "Fusion",
    "Hyde",
    "MultiParams",
    "SparseParams",
    "TrilensError",
    "__version__",
]

_HOMES = {
    "Collection": "trilens.collection",
    "Document": "trilens.text.document",
    "Explanation": "trilens.explain.explanation",
    "Feedback": "trilens.search.expansion",
    "Fusion": "trilens.search.fusion",
    "Hyde": "trilens.search.hyde",
    "MultiParams": "trilens.index.multi_params",
    "SparseParams": "trilens.index.sparse_params",
    "TrilensError": "trilens.errors",
}


def __getattr__(name: str) -> Any:
    """Load on first use, so that `import trilens` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'trilens' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
