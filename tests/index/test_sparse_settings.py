"""Defaults of a search over weighted terms."""

from trilens.index.sparse_settings import SparseSettings


def test_an_exact_search_reads_all_terms() -> None:
    assert SparseSettings.of(False, None, None, 10, 10**6).terms == 0


def test_defaults_depend_on_nothing_but_the_search() -> None:
    first = SparseSettings.of(True, None, None, 10, 1000)
    assert first == SparseSettings.of(True, None, None, 10, 1000)
    assert SparseSettings.of(True, None, None, 10, 10**7) > first


def test_at_least_k_rows_are_scored() -> None:
    assert SparseSettings.of(True, None, 3, 10, 1000).candidates == 10
    assert SparseSettings.of(True, 7, 50, 10, 1000) == (7, 50)
