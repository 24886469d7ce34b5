"""The standard library of the running Python as documents: a collection that every user has at hand."""

import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from trilens.text.document import Document

# Importing these prints, opens a browser or a terminal, or brings the tests and tools that ship with Python.
SIDE_EFFECTS = {"antigravity", "idlelib", "lib2to3", "readline", "rlcompleter", "test", "this", "turtledemo"}
# Deprecated, or the platform's side of a module with another name: their public home is os, os.path, re or xml.
NOT_A_HOME = {"distutils", "genericpath", "nt", "ntpath", "posix", "posixpath", "pydoc_data", "pyexpat"}
NOT_A_HOME |= {"sre_compile", "sre_constants", "sre_parse", "xxlimited", "xxlimited_35", "xxsubtype"}
WITHOUT_SUBMODULES = {"encodings"}
TEST_PACKAGES = {"test", "tests"}
SHORTEST_DOC = 10
LONGEST_DEFAULT = 24


@dataclass(frozen=True, slots=True)
class _Found:
    """An object under one of the names by which it can be imported."""

    value: Any
    module: str
    name: str
    listed: bool

    @property
    def dotted(self) -> str:
        return self.name if self.module == "builtins" else f"{self.module}.{self.name}"

    def rank(self) -> tuple[bool, bool, bool, bool, int, str]:
        """Least for the public home: builtins, then the package that the object's own module belongs to, then the
        module named like the private one that it comes from; the object's own name before its aliases."""
        own = str(getattr(self.value, "__module__", None) or "")
        inside = own == self.module or own.startswith(f"{self.module}.")
        return (
            self.module != "builtins",
            not (inside or own.lstrip("_") == self.module),
            getattr(self.value, "__name__", self.name) != self.name,
            not self.listed,
            self.module.count("."),
            self.dotted,
        )


def standard_library() -> Iterator[Document]:
    """Every public module, class and function that has a docstring, in the order of their ids."""
    modules = dict(_modules())
    documents: dict[str, Document] = {}
    for name, module in modules.items():
        _add(documents, name, name, "module", name, module.__doc__)
    homes = _homes(modules)
    public = {id(found.value) for found in homes}
    for found in homes:
        kind = "class" if inspect.isclass(found.value) else "function"
        doc = _class_doc(found.value, public) if kind == "class" else getattr(found.value, "__doc__", None)
        _add(documents, found.dotted, found.name + _signature(found.value), kind, found.module, doc)
    yield from (documents[doc_id] for doc_id in sorted(documents))


def _add(documents: dict[str, Document], doc_id: str, title: str, kind: str, module: str, doc: object) -> None:
    text = inspect.cleandoc(doc) if isinstance(doc, str) else ""
    # A docstring that is only the signature was made by a dataclass or a named tuple.
    made = re.fullmatch(r"[\w.]+\(.*\)", text) is not None
    if len(text) >= SHORTEST_DOC and not made and " at 0x" not in text and doc_id not in documents:
        documents[doc_id] = Document(doc_id, text, title, {"kind": kind, "module": module})


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for name in sorted(sys.stdlib_module_names):
        if not name.startswith("_") and name not in SIDE_EFFECTS | NOT_A_HOME:
            yield from _with_submodules(name)
    yield from _with_submodules("os.path")


def _with_submodules(name: str) -> Iterator[tuple[str, ModuleType]]:
    module = _import_quietly(name)
    if module is None:
        return
    yield name, module
    if name not in WITHOUT_SUBMODULES:
        for part in sorted(info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ()))):
            if not part.startswith("_") and part not in TEST_PACKAGES:
                yield from _with_submodules(f"{name}.{part}")


def _import_quietly(name: str) -> ModuleType | None:
    """The module, or None where this system cannot import it: those for Windows, or tkinter on a server."""
    silence = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except (ImportError, AttributeError, OSError, RuntimeError, ValueError):
            return None


def _homes(modules: dict[str, ModuleType]) -> list[_Found]:
    """Each class and function once, under the best of its names."""
    best: dict[int, _Found] = {}
    for module_name, module in modules.items():
        listed = set(getattr(module, "__all__", ()))
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            found = _Found(value, module_name, name, name in listed)
            key = id(value)
            if _is_ours(value) and (key not in best or found.rank() < best[key].rank()):
                best[key] = found
    return sorted(best.values(), key=lambda found: found.dotted)


def _is_ours(value: Any) -> bool:
    """False for what other packages put into the standard library's modules."""
    own = getattr(value, "__module__", None)
    return not isinstance(own, str) or own.partition(".")[0] in sys.stdlib_module_names


def _class_doc(cls: type, public: set[int]) -> object:
    """The docstring, unless it repeats that of a public base class; one from a private base is found nowhere else."""
    doc = vars(cls).get("__doc__")
    parents = (parent for parent in cls.__mro__[1:] if id(parent) in public)
    return None if any(doc == vars(parent).get("__doc__") for parent in parents) else doc


class _Shown:
    """A default value as a reader would write it; anything long or with an address is left out."""

    def __init__(self, value: object) -> None:
        text = repr(value) if value is None or isinstance(value, bool | int | float | str | bytes) else "..."
        self._text = text if len(text) <= LONGEST_DEFAULT and not text.startswith("<") else "..."

    def __repr__(self) -> str:
        return self._text


def _signature(value: Any) -> str:
    """The parameters in brackets, without `self` and annotations, or nothing where Python does not know them."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError, NameError, AttributeError):
        return ""
    if parameters and parameters[0].name == "self":
        del parameters[0]
    empty = inspect.Parameter.empty
    bare = [
        parameter.replace(annotation=empty, default=empty if parameter.default is empty else _Shown(parameter.default))
        for parameter in parameters
    ]
    return str(inspect.Signature(bare))
