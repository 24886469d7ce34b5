"""The docstrings of the running Python's standard library as documents: a corpus that every user has."""

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

# Importing these prints, opens a browser or a terminal, or loads tests and tools.
SIDE_EFFECTS = {"antigravity", "idlelib", "lib2to3", "readline", "rlcompleter", "test", "this", "turtledemo"}
# Deprecated, or platform implementations of os, os.path, re or xml.
NOT_PUBLIC = {"distutils", "genericpath", "nt", "ntpath", "posix", "posixpath", "pydoc_data", "pyexpat"}
NOT_PUBLIC |= {"sre_compile", "sre_constants", "sre_parse", "xxlimited", "xxlimited_35", "xxsubtype"}
WITHOUT_SUBMODULES = {"encodings"}
TEST_PACKAGES = {"test", "tests"}
SHORTEST_DOC = 10
LONGEST_DEFAULT = 24


@dataclass(frozen=True, slots=True)
class _ImportName:
    """An object under one of the names that it can be imported by."""

    value: Any
    module: str
    name: str
    listed: bool

    @property
    def dotted(self) -> str:
        return self.name if self.module == "builtins" else f"{self.module}.{self.name}"

    def rank(self) -> tuple[bool, bool, bool, bool, int, str]:
        """Sort key; the public name comes first. Builtins are preferred, then the package that defines the object or the
        public module of its private one, then the object's own name over aliases, then names in `__all__`."""
        defined_in = str(getattr(self.value, "__module__", None) or "")
        inside = defined_in == self.module or defined_in.startswith(f"{self.module}.")
        return (
            self.module != "builtins",
            not (inside or defined_in.lstrip("_") == self.module),
            getattr(self.value, "__name__", self.name) != self.name,
            not self.listed,
            self.module.count("."),
            self.dotted,
        )


def standard_library() -> Iterator[Document]:
    """Yield a document for each public module, class and function with a docstring, ordered by id."""
    modules = dict(_modules())
    documents: dict[str, Document] = {}
    for module_name, module in modules.items():
        _add(documents, module_name, module_name, "module", module_name, module.__doc__)
    public_names = _public_names(modules)
    public_ids = {id(name.value) for name in public_names}
    for name in public_names:
        kind = "class" if inspect.isclass(name.value) else "function"
        doc = _class_doc(name.value, public_ids) if kind == "class" else getattr(name.value, "__doc__", None)
        _add(documents, name.dotted, name.name + _signature(name.value), kind, name.module, doc)
    yield from (documents[doc_id] for doc_id in sorted(documents))


def _add(documents: dict[str, Document], doc_id: str, title: str, kind: str, module: str, doc: object) -> None:
    text = inspect.cleandoc(doc) if isinstance(doc, str) else ""
    # Dataclasses and named tuples generate docstrings that are only a signature.
    generated = re.fullmatch(r"[\w.]+\(.*\)", text) is not None
    if len(text) >= SHORTEST_DOC and not generated and " at 0x" not in text and doc_id not in documents:
        documents[doc_id] = Document(doc_id, text, title, {"kind": kind, "module": module})


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for name in sorted(sys.stdlib_module_names):
        if not name.startswith("_") and name not in SIDE_EFFECTS | NOT_PUBLIC:
            yield from _with_submodules(name)
    yield from _with_submodules("os.path")


def _with_submodules(name: str) -> Iterator[tuple[str, ModuleType]]:
    module = _import_quietly(name)
    if module is None:
        return
    yield name, module
    if name not in WITHOUT_SUBMODULES:
        for submodule in sorted(info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ()))):
            if not submodule.startswith("_") and submodule not in TEST_PACKAGES:
                yield from _with_submodules(f"{name}.{submodule}")


def _import_quietly(name: str) -> ModuleType | None:
    """Import a module; None if this system cannot, such as tkinter on a server."""
    silence = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except (ImportError, AttributeError, OSError, RuntimeError, ValueError):
            return None


def _public_names(modules: dict[str, ModuleType]) -> list[_ImportName]:
    """Each class and function once, under its public name."""
    best: dict[int, _ImportName] = {}
    for module_name, module in modules.items():
        listed = set(getattr(module, "__all__", ()))
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
                continue
            import_name = _ImportName(value, module_name, name, name in listed)
            key = id(value)
            if _in_standard_library(value) and (key not in best or import_name.rank() < best[key].rank()):
                best[key] = import_name
    return sorted(best.values(), key=lambda import_name: import_name.dotted)


def _in_standard_library(value: Any) -> bool:
    """False for objects that other packages have put into modules of the standard library."""
    defined_in = getattr(value, "__module__", None)
    return not isinstance(defined_in, str) or defined_in.partition(".")[0] in sys.stdlib_module_names


def _class_doc(cls: type, public_ids: set[int]) -> object:
    """The docstring of a class, or None if a public base class has the same one."""
    doc = vars(cls).get("__doc__")
    parents = (parent for parent in cls.__mro__[1:] if id(parent) in public_ids)
    return None if any(doc == vars(parent).get("__doc__") for parent in parents) else doc


class _DefaultValue:
    """A default value in a signature; long ones and those without a literal are shown as `...`."""

    def __init__(self, value: object) -> None:
        text = repr(value) if value is None or isinstance(value, bool | int | float | str | bytes) else "..."
        self._text = text if len(text) <= LONGEST_DEFAULT and not text.startswith("<") else "..."

    def __repr__(self) -> str:
        return self._text


def _signature(value: Any) -> str:
    """The parameters in parentheses without `self` and annotations; empty if Python does not know them."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError, NameError, AttributeError):
        return ""
    if parameters and parameters[0].name == "self":
        del parameters[0]
    empty = inspect.Parameter.empty
    unannotated = [
        parameter.replace(annotation=empty, default=empty if parameter.default is empty else _DefaultValue(parameter.default))
        for parameter in parameters
    ]
    return str(inspect.Signature(unannotated))
