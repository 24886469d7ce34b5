"""`export`: from a folder of weights to a model folder, written whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.encode.folder import CONFIG_FILE, QUERY_FOLDER, TOKENIZER_FILE, ModelConfig
from trilens.encode.reading import Side
from trilens.errors import BadInput, BadModel
from trilens.export.calibrate import Advance, silent
from trilens.export.card import write_card
from trilens.export.check import TEXTS, Agreement, Origin, can_check, compare, require_agreement
from trilens.export.checkpoint import read_json
from trilens.export.describe import Options
from trilens.export.source import find_sources
from trilens.export.texts import CalibrationTexts
from trilens.export.tower import Steps, Tower

LICENCES = ("LICENSE", "LICENSE.txt", "LICENCE", "NOTICE")


def no_steps(_what: str, _total: int) -> AbstractContextManager[Advance]:
    """Progress that nobody asked for."""
    return nullcontext(silent)


@dataclass(frozen=True)
class Exported:
    """What was written, and how near each head comes to the original; None where that was not checked."""

    path: Path
    config: ModelConfig
    sizes: dict[str, int]
    agreements: list[Agreement] | None


class Export:
    """One source on its way to a model folder; `query` is the tower of queries where it is another."""

    def __init__(self, source: Path, name: str, options: Options, texts: Path | None, steps: Steps) -> None:
        self._steps, self._texts = steps, CalibrationTexts(texts)
        sources = find_sources(source)
        self.doc = Tower(sources.doc, self._texts, steps)
        self.query = Tower(sources.query, self._texts, steps) if sources.query else None
        self.config = self.doc.describe(options, name)
        if self.query is not None:
            require_alike(self.config, self.query.describe(options, name), self.doc, self.query)
            self.config = self.config.model_copy(update={"query_tower": True})

    def write(self, folder: Path) -> dict[Side, Origin]:
        """Everything but the card; what was written can be checked against what this gives."""
        (folder / CONFIG_FILE).write_text(self.config.model_dump_json(indent=2) + "\n", encoding="utf-8")
        tokenizer = json.dumps(read_tokenizer(self.doc), ensure_ascii=False, separators=(",", ":"))
        (folder / TOKENIZER_FILE).write_text(tokenizer + "\n", encoding="utf-8")
        for name in LICENCES:
            if (self.doc.source.backbone / name).is_file():
                shutil.copyfile(self.doc.source.backbone / name, folder / name)
        origin = self._write_tower(self.doc, folder)
        if self.query is None:
            return {"doc": origin, "query": origin}
        (folder / QUERY_FOLDER).mkdir()
        return {"doc": origin, "query": self._write_tower(self.query, folder / QUERY_FOLDER)}

    def check(self, folder: Path, origins: dict[Side, Origin]) -> list[Agreement]:
        """The folder against torch; one that does not compute what the original does is refused."""
        texts = self._texts.all
        with self._steps("checking against torch", 2 * min(TEXTS, len(texts))) as advance:
            found = compare(folder, self.config, origins, texts, advance)
        require_agreement(found, self.config)
        return found

    def _write_tower(self, tower: Tower, folder: Path) -> Origin:
        heads = tower.heads(self.config)
        tower.write(folder, self.config, heads)
        return Origin(tower.source, heads)


def export(
    source: Path,
    target: Path,
    options: Options,
    texts: Path | None = None,
    force: bool = False,
    check: bool = True,
    steps: Steps = no_steps,
) -> Exported:
    """Write `target`, a model folder called by its name, from the weights in `source`."""
    require_free(target, source, force)
    started = Export(source, target.resolve().name, options, texts, steps)
    with written_whole(target) as folder:
        origins = started.write(folder)
        agreements = started.check(folder, origins) if check and can_check() else None
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
        card = write_card(started.config, started.doc.source.heads is not None, sizes, agreements)
        (folder / "README.md").write_text(card, encoding="utf-8")
    return Exported(target, started.config, sizes, agreements)


def read_tokenizer(tower: Tower) -> dict[str, Any]:
    """The tokenizer without the padding and truncation that its last user left in it."""
    return read_json(tower.source.tokenizer) | {"truncation": None, "padding": None}


def require_alike(config: ModelConfig, query_config: ModelConfig, doc: Tower, query: Tower) -> None:
    """Refuse two towers that do not belong together: a folder has one description and one tokenizer."""
    said, other = config.model_dump(), query_config.model_dump()
    if differing := [name for name in said if said[name] != other[name]]:
        raise BadModel(f"the towers {doc.source.heads} and {query.source.heads} differ in {differing}; expected the same")
    if read_tokenizer(doc) != read_tokenizer(query):
        raise BadModel(f"{doc.tokens.file} and {query.tokens.file} differ; expected one tokenizer for both towers")


def require_free(target: Path, source: Path, force: bool) -> None:
    """Refuse a target that holds something; with `force`, only one that is not a model folder, or that the source is in."""
    if not target.exists():
        return
    if not target.is_dir():
        raise BadInput(f"{target} is a file; expected a folder to write, or none")
    if not any(target.iterdir()):
        return
    if source.resolve().is_relative_to(target.resolve()):
        raise BadInput(f"{source} lies in {target}, which would be replaced; choose another target")
    if not force:
        raise BadInput(f"{target} is not empty; choose another folder, or --force to replace it")
    if not (target / CONFIG_FILE).is_file():
        raise BadInput(f"{target} is not a model folder, so it is not replaced; choose another folder")


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A folder beside `target` that takes its place at the end of the block, and is removed where the block fails."""
    made = target.resolve()
    folder, old = (made.with_name(f".{made.name}.{what}-{os.getpid()}") for what in ("unfinished", "replaced"))
    try:
        folder.mkdir(parents=True)
        yield folder
        if made.exists():
            made.rename(old)
        folder.rename(made)
    except OSError as error:
        raise BadInput(f"{made} cannot be written: {error.strerror or error}; choose another folder or make room") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
