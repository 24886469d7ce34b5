"""Token codes of segments: merges, parts older than a page of the codebook, and reproducible files."""

from pathlib import Path

import numpy as np
import pytest

from trilens.index import multi_part
from trilens.index.codebook import CODE_ARRAYS, Codebook
from trilens.index.multi_part import MultiPart
from trilens.represent import Multi

from .token_index import (
    DIMS,
    DOCS,
    METHODS,
    QUERIES,
    ROWS,
    TokenIndex,
    build,
    ragged,
    recall,
    require_best,
    require_own_scores,
    same,
    searcher_of,
    share,
    slow_maxsim,
    some_lengths,
    texts,
)


def require_same_part(part: MultiPart, other: MultiPart) -> None:
    for name in ("offsets", "list_ptr", "list_rows"):
        first, second = getattr(part, name), getattr(other, name)
        assert (first.dtype, first.tolist()) == (second.dtype, second.tolist())
    for name in CODE_ARRAYS:
        first, second = getattr(part.codes, name), getattr(other.codes, name)
        assert (first.dtype, first.shape, first.tobytes()) == (second.dtype, second.shape, second.tobytes())


@pytest.mark.parametrize("copy_rows", [4096, 7])
def test_a_merge_is_a_build_of_the_kept_rows(
    index: TokenIndex, in_parts: TokenIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy_rows: int
) -> None:
    monkeypatch.setattr(multi_part, "COPY_ROWS", copy_rows)
    mask = np.random.default_rng(7).random(ROWS) < 0.6
    keep = np.split(mask, np.cumsum([len(part) for part in in_parts.parts])[:-1])
    MultiPart.merge(in_parts.parts, keep, index.pages, tmp_path / "merged")
    merged = MultiPart.open(tmp_path / "merged")
    rebuilt = build(DOCS.take(np.flatnonzero(mask)), index.pages, tmp_path / "rebuilt")
    require_same_part(merged, rebuilt)
    assert merged.error == pytest.approx(rebuilt.error, rel=0.05)
    answers = [searcher_of([part], [None], index.pages).search(QUERIES, 10) for part in (merged, rebuilt)]
    assert same(*answers)
    MultiPart.merge(in_parts.parts, [np.ones(len(part), np.bool_) for part in in_parts.parts], index.pages, tmp_path / "all")
    require_same_part(MultiPart.open(tmp_path / "all"), index.parts[0])
    assert MultiPart.open(tmp_path / "all").error == pytest.approx(index.parts[0].error, rel=1e-4)


def test_a_merge_may_leave_nothing(in_parts: TokenIndex, tmp_path: Path) -> None:
    MultiPart.merge(in_parts.parts, [np.zeros(len(part), np.bool_) for part in in_parts.parts], in_parts.pages, tmp_path)
    merged = MultiPart.open(tmp_path)
    assert (len(merged), len(merged.codes), merged.error) == (0, 0, 0)
    assert (searcher_of([merged], [None], in_parts.pages).search(QUERIES, 3).rows == -1).all()


@pytest.fixture(scope="module")
def grown(index: TokenIndex, tmp_path_factory: pytest.TempPathFactory) -> TokenIndex:
    """A part that is older than the second page of the codebook, and one that uses it."""
    folder = tmp_path_factory.mktemp("grown")
    strange = texts(20, some_lengths(21, 400), centres=9)
    pages = share(strange, index.pages, folder / "page")
    assert len(pages) == 2
    newer = build(strange, pages, folder / "part")
    assert len(newer.list_ptr) == len(Codebook(pages).centroids) + 1 > len(index.parts[0].list_ptr)
    return TokenIndex([index.parts[0], newer], pages)


MIXED = Multi.concat([QUERIES, texts(22, [8] * 20, centres=9)])


def test_parts_older_than_a_page_answer_with_the_others(index: TokenIndex, grown: TokenIndex) -> None:
    decoded = grown.decode()
    assert [row.tolist() for row in decoded[:50]] == [row.tolist() for row in index.decode()[:50]]
    scores = slow_maxsim(MIXED, decoded)
    searcher = grown.searcher()
    truth = searcher.search(MIXED, 10, exact=True)
    require_best(truth, scores)
    top = searcher.search(MIXED, 10)
    require_own_scores(top, scores)
    assert recall(top, truth) >= 0.95
    assert (truth.rows[-20:] >= ROWS).mean() > 0.9  # the strange queries find the newer part
    for params in METHODS.values():
        found_rows = searcher.search(MIXED, 10, params=params).rows
        assert (found_rows >= 0).all() and (found_rows[-20:, 0] >= ROWS).mean() > 0.9


def test_a_merge_of_older_and_newer_parts_keeps_all_tokens(grown: TokenIndex, tmp_path: Path) -> None:
    keep = [np.random.default_rng(8).random(len(part)) < 0.7 for part in grown.parts]
    MultiPart.merge(grown.parts, keep, grown.pages, tmp_path)
    merged = TokenIndex([MultiPart.open(tmp_path)], grown.pages)
    rows = np.flatnonzero(np.concatenate(keep))
    decoded = grown.decode()
    assert [row.tolist() for row in merged.decode()] == [decoded[row].tolist() for row in rows]
    assert len(merged.parts[0].list_ptr) == len(Codebook(grown.pages).centroids) + 1
    before = grown.searcher().search(MIXED, 10, np.concatenate(keep), exact=True)
    after = merged.searcher().search(MIXED, 10, exact=True)
    assert rows[after.rows].tolist() == before.rows.tolist()
    for params in METHODS.values():
        first = grown.searcher().search(MIXED, 5, np.concatenate(keep), params=params)
        second = merged.searcher().search(MIXED, 5, params=params)
        assert np.mean(rows[second.rows] == first.rows) > 0.95


def test_parts_from_before_the_first_token(index: TokenIndex, tmp_path: Path) -> None:
    blank = build(ragged(np.zeros((0, DIMS)), [0, 0, 0]), [], tmp_path / "blank")
    assert (len(blank), len(blank.codes)) == (3, 0)
    mixed = TokenIndex([blank, index.parts[0]], index.pages)
    alone = index.searcher()
    for params in METHODS.values():
        top = mixed.searcher().search(QUERIES, 5, params=params)
        assert (top.rows - 3).tolist() == alone.search(QUERIES, 5, params=params).rows.tolist()
    assert mixed.searcher().decode(1).shape == (0, DIMS)
    MultiPart.merge(mixed.parts, [np.ones(3, np.bool_), np.ones(ROWS, np.bool_)], index.pages, tmp_path / "merged")
    merged = MultiPart.open(tmp_path / "merged")
    assert len(merged) == ROWS + 3 and merged.codes.residuals.tobytes() == index.parts[0].codes.residuals.tobytes()
    MultiPart.merge([blank, blank], [np.ones(3, np.bool_)] * 2, [], tmp_path / "blanks")
    assert len(MultiPart.open(tmp_path / "blanks")) == 6
    assert (searcher_of([blank], [None], []).search(QUERIES, 2).rows == -1).all()


def test_the_same_texts_make_the_same_files(index: TokenIndex, tmp_path: Path) -> None:
    pages = share(DOCS, [], tmp_path / "page")
    build(DOCS, pages, tmp_path / "part")
    build(DOCS, index.pages, tmp_path / "again")
    files = sorted(path.name for path in (tmp_path / "part").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "again").iterdir())
    assert all((tmp_path / "part" / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in files)
