"""`trilens optimize --retrain` and what `trilens info` says of lenses, as users meet them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trilens.cli.info import _figure
from trilens.cli.main import main
from trilens.collection import Collection
from trilens.text.document import Document


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two segments, one with a deleted row."""
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("a", "red fox"), Document("b", "blue fox")])
        collection.commit()
        collection.delete(["a"])
        collection.add([Document("c", "red owl")])
    return tmp_path / "c"


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["trilens", *map(str, arguments)])
    with pytest.raises(SystemExit) as leaving:
        main()
    assert not leaving.value.code
    return capsys.readouterr().out


def test_retraining_keeps_the_documents(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {folder.name for folder in (path / "segments").iterdir()}
    said = json.loads(run(monkeypatch, capsys, "optimize", path, "--retrain", "--json"))
    assert said == {"segments_before": len(before), "segments": 1, "documents": 2}
    assert not before & {folder.name for folder in (path / "segments").iterdir()}
    with Collection.open(path) as collection:
        assert [hit.doc_id for hit in collection.search(["red"])[0]] == ["c"]
        assert collection.check().problems == []


def test_info_has_a_line_for_each_figure(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = run(monkeypatch, capsys, "info", path)
    info = Collection.info

    def with_figures(self: Collection) -> dict[str, Any]:
        return info(self) | {"figures": {"multi": {"centroids": 12345, "mean_error": 0.123456}}}

    monkeypatch.setattr(Collection, "info", with_figures)
    lines = run(monkeypatch, capsys, "info", path).splitlines()
    assert [line.split() for line in lines[len(plain.splitlines()) :]] == [
        ["multi", "centroids", "12,345"],
        ["multi", "mean", "error", "0.1235"],
    ]


@pytest.mark.parametrize(("value", "shown"), [(3, "3"), (1_000_000, "1,000,000"), (0.5, "0.5"), ("yes", "yes")])
def test_figures_are_shown_as_people_write_them(value: Any, shown: str) -> None:
    assert _figure(value) == shown
