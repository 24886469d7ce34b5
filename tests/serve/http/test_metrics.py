import pytest

pytest.importorskip("fastapi")

from trilens.serve.http.metrics import Counter, Histogram


def test_a_histogram_counts_what_is_not_above_each_bound() -> None:
    histogram = Histogram("size", "Sizes.", ["kind"], (1, 2, 4))
    for value in (1, 2, 3, 9):
        histogram.observe(value, "a")
    assert list(histogram.lines()) == [
        "# HELP size Sizes.",
        "# TYPE size histogram",
        'size_bucket{kind="a",le="1"} 1',
        'size_bucket{kind="a",le="2"} 2',
        'size_bucket{kind="a",le="4"} 3',
        'size_bucket{kind="a",le="+Inf"} 4',
        'size_sum{kind="a"} 15',
        'size_count{kind="a"} 4',
    ]


def test_labels_are_escaped() -> None:
    counter = Counter("seen", "Seen.", ["name"])
    counter.add('a"b\\c\nd')
    counter.add('a"b\\c\nd')
    assert list(counter.lines())[-1] == 'seen{name="a\\"b\\\\c\\nd"} 2'
