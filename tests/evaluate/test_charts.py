"""SVG charts: well-formed, inside their frame, and with the right scales and labels."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from trilens.evaluate.charts import (
    Point,
    _frontier,
    _labels,
    _linear_range,
    _log_range,
    _log_ticks,
    _overlaps,
    intervals,
    per_query_scatter,
    trade_off,
)
from trilens.evaluate.comparison import compare


def test_charts_are_well_formed_and_within_their_frame() -> None:
    random = np.random.default_rng(1)
    points = [Point(f"lens {n}", 10.0 ** random.uniform(-1, 3), random.uniform(0.3, 0.6), "red") for n in range(12)]
    values = (random.uniform(0, 1, 50), random.uniform(0, 1, 50))
    comparison = compare({"a": {"q": {"x": 1.0}}, "b": {"q": {"y": 1.0}}}, {"q": {"x": 1}}, ["RR"])
    for chart in (
        trade_off(points, "ms <", "nDCG & more"),
        trade_off([Point("alone", 5.0, 0.0, "red")], "ms", "nDCG"),
        per_query_scatter(*values, ("<a>", "b"), ("red", "blue")),
        intervals(comparison.pairs),
    ):
        image = ElementTree.fromstring(chart)
        width, height = (float(size) for size in image.attrib["viewBox"].split()[2:])
        for circle in image.iter("circle"):
            assert 0 <= float(circle.attrib["cx"]) <= width and 0 <= float(circle.attrib["cy"]) <= height
        assert not re.search("nan|inf", chart)


def test_labels_do_not_overlap() -> None:
    centres = [(100.0 + 30 * n, 150.0 + 4 * n) for n in range(5)]
    boxes: list[tuple[float, float, float, float]] = []
    for label, x, y, anchor in _labels([f"lens-{n}" for n in range(5)], centres):
        width = 6.4 * len(label)
        left = x if anchor == "start" else x - width if anchor == "end" else x - width / 2
        box = (left, y - 11, left + width, y + 3)
        assert not _overlaps(box, boxes)
        boxes.append(box)
    [(label, *_)] = _labels(["one", "two"], [(100.0, 100.0), (101.0, 100.0)])
    assert label == "one = two"


def test_the_frontier_has_the_points_that_no_cheaper_point_matches() -> None:
    places = {"a": (1, 0.2), "b": (2, 0.2), "c": (3, 0.5), "d": (3, 0.4), "e": (9, 0.1)}
    points = [Point(name, x, y, "red") for name, (x, y) in places.items()]
    assert [point.name for point in _frontier(points)] == ["a", "c"]


def test_ranges_contain_the_values_and_have_round_ticks() -> None:
    low, high, ticks = _linear_range([0.31, 0.58])
    assert (low, high) == pytest.approx((0.31 - 0.15 * 0.27, 0.58 + 0.15 * 0.27))
    assert ticks == pytest.approx([0.3, 0.4, 0.5, 0.6])
    low, high = _log_range([1.0, 100.0])
    assert (low, high) == pytest.approx((-0.25, 2.25))
    assert _log_ticks(low, high) == [1.0, 10.0, 100.0]
    assert _log_ticks(math.log10(0.9), math.log10(60)) == pytest.approx([1, 2, 5, 10, 20, 50])


def test_a_scatter_point_covers_the_queries_with_equal_values() -> None:
    image = ElementTree.fromstring(
        per_query_scatter(np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0]), ("a", "b"), ("red", "blue"))
    )
    tooltips = [circle.findtext("title") for circle in image.iter("circle")]
    assert tooltips == ["2 queries: 0.00, 1.00", "1 query: 1.00, 1.00"]
    styles = [circle.attrib["style"] for circle in image.iter("circle")]
    assert "fill:blue" in styles[0] and "fill:var(--soft)" in styles[1]


def test_only_significant_intervals_are_coloured() -> None:
    qrels = {f"q{n}": {"x": 1} for n in range(8)}
    good = {query: {"x": 1.0} for query in qrels}
    bad = {query: {"y": 1.0} for query in qrels}
    assert "rgb(var(--plus))" in intervals(compare({"good": good, "bad": bad}, qrels, ["RR"]).pairs)
    assert "rgb(var(--minus))" in intervals(compare({"bad": bad, "good": good}, qrels, ["RR"]).pairs)
    tied = intervals(compare({"good": good, "same": good}, qrels, ["RR"]).pairs)
    assert "rgb(" not in tied and "var(--soft)" in tied
