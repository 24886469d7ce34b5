"""Parts of term lenses: what they store on disk."""

from pathlib import Path

import numpy as np

from trilens.index.sparse_parts import BagPart, WeightedPart

from ..lenses.term_rows import as_bag, drawn, sparse


def test_a_bag_takes_few_bytes(tmp_path: Path) -> None:
    docs = drawn(np.random.default_rng(15), 5000, 30)
    BagPart.build(as_bag(docs), tmp_path / "p")
    part = BagPart.open(tmp_path / "p")
    assert not (tmp_path / "p" / "codes.npy").exists()
    assert part.size < 2 * part.postings


def test_bags_come_back_as_they_were(tmp_path: Path) -> None:
    docs = as_bag(drawn(np.random.default_rng(16), 700, 30))
    BagPart.build(docs, tmp_path / "p")
    part = BagPart.open(tmp_path / "p")
    keep = np.random.default_rng(17).random(700) < 0.5
    kept, expected = part.rows(keep), docs.take(np.flatnonzero(keep))
    assert (len(part), part.dim, part.postings) == (700, docs.dim, len(docs.terms))
    assert (kept.indptr.tolist(), kept.terms.tolist()) == (expected.indptr.tolist(), expected.terms.tolist())
    taken = part.take(np.flatnonzero(keep))
    assert (taken.indptr.tolist(), taken.terms.tolist()) == (expected.indptr.tolist(), expected.terms.tolist())
    np.testing.assert_allclose(taken.weights, np.repeat(part.scales[keep], np.diff(taken.indptr)), rtol=1e-6)
    assert part.frequencies.tolist() == np.bincount(docs.terms, minlength=docs.dim)[part.used].tolist()


def test_rows_keep_their_terms_and_nearly_their_weights(tmp_path: Path) -> None:
    docs = sparse([{1: 0.5, 7: 2.0}, {}, {3: 1e-6, 299: 4.0}])
    for weights, tolerance in (("uint8", 4.0 / 255), ("float32", 0.0)):
        WeightedPart.build(docs, "uint8" if weights == "uint8" else "float32", tmp_path / weights)
        part = WeightedPart.open(tmp_path / weights)
        assert (len(part), part.lengths.tolist(), part.postings) == (3, [2, 0, 2], 4)
        for rows in ([0], [1], [0, 2], [0, 1, 2]):
            taken, expected = part.take(np.array(rows)), docs.take(np.array(rows))
            assert (taken.indptr.tolist(), taken.terms.tolist()) == (expected.indptr.tolist(), expected.terms.tolist())
            np.testing.assert_allclose(taken.weights, expected.weights, atol=tolerance)
            assert (taken.weights > 0).all()
