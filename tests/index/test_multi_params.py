"""Search parameters of the multi lens and their defaults."""

from dataclasses import asdict
from typing import Any

import pytest

from trilens.index.multi_params import MultiParams, default_settings
from trilens.search.options import params_of, parse_params

from .token_index import QUERIES, TokenIndex, one_line, same


def test_default_parameters_depend_on_nothing_but_what_is_asked(index: TokenIndex) -> None:
    first = [default_settings(MultiParams(), k, rows) for k in (1, 10, 1000) for rows in (0, 1000, 10**6)]
    index.searcher().search(QUERIES, 1000)
    assert [default_settings(MultiParams(), k, rows) for k in (1, 10, 1000) for rows in (0, 1000, 10**6)] == first
    few, many = default_settings(MultiParams(), 10, 1000), default_settings(MultiParams(), 1000, 1000)
    assert few.candidates >= 10 and many.candidates >= 1000
    assert default_settings(MultiParams(), 10, 10**6).probes > few.probes
    assert default_settings(MultiParams(method="xtr"), 10, 1000).imputes and not few.imputes
    assert default_settings(MultiParams(probes=7), 10, 1000).probes == 7
    searcher = index.searcher()
    params = MultiParams(**asdict(searcher.settings(None, 10)))
    assert same(searcher.search(QUERIES, 10), searcher.search(QUERIES, 10, params=params))


@pytest.mark.parametrize(
    "options, name",
    [
        ({"reach": 0}, "reach"),
        ({"probes": 0}, "probes"),
        ({"probes": -3}, "probes"),
        ({"candidates": -1}, "candidates"),
        ({"margin": -0.1}, "margin"),
        ({"margin": float("nan")}, "margin"),
        ({"nth": -1}, "nth"),
        ({"tokens": -1}, "tokens"),
        ({"method": "warp"}, "method"),
        ({"reach": 2.5}, "reach"),  # would fail deep in a kernel, or not at all
        ({"probes": 2.5}, "probes"),
        ({"nth": 2.5}, "nth"),
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, Any], name: str) -> None:
    assert name in one_line(lambda: MultiParams(**options))


def test_parameters_from_the_command_line() -> None:
    def read(text: str) -> dict[str, Any]:
        return {name: params_of(name, params) for name, params in parse_params(text).items()}

    assert read('{"multi": {"method": "xtr", "nth": 5}}') == {"multi": MultiParams(method="xtr", nth=5)}
    assert read("multi:method=xtr,nth=5") == {"multi": MultiParams(method="xtr", nth=5)}
    assert read('{"multi": {}}') == {"multi": MultiParams()}
    bad = (
        "",
        "xtr",
        "[1]",
        "multi:probe=3",
        'multi:probes="3"',
        "multi:reach=0",
        '"x"',
        "3",
        '{"multi": [1]}',
        '{"multi": "x"}',
    )
    for text in bad:
        one_line(lambda text=text: read(text))  # type: ignore[misc]
