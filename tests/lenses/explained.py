"""Texts, queries and the check that every explanation has to pass: its parts add up to the score of a search."""

import csv
import fnmatch
import heapq
import inspect
import json
import random
import re
import shutil
import statistics
import string
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import pytest

from trilens import Collection, Document, Explanation, SparseParams

LENSES = ["bm25", "dense", "sparse", "tokens", "lexical", "multi"]
TEXTS = {
    "rain": "Heavy rain is expected tomorrow in the north of the country.",
    "car": "The mechanic repaired the engine of an old car. Cars need engines!",
    "fox": "A quick brown fox jumps over the lazy dog near the river.",
    "long": "A short start. " + "Nothing happens here at all. " * 40 + "Then the engine of the ship broke down.",
    "odd": "ﬁne Straße, NAÏVE cafe\u0301 — 東京タワー & the engine's <b>motor</b>",
}
QUERIES = ["motor repair of old cars", "will it rain in the north", "broken ship engine", "東京 fine café"]
PASSAGES = {"words": 60, "overlap": 10}
MODULES = (shutil, statistics, textwrap, json, re, random, heapq, tempfile, fnmatch, csv, string)
DOCUMENTED = 60
QUESTIONS = [
    "copy a file with all its metadata to a new location",
    "remove a whole directory tree",
    "how much space is left on the disk",
    "the middle value of a list of numbers",
    "how strongly do two samples correlate",
    "the most common value in the data",
    "wrap a long paragraph into lines of a given width",
    "remove the indentation of every line of a text",
    "turn an object into a string of JSON",
    "read a JSON document from an open file",
    "find all matches of a pattern in a string",
    "escape the special characters of a pattern",
    "choose a random element from a sequence",
    "shuffle a list in place",
    "the smallest element of a heap",
    "insert an item into a sorted list so that it stays sorted",
    "make a temporary file that is deleted when it is closed",
    "the folder in which temporary files are kept",
    "does a file name match a pattern of the shell",
    "read rows of a table from a file of comma separated values",
]


def make_collection(path: Path) -> Collection:
    """The texts through every lens, by the bundled model."""
    made = Collection.create(path, lenses=LENSES, passages=PASSAGES, threads=1)
    made.add(Document(doc_id, text, title="On " + doc_id) for doc_id, text in TEXTS.items())
    made.commit()
    return made


def make_documentation(path: Path) -> Collection:
    """The docstrings of functions of Python's standard library."""
    names = [(module, name) for module in MODULES for name in module.__all__]
    texts = {f"{module.__name__}.{name}": inspect.getdoc(getattr(module, name)) for module, name in names}
    documents = [Document(name, text[:600]) for name, text in texts.items() if text and len(text) > 60][:DOCUMENTED]
    made = Collection.create(path, lenses=LENSES, threads=1)
    made.add(documents)
    made.commit()
    return made


def require_sum(explanation: Explanation, score: float) -> None:
    """The parts add up to the score, and their spans and facts fit them."""
    assert explanation.score == pytest.approx(score, abs=1e-4)
    assert sum(part.score for part in explanation.parts) == pytest.approx(score, abs=1e-4)
    for part in explanation.parts:
        if "query_weight" in part.facts and "doc_weight" in part.facts:
            assert part.score == pytest.approx(part.facts["query_weight"] * part.facts["doc_weight"])  # type: ignore[operator]
        assert all(0 <= start < end <= len(explanation.passage.text) for start, end in part.doc_spans)
        if part.kind == "token":
            assert [explanation.passage.text[start:end] for start, end in part.doc_spans] == [part.label]


TERM_TEXTS = {
    "rain": "Heavy rain is expected tomorrow in the north of the country.",
    "car": "The mechanic repaired the engine of an old car.",
    "long": "A short start. " + "Nothing happens here at all. " * 40 + "Then the engine of the ship broke down.",
}
TERM_QUERIES = ["motor repair", "what will the weather be like", "ship engine", "the car the car"]


def make_terms(path: Path) -> Collection:
    """Texts without titles through the lenses over terms."""
    made = Collection.create(path, lenses=["bm25", "sparse", "tokens", "lexical"], passages=PASSAGES, threads=1)
    made.add(Document(doc_id, text) for doc_id, text in TERM_TEXTS.items())
    made.commit()
    return made


def require_term_parts(collection: Collection, lens: str, params: SparseParams | None = None) -> None:
    """The parts of term scores are products of weights, largest first, and add up."""
    options: dict[str, Any] = {"params": {lens: params}} if params else {}
    for query in TERM_QUERIES:
        for hit in collection.search([query], lenses=[lens], **options)[0]:
            found = collection.explain(query, hit.doc_id, lenses=[lens], **options)
            assert found.score == pytest.approx(hit.score, rel=1e-6, abs=1e-4)
            assert sum(part.score for part in found.parts) == pytest.approx(hit.score, rel=1e-6, abs=1e-4)
            parts = [part for part in found.parts if part.kind != "rest"]
            for part in parts:
                assert part.score == pytest.approx(part.facts["query_weight"] * part.facts["doc_weight"])  # type: ignore[operator]
            assert [part.score for part in parts] == sorted((part.score for part in parts), reverse=True)


def require_places(collection: Collection, lens: str) -> None:
    """A term that query and document contain is shown where it stands in both."""
    found = collection.explain("old car", "car", lenses=[lens])
    part = next(part for part in found.parts if part.label == "car")
    assert part.query_span == (4, 7)
    assert [found.passage.text[start:end] for start, end in part.doc_spans] == ["car"]
