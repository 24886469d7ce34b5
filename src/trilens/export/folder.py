"""`export`: writes a model folder from a folder of weights, completely or not at all."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trilens.encode.folder import CONFIG_FILE, QUERY_FOLDER, ModelConfig
from trilens.encode.reading import Side
from trilens.errors import BadInput, BadModel
from trilens.export.calibrate import Advance, silent
from trilens.export.calibration_texts import CalibrationTexts
from trilens.export.card import write_card
from trilens.export.check import TEXTS, Agreement, Origin, can_check, compare, require_agreement
from trilens.export.cross import CrossExport, scores_pairs
from trilens.export.describe import ExportOptions
from trilens.export.published import layout_of
from trilens.export.source import copy_texts, find_sources, read_tokenizer
from trilens.export.tower import Steps, Tower


def no_steps(_what: str, _total: int) -> AbstractContextManager[Advance]:
    """Ignore progress."""
    return nullcontext(silent)


@dataclass(frozen=True)
class Exported:
    """The folder written, and the agreement of each head with the original; None if it was not verified.

    `config` is a `ModelConfig` with an `Agreement` per head or, of a cross-encoder, a `CrossConfig` with a `ScoreAgreement`.
    """

    path: Path
    config: Any
    sizes: dict[str, int]
    agreements: Sequence[Any] | None


class Export:
    """The export of one source; `query` is the query tower if the model has a separate one."""

    def __init__(self, source: Path, name: str, options: ExportOptions, texts: Path | None, steps: Steps) -> None:
        self._steps, self._texts = steps, CalibrationTexts(texts)
        self._origins: dict[Side, Origin] = {}
        if not options.heads and (layout := layout_of(source, options.source or source.name)):
            raise BadModel(
                f"{source} is a {layout} checkpoint, whose heads would be dropped; expected "
                "trilens.train.checkpoints.export.export_published to keep them, or the heads to keep in the options"
            )
        sources = find_sources(source)
        self.doc = Tower(sources.doc, self._texts, steps)
        self.query = Tower(sources.query, self._texts, steps) if sources.query else None
        self.config = self.doc.describe(options, name)
        if self.query is not None:
            require_equal_towers(self.config, self.query.describe(options, name), self.doc, self.query)
            self.config = self.config.model_copy(update={"query_tower": True})

    def write(self, folder: Path) -> None:
        """Write everything but the model card."""
        (folder / CONFIG_FILE).write_text(self.config.model_dump_json(indent=2, by_alias=True) + "\n", encoding="utf-8")
        copy_texts(self.doc.source, folder)
        origin = self._write_tower(self.doc, folder)
        self._origins = {"doc": origin, "query": origin}
        if self.query is not None:
            (folder / QUERY_FOLDER).mkdir()
            self._origins["query"] = self._write_tower(self.query, folder / QUERY_FOLDER)

    def check(self, folder: Path) -> list[Agreement]:
        """Compare the written folder with torch; insufficient agreement is an error."""
        texts = self._texts.all
        with self._steps("checking against torch", 2 * min(TEXTS, len(texts))) as advance:
            agreements = compare(folder, self.config, self._origins, texts, advance)
        require_agreement(agreements, self.config)
        return agreements

    def card(self, sizes: dict[str, int], agreements: list[Agreement] | None) -> str:
        """The model card."""
        return write_card(self.config, self.doc.source.heads is not None, sizes, agreements)

    def _write_tower(self, tower: Tower, folder: Path) -> Origin:
        heads = tower.heads(self.config)
        tower.write(folder, self.config, heads)
        return Origin(tower.source, heads)


def export(
    source: Path,
    target: Path,
    options: ExportOptions,
    texts: Path | None = None,
    force: bool = False,
    check: bool = True,
    steps: Steps = no_steps,
) -> Exported:
    """Write the model folder `target`, named after its last path component, from the weights in `source`."""
    require_free(target, source, force)
    kind = CrossExport if scores_pairs(source) else Export
    exporting: Export | CrossExport = kind(source, target.resolve().name, options, texts, steps)
    with written_whole(target) as folder:
        exporting.write(folder)
        agreements: Any = exporting.check(folder) if check and can_check() else None
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in files}
        (folder / "README.md").write_text(exporting.card(sizes, agreements), encoding="utf-8")
    return Exported(target, exporting.config, sizes, agreements)


def require_equal_towers(config: ModelConfig, query_config: ModelConfig, doc: Tower, query: Tower) -> None:
    """Require equal settings and tokenizers of both towers, because a folder stores them once."""
    doc_fields, query_fields = config.model_dump(by_alias=True), query_config.model_dump(by_alias=True)
    if differing := [name for name in doc_fields if doc_fields[name] != query_fields[name]]:
        raise BadModel(f"the towers {doc.source.heads} and {query.source.heads} differ in {differing}; expected equal settings")
    if read_tokenizer(doc.source) != read_tokenizer(query.source):
        raise BadModel(f"{doc.tokens.file} and {query.tokens.file} differ; expected one tokenizer for both towers")


def require_free(target: Path, source: Path, force: bool, known_by: str = CONFIG_FILE) -> None:
    """Require an empty or missing target; with `force`, a model folder, which has the file `known_by`, without the source."""
    if not target.exists():
        return
    if not target.is_dir():
        raise BadInput(f"{target} is a file; expected a folder, or a path that does not exist")
    if not any(target.iterdir()):
        return
    if source.resolve().is_relative_to(target.resolve()):
        raise BadInput(f"{source} lies in {target}, which would be replaced; choose another target")
    if not force:
        raise BadInput(f"{target} is not empty; choose another folder, or replace it with --force")
    if not (target / known_by).is_file():
        raise BadInput(f"{target} is not a model folder, so it is not replaced; choose another folder")


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A temporary folder next to `target` that replaces it when the block ends, and is removed if the block fails."""
    final = target.resolve()
    folder, old = (final.with_name(f".{final.name}.{what}-{os.getpid()}") for what in ("unfinished", "replaced"))
    try:
        folder.mkdir(parents=True)
        yield folder
        if final.exists():
            final.rename(old)
        folder.rename(final)
    except OSError as error:
        raise BadInput(
            f"{final} cannot be written: {error.strerror or error}; choose another folder or free disk space"
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
