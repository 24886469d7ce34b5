"""Selection of the term weights of texts: the highest weight per term, the top weights of a row, or those of its own terms."""

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, Mask
from trilens.kernels.compile import kernel

ALL = -1
"""Value of `top` that keeps every weight above zero."""


@kernel
def highest_per_term(
    ids: Int32s, weights: Float32s, begins: Int64s, ends: Int64s, shift: int, left_out: Mask
) -> tuple[Int64s, Int32s, Float32s, Float32s]:
    """The distinct terms of each text, ascending, with their highest weights; weights of zero are dropped.

    Text i has the tokens `begins[i]:ends[i]` of `ids` and `weights`. A term is an id minus `shift`; ids below `shift` and those
    that `left_out` (vocabulary,) marks are dropped. Returns offsets, terms, weights, and the count of each term in its text.
    """
    texts = len(begins)
    total = 0
    for text in range(texts):
        total += ends[text] - begins[text]
    indptr = np.zeros(texts + 1, np.int64)
    terms, best, counts = np.empty(total, np.int32), np.empty(total, np.float32), np.empty(total, np.float32)
    highest = np.zeros(len(left_out), np.float32)  # zero for terms that the text did not contain so far
    term_counts = np.zeros(len(left_out), np.float32)
    used = 0
    for text in range(texts):
        first = used
        for position in range(begins[text], ends[text]):
            term = ids[position]
            if term < shift or left_out[term] or not weights[position] > 0:
                continue
            if highest[term] == 0:
                terms[used] = term
                used += 1
            highest[term] = max(highest[term], weights[position])
            term_counts[term] += 1
        terms[first:used].sort()
        for i in range(first, used):
            best[i], counts[i] = highest[terms[i]], term_counts[terms[i]]
            highest[terms[i]] = term_counts[terms[i]] = 0
            terms[i] -= shift
        indptr[text + 1] = used
    return indptr, terms[:used].copy(), best[:used].copy(), counts[:used].copy()


@kernel
def threshold(bits: Int32s, top: int, counts: Int32s) -> tuple[int, int]:
    """The bit pattern of the `top`-th highest weight, and how many weights equal to it are among the `top`.

    Positive floats are ordered like their bit patterns, so a radix select over 11, 10 and 10 bits finds it without sorting.
    `counts` (2048,) is a buffer. Returns zeros if there are fewer than `top` positive weights.
    """
    prefix, wanted = 0, top
    for step in range(3):
        shift = 20 - 10 * step
        size = 2048 if step == 0 else 1024
        counts[:size] = 0
        for i in range(len(bits)):
            if bits[i] > 0 and (step == 0 or bits[i] >> (shift + 10) == prefix):
                counts[(bits[i] >> shift) & (size - 1)] += 1
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
    rows: Float32s, top: int, own_starts: Int64s, own_terms: Int32s, with_own: bool
) -> tuple[Int64s, Int32s, Float32s]:
    """The `top` highest weights of each row (texts, dimensions) and, with `with_own`, the weights of its own terms.

    Of equal weights the smaller terms are kept first. Only positive weights are kept. Row i has the own terms
    `own_starts[i]:own_starts[i + 1]` of `own_terms`, ascending. Returns offsets, terms (ascending) and weights.
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
