"""Tokenisation of a batch of texts into numbered words, over their code points.

Each code point has a class: SEPARATOR, LETTER (a run of letters is a word), MARK (continues a word but does not start one),
BIGRAM (scripts written without spaces: each pair of neighbours is a word, and so is a single one), JOINER (part of a word if
a letter follows).
"""

import numpy as np

from trilens.kernels.array_types import Float32s, Int32s, Int64s, UInt8s, UInt32s
from trilens.kernels.compile import kernel

SEPARATOR, LETTER, MARK, BIGRAM, JOINER = 0, 1, 2, 3, 4


@kernel
def same_word(points: UInt32s, first: int, second: int, length: int) -> bool:
    """Whether two slices contain the same code points."""
    for i in range(length):
        if points[first + i] != points[second + i]:
            return False
    return True


@kernel
def number_of(points: UInt32s, start: int, length: int, slots: Int64s, starts: Int64s, lengths: Int64s, count: int) -> int:
    """The number of the word at `start` among the first `count` distinct words; `count` if it is not among them.

    `slots` is an open-addressing hash table of word numbers, -1 if free; its size is a power of two.
    """
    hash_value = np.uint64(1469598103934665603)
    for i in range(length):
        hash_value = (hash_value ^ np.uint64(points[start + i])) * np.uint64(1099511628211)
    hash_value ^= hash_value >> np.uint64(29)
    mask = np.uint64(len(slots) - 1)
    slot = hash_value & mask
    while True:
        word = slots[slot]
        if word < 0:
            slots[slot] = count
            return count
        if lengths[word] == length and same_word(points, starts[word], start, length):
            return int(word)
        slot = (slot + np.uint64(1)) & mask


@kernel
def next_word(points: UInt32s, classes: UInt8s, position: int, end: int) -> tuple[int, int, int]:
    """The start and length of the first word from `position` on, and the position after it; length 0 at the end."""
    while position < end:
        kind = classes[points[position]]
        if kind == LETTER:
            start = position
            position += 1
            while position < end:
                kind = classes[points[position]]
                joins = kind == JOINER and position + 1 < end and classes[points[position + 1]] == LETTER
                if kind != LETTER and kind != MARK and not joins:
                    break
                position += 1
            return start, position - start, position
        if kind == BIGRAM:
            after_is_bigram = position + 1 < end and classes[points[position + 1]] == BIGRAM
            if after_is_bigram:
                return position, 2, position + 1
            before_is_bigram = position > 0 and classes[points[position - 1]] == BIGRAM
            if not before_is_bigram:
                return position, 1, position + 1
        position += 1
    return end, 0, end


@kernel
def number_words(points: UInt32s, text_ends: Int64s, classes: UInt8s) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Number the words of all texts: returns word numbers, the end of each text in words, and starts and lengths of the words.

    `points` has the texts one after another; text i ends before `text_ends[i]`, with a separator as its last code point.
    """
    capacity = 1024
    slots = np.full(2 * capacity, -1, np.int64)
    starts, lengths = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    words = np.empty(max(len(points), 1), np.int64)
    word_ends = np.empty(len(text_ends), np.int64)
    count, total, position = 0, 0, 0
    for text in range(len(text_ends)):
        end = text_ends[text]
        while True:
            start, length, position = next_word(points, classes, position, end)
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
        position = end
        word_ends[text] = total
    return words[:total].copy(), word_ends, starts[:count].copy(), lengths[:count].copy()


@kernel
def count_terms(words: Int64s, word_ends: Int64s, term_of: Int64s, terms_known: int) -> tuple[Int64s, Int32s, Float32s, Int32s]:
    """Count the terms of each text: returns offsets, terms (ascending in each text), counts, and the length of each text.

    `term_of` maps word numbers to terms; -1 is a word that is not indexed.
    """
    indptr = np.zeros(len(word_ends) + 1, np.int64)
    lengths = np.zeros(len(word_ends), np.int32)
    terms, counts = np.empty(len(words), np.int32), np.empty(len(words), np.float32)
    term_counts = np.zeros(terms_known, np.int32)
    total, position = 0, 0
    for text in range(len(word_ends)):
        first = total
        while position < word_ends[text]:
            term = term_of[words[position]]
            position += 1
            if term < 0:
                continue
            if term_counts[term] == 0:
                terms[total] = term
                total += 1
            term_counts[term] += 1
            lengths[text] += 1
        terms[first:total].sort()
        for i in range(first, total):
            counts[i] = term_counts[terms[i]]
            term_counts[terms[i]] = 0
        indptr[text + 1] = total
    return indptr, terms[:total].copy(), counts[:total].copy(), lengths
