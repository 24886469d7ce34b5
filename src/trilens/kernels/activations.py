"""Which weights of a text over a vocabulary are kept: the highest ones, its own words, or both."""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

Floats = NDArray[np.float32]
Offsets = NDArray[np.int64]
Terms = NDArray[np.int32]

ALL = -1
"""As `top`: keep every weight above zero."""


@kernel
def highest_per_term(
    ids: Terms, weights: Floats, begins: Offsets, ends: Offsets, shift: int, left_out: NDArray[np.bool_]
) -> tuple[Offsets, Terms, Floats, Floats]:
    """The distinct terms of each text, ascending, each with its highest weight; weights of zero are left out.

    The tokens of text i are `begins[i]:ends[i]` of `ids`, with `weights` beside them. A term is an id less `shift`; ids below
    that, and those that `left_out` (vocabulary,) marks, are no terms. Returns offsets, terms, weights, and how often each
    term stands in its text.
    """
    texts = len(begins)
    total = 0
    for text in range(texts):
        total += ends[text] - begins[text]
    indptr = np.zeros(texts + 1, np.int64)
    terms, best, counts = np.empty(total, np.int32), np.empty(total, np.float32), np.empty(total, np.float32)
    highest = np.zeros(len(left_out), np.float32)  # zero wherever the text has not been yet
    met = np.zeros(len(left_out), np.float32)
    used = 0
    for text in range(texts):
        first = used
        for at in range(begins[text], ends[text]):
            term = ids[at]
            if term < shift or left_out[term] or not weights[at] > 0:
                continue
            if highest[term] == 0:
                terms[used] = term
                used += 1
            highest[term] = max(highest[term], weights[at])
            met[term] += 1
        terms[first:used].sort()
        for at in range(first, used):
            best[at], counts[at] = highest[terms[at]], met[terms[at]]
            highest[terms[at]] = met[terms[at]] = 0
            terms[at] -= shift
        indptr[text + 1] = used
    return indptr, terms[:used].copy(), best[:used].copy(), counts[:used].copy()


@kernel
def threshold(bits: NDArray[np.int32], top: int, counts: NDArray[np.int32]) -> tuple[int, int]:
    """The bits of the weight that is `top`-th from above, and how many weights of just that size are among the `top`.

    Weights above zero are in the same order as their bits, so three passes that count 11, 10 and 10 bits of them find it
    without sorting. `counts` (2048,) is room to work in. With fewer than `top` weights above zero, all of them are.
    """
    prefix, wanted = 0, top
    for step in range(3):
        shift = 20 - 10 * step
        size = 2048 if step == 0 else 1024
        counts[:size] = 0
        for at in range(len(bits)):
            if bits[at] > 0 and (step == 0 or bits[at] >> (shift + 10) == prefix):
                counts[(bits[at] >> shift) & (size - 1)] += 1
        digit = size - 1
        while digit >= 0 and counts[digit] < wanted:
            wanted -= counts[digit]
            digit -= 1
        if digit < 0:
            return 0, 0
        prefix = digit if step == 0 else (prefix << 10) | digit
    return prefix, wanted


@kernel
def keep_weights(
    rows: Floats, top: int, own_starts: Offsets, own_terms: Terms, with_own: bool
) -> tuple[Offsets, Terms, Floats]:
    """The `top` highest weights of each row (texts, dimensions), and with `with_own` those of its own terms as well.

    Of equal weights the smaller terms are kept first; weights of zero or below never. The own terms of row i, ascending, are
    `own_starts[i]:own_starts[i + 1]` of `own_terms`. Returns offsets, terms (ascending) and weights.
    """
    texts, dim = rows.shape
    room = len(own_terms) + texts * (dim if top < 0 else min(top, dim))
    indptr = np.zeros(texts + 1, np.int64)
    terms, weights = np.empty(room, np.int32), np.empty(room, np.float32)
    counts = np.empty(2048, np.int32)
    used = 0
    for text in range(texts):
        bits = rows[text].view(np.int32)
        least, ties = 0, 0
        if top == 0:
            least = np.iinfo(np.int32).max
        elif 0 < top < dim:
            least, ties = threshold(bits, top, counts)
        own, own_end = own_starts[text], own_starts[text + 1]
        for term in range(dim):
            owned = own < own_end and own_terms[own] == term
            if owned:
                own += 1
            if bits[term] <= 0:
                continue
            kept = bits[term] > least
            if bits[term] == least and ties > 0:
                ties -= 1
                kept = True
            if kept or (owned and with_own):
                terms[used], weights[used] = term, rows[text, term]
                used += 1
        indptr[text + 1] = used
    return indptr, terms[:used].copy(), weights[:used].copy()
