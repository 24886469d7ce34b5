"""Which files of a folder are left out: rules in the syntax of .gitignore, built in, in ignore files, and given."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from trilens.errors import BadInput
from trilens.text.files import CATALOG

IGNORE_FILES = (".gitignore", ".trilensignore")  # of one folder, in the order in which they are applied
DEFAULT_RULES = GitIgnoreSpec.from_lines([".*", "node_modules/", "__pycache__/", "CVS/", "_darcs/"])
MARKERS = ("pyvenv.cfg", "CACHEDIR.TAG", CATALOG)  # files in virtual environments, caches and collections


@dataclass(frozen=True, slots=True)
class Selection:
    """Patterns of the files of a folder to read: those that match `include`, all if it is empty, without those in `exclude`."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            _spec([pattern], f"the pattern {pattern!r}")


ALL_FILES = Selection()


class IgnoreRules:
    """The rules that apply inside one folder of a source. `name` is a path within the source."""

    def __init__(self, selection: Selection) -> None:
        self._include = _spec(selection.include, "--include") if selection.include else None
        self._exclude = _spec(selection.exclude, "--exclude")
        self._nested: tuple[tuple[str, GitIgnoreSpec], ...] = (("", DEFAULT_RULES),)

    def inside(self, folder: Path, name: str) -> "IgnoreRules":
        """The rules inside a folder, whose ignore files override those of the folders around it."""
        specs = [(name, spec) for file in IGNORE_FILES if (spec := _read(folder / file)) is not None]
        if not specs:
            return self
        rules = object.__new__(IgnoreRules)
        rules._include, rules._exclude, rules._nested = self._include, self._exclude, (*self._nested, *specs)
        return rules

    def leave_out(self, name: str, is_folder: bool) -> bool:
        """Whether a file or folder is left out."""
        path = f"{name}/" if is_folder else name
        if self._exclude.match_file(path):
            return True
        for base, spec in reversed(self._nested):
            ignored = spec.check_file(path.removeprefix(f"{base}/") if base else path).include
            if ignored is not None:
                return ignored
        return False

    def includes(self, name: str) -> bool:
        """Whether a file is among those that were asked for."""
        return self._include is None or self._include.match_file(name)


def is_marked(names: Sequence[str]) -> bool:
    """Whether these names are those of a virtual environment, a cache or a collection."""
    return any(marker in names for marker in MARKERS)


def _read(path: Path) -> GitIgnoreSpec | None:
    with suppress(OSError, BadInput):  # an unusable ignore file ignores nothing, as in Git
        if path.is_file():
            return _spec(path.read_text("utf-8", "surrogateescape").splitlines(), str(path))
    return None


def _spec(patterns: Sequence[str], where: str) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise BadInput(f"{where} is not valid ({error}); expected globs as in .gitignore, such as '*.md'") from error
