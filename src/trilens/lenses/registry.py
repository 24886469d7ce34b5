"""Registry of lens types: built-in ones and plug-ins (entry point group `trilens.lenses`)."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

from trilens.encode.folder import Head
from trilens.errors import BadInput
from trilens.lenses.bm25 import BM25
from trilens.lenses.dense import DENSE
from trilens.lenses.external import EXTERNAL
from trilens.lenses.lens import LensType
from trilens.lenses.lexical import LEXICAL
from trilens.lenses.multi import MULTI
from trilens.lenses.sparse import SPARSE
from trilens.lenses.tokens import TOKENS

GROUP = "trilens.lenses"
BUILT_IN = (BM25, DENSE, SPARSE, TOKENS, LEXICAL, MULTI, EXTERNAL)
NAME = re.compile(r"[a-z][a-z0-9_-]*")
# Names that mean something else where lenses are named: options of collections and fusions, fusions, folders, a reranker.
RESERVED = frozenset(
    (
        *("lenses", "model", "model_fingerprint", "term_weighting", "weighing", "passages"),
        *("policy", "weights", "k", "missing", "depth", "damp", "per_token"),
        *("rrf", "weighted", "minmax", "zscore", "none", "all", "all-long", "dense+sparse", "dense+sparse-long"),
        *("rows", "fusion", "cross"),
    )
)


@cache
def lens_types() -> Mapping[str, LensType]:
    """All lens types by name. A plug-in that cannot be used is an error: its collections could not be opened."""
    types = {built_in.name: built_in for built_in in BUILT_IN}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            plug_in = entry.load()
        except Exception as error:
            reason = " ".join(str(error).split())
            raise BadInput(f"{GROUP} plug-in {entry.value} cannot be loaded ({reason}); repair or uninstall it") from error
        if not isinstance(plug_in, LensType):
            raise BadInput(f"{GROUP} plug-in {entry.value} is {type(plug_in).__name__}; expected a LensType")
        _require_free_names(entry.value, plug_in, types)
        types[plug_in.name] = plug_in
    return MappingProxyType(types)


def _require_free_names(plug_in: str, lens: LensType, types: Mapping[str, LensType]) -> None:
    """Refuse a plug-in whose name, or name on disk, is taken."""
    taken = {name for known in types.values() for name in (known.name, known.stored_as)}
    for name in (lens.name, lens.stored_as):
        if name in taken:
            raise BadInput(f"{GROUP} plug-in {plug_in} is named {name!r} like another lens; expected another name")
        if name in RESERVED or not NAME.fullmatch(name):
            raise BadInput(f"{GROUP} plug-in {plug_in} is named {name!r}; expected lower-case letters, and no reserved word")
    shared = {known.config_key: known.config for known in types.values()}
    if lens.config_key in RESERVED or shared.get(lens.config_key, lens.config) is not lens.config:
        raise BadInput(f"{GROUP} plug-in {plug_in} has config_key {lens.config_key!r}, which is taken; expected another one")


def lens_type(name: str) -> LensType:
    """The lens type of a name."""
    types = lens_types()
    if name not in types:
        raise BadInput(f"lens {name!r} is not known; expected one of {', '.join(types)}, or install its plug-in")
    return types[name]


def stored_names() -> dict[str, str]:
    """The names of lens types by their names on disk."""
    return {known.stored_as: known.name for known in lens_types().values()}


def needed_heads(names: Iterable[str]) -> tuple[Head, ...]:
    """The model heads that these lenses need, each once."""
    return tuple(dict.fromkeys(head for name in names for head in lens_type(name).heads))


def lenses_with(capability: str) -> list[str]:
    """The names of the lens types that have a capability, such as `expansion`, `hyde` or `late`."""
    return [name for name, known in lens_types().items() if getattr(known, capability)]


def list_of_names(names: Any) -> Any:
    """Refuse lens names that are not a list."""
    if names is not None and not isinstance(names, list | tuple):
        raise ValueError(f"is {names!r}; expected a list of lens names")
    return names
