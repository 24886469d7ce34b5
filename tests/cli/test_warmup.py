"""After `trilens warmup`, nothing that a user does compiles another kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CORPUS, Trilens

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = """
import sys
from numba.core.registry import CPUDispatcher
from trilens import Collection, Document
from trilens.cli.warmup import warmup

def signatures():
    modules = [module for name, module in sys.modules.items() if name.startswith("trilens.")]
    kernels = {id(value): value for module in modules for value in vars(module).values() if isinstance(value, CPUDispatcher)}
    return {(kernel.__module__, kernel.__name__, each) for kernel in kernels.values() for each in kernel.overloads}

path, lenses = sys.argv[1], sys.argv[2].split(",")
warmup(sys.argv[2], True)
warm = signatures()
texts = ["Recursively delete a directory tree.", "Create a directory.", "Return the square root of a number. " * 90]
documents = [Document(str(number), text, metadata={"number": number}) for number, text in enumerate(texts * 3)]
with Collection.create(path, lenses=lenses) as collection:
    collection.ingest(documents[:3])
    collection.ingest(documents)
    for names in [*([name] for name in lenses), lenses]:
        collection.search(["delete a directory", "a root"], lenses=names)
        collection.search(["directory"], lenses=names, filter={"number": {"$gte": 7}})
        collection.explain("delete a directory", "0", lenses=names)
    collection.delete(["5", "6"])
    collection.optimize()
    collection.search(["directory"])
assert warm and signatures() == warm, signatures() - warm
"""


def test_nothing_compiles_after_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    lenses = "bm25,dense,tokens,multi"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "c"), lenses]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["lenses"] == lenses.split(",")


def test_its_lenses_can_be_chosen(trilens: Trilens) -> None:
    outcome = trilens("warmup", "--lens", "bm25,external")
    assert outcome.code == 0
    assert "kernels" in outcome.out and "bm25, external" in outcome.out
    refused = trilens("warmup", "--lens", "smell")
    assert refused.code == 1 and "lens 'smell' is not known" in refused.err


def test_the_note_names_the_lenses_that_are_affected(tmp_path: Path, trilens: Trilens) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps({**CORPUS[0], "text": "one word after another " * 100}) + "\n")
    split = trilens("index", path, "--to", tmp_path / "split", "--lens", "bm25,tokens")
    assert (split.code, split.err) == (0, "")
    keep_whole = ("--passage-words", 0, "--overlap-words", 0)
    whole = trilens("index", path, "--to", tmp_path / "whole", "--lens", "bm25,tokens", *keep_whole)
    assert whole.err == (
        "note: tokens read only the beginning of 1 passage; bm25 read all of it; in this collection documents are whole: "
        "index into another one with the default passages to encode everything\n"
    )
    words = trilens("index", path, "--to", tmp_path / "words", "--lens", "bm25", *keep_whole)
    assert (words.code, words.err) == (0, "")
    path.write_text(json.dumps({**CORPUS[0], "title": "a title " * 150, "text": "one word after another " * 100}) + "\n")
    titled = trilens("index", path, "--to", tmp_path / "titled", "--lens", "tokens")
    assert "their titles leave too little room for the text: shorten the titles" in titled.err
