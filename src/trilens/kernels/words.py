"""Cut text into words and number the different ones, over the code points of a whole batch at once.

A code point is of one class: SEPARATOR, LETTER (a run of them is a word), MARK (goes on with a word but begins none), BIGRAM
(scripts written without spaces: each pair of neighbours is a word, a lone one too), JOINER (belongs to the word when it
stands before a letter).
"""

import numpy as np
from numpy.typing import NDArray

from trilens.kernels.compile import kernel

SEPARATOR, LETTER, MARK, BIGRAM, JOINER = 0, 1, 2, 3, 4

CodePoints = NDArray[np.uint32]
Classes = NDArray[np.uint8]
Ints = NDArray[np.int64]


@kernel
def same_word(points: CodePoints, first: int, second: int, length: int) -> bool:
    """Whether two slices hold the same code points."""
    for i in range(length):
        if points[first + i] != points[second + i]:
            return False
    return True


@kernel
def number_of(points: CodePoints, start: int, length: int, slots: Ints, starts: Ints, lengths: Ints, count: int) -> int:
    """The number of the word at `start`: that of its equal among the first `count` words, or `count` if there is none.

    `slots` is an open-addressing table of word numbers, -1 where free; its size is a power of two.
    """
    hashed = np.uint64(1469598103934665603)
    for i in range(length):
        hashed = (hashed ^ np.uint64(points[start + i])) * np.uint64(1099511628211)
    hashed ^= hashed >> np.uint64(29)
    mask = np.uint64(len(slots) - 1)
    slot = hashed & mask
    while True:
        word = slots[slot]
        if word < 0:
            slots[slot] = count
            return count
        if lengths[word] == length and same_word(points, starts[word], start, length):
            return int(word)
        slot = (slot + np.uint64(1)) & mask


@kernel
def next_word(points: CodePoints, classes: Classes, at: int, end: int) -> tuple[int, int, int]:
    """Start and length of the first word at or after `at`, and where to look for the next one; length 0 at the end."""
    while at < end:
        kind = classes[points[at]]
        if kind == LETTER:
            start = at
            at += 1
            while at < end:
                kind = classes[points[at]]
                joins = kind == JOINER and at + 1 < end and classes[points[at + 1]] == LETTER
                if kind != LETTER and kind != MARK and not joins:
                    break
                at += 1
            return start, at - start, at
        if kind == BIGRAM:
            after_is_bigram = at + 1 < end and classes[points[at + 1]] == BIGRAM
            if after_is_bigram:
                return at, 2, at + 1
            before_is_bigram = at > 0 and classes[points[at - 1]] == BIGRAM
            if not before_is_bigram:
                return at, 1, at + 1
        at += 1
    return end, 0, end


@kernel
def number_words(points: CodePoints, text_ends: Ints, classes: Classes) -> tuple[Ints, Ints, Ints, Ints]:
    """Every word of every text as a number: words, end of each text in words, start and length of each different word.

    Texts lie end to end in `points`, text i ending before `text_ends[i]` with a separator as its last code point.
    """
    capacity = 1024
    slots = np.full(2 * capacity, -1, np.int64)
    starts, lengths = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    words = np.empty(max(len(points), 1), np.int64)
    word_ends = np.empty(len(text_ends), np.int64)
    count, total, at = 0, 0, 0
    for text in range(len(text_ends)):
        end = text_ends[text]
        while True:
            start, length, at = next_word(points, classes, at, end)
            if length == 0:
                break
            word = number_of(points, start, length, slots, starts, lengths, count)
            if word == count:
                starts[count], lengths[count] = start, length
                count += 1
                if count == capacity:
                    capacity *= 4
                    starts, lengths = (
                        np.append(starts, np.empty(capacity - count, np.int64)),
                        np.append(lengths, np.empty(capacity - count, np.int64)),
                    )
                    slots = np.full(2 * capacity, -1, np.int64)
                    for known in range(count):
                        number_of(points, starts[known], lengths[known], slots, starts, lengths, known)
            words[total] = word
            total += 1
        at = end
        word_ends[text] = total
    return words[:total].copy(), word_ends, starts[:count].copy(), lengths[:count].copy()


@kernel
def count_terms(
    words: Ints, word_ends: Ints, term_of: Ints, terms_known: int
) -> tuple[Ints, NDArray[np.int32], NDArray[np.float32], NDArray[np.int32]]:
    """Bags of terms as compressed rows: indptr, terms (ascending in each text), counts, and terms per text.

    `term_of` maps word numbers to terms, -1 for words that are not indexed.
    """
    indptr = np.zeros(len(word_ends) + 1, np.int64)
    lengths = np.zeros(len(word_ends), np.int32)
    terms, counts = np.empty(len(words), np.int32), np.empty(len(words), np.float32)
    seen = np.zeros(terms_known, np.int32)
    total, at = 0, 0
    for text in range(len(word_ends)):
        first = total
        while at < word_ends[text]:
            term = term_of[words[at]]
            at += 1
            if term < 0:
                continue
            if seen[term] == 0:
                terms[total] = term
                total += 1
            seen[term] += 1
            lengths[text] += 1
        terms[first:total].sort()
        for i in range(first, total):
            counts[i] = seen[terms[i]]
            seen[terms[i]] = 0
        indptr[text + 1] = total
    return indptr, terms[:total].copy(), counts[:total].copy(), lengths
