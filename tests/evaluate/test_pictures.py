"""Comparisons as PNG pictures."""

from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.evaluate.comparison import compare
from trilens.evaluate.pictures import comparison_picture

COMPARISON = compare({"a$": {"q": {"x": 1.0}}, "b": {"q": {"y": 1.0}}}, {"q": {"x": 1}}, ["RR", "AP"])


def test_a_comparison_is_drawn_into_a_png_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    comparison_picture(COMPARISON, tmp_path / "c.png")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_only_the_primary_measure_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = pytest.importorskip("matplotlib.figure")
    drawn = []
    monkeypatch.setattr(figure.Figure, "savefig", lambda self, *args, **options: drawn.append(self))
    comparison_picture(COMPARISON, tmp_path / "c.png")
    intervals, scatter = drawn[0].axes
    assert len(intervals.get_yticklabels()) == 1
    assert scatter.get_title() == "1 better, 0 equal, 0 worse"
    assert scatter.collections[0].get_offsets().tolist() == [[0.0, 1.0]]  # x is the second-best run, y the best


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="png"):
        comparison_picture(COMPARISON, tmp_path / "c.gif")
