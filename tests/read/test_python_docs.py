import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trilens.read import python_docs
from trilens.read.python_docs import standard_library
from trilens.text.document import Document

DIGEST = """
import hashlib, socket, sys
def refuse(*args): raise SystemExit("a socket was opened")
socket.socket.connect = refuse
from trilens.read.python_docs import standard_library
digest = hashlib.sha256()
for document in standard_library():
    digest.update(repr((document.doc_id, document.title, document.text, document.metadata_json())).encode())
sys.stderr.write(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    found = list(standard_library())
    assert len({document.doc_id for document in found}) == len(found)
    assert [document.doc_id for document in found] == sorted(document.doc_id for document in found)
    return {document.doc_id: document for document in found}


@pytest.mark.parametrize(
    ("doc_id", "title", "kind", "module", "says"),
    [
        ("shutil.rmtree", "rmtree(path, ignore_errors=False", "function", "shutil", "delete a directory tree"),
        ("json.dumps", "dumps(obj, *, skipkeys=False", "function", "json", "Serialize ``obj``"),
        ("json", "json", "module", "json", "JavaScript Object Notation"),
        ("os.path.join", "join(", "function", "os.path", "Join"),
        ("math.sqrt", "sqrt(x, /)", "function", "math", "square root"),
        ("itertools.chain", "chain", "class", "itertools", "first iterable"),
        ("os.mkdir", "mkdir(path", "function", "os", "Create a directory"),
        ("collections.OrderedDict", "OrderedDict", "class", "collections", "remembers insertion order"),
        ("asyncio.run", "run(main", "function", "asyncio", "Execute the coroutine"),
        ("unittest.TestCase", "TestCase(methodName='runTest')", "class", "unittest", "test cases"),
        ("random.randint", "randint(a, b)", "function", "random", "random integer"),
        ("open", "open(file, mode='r'", "function", "builtins", "Open file"),
    ],
)
def test_an_object_is_found_at_its_public_home(
    documents: dict[str, Document], doc_id: str, title: str, kind: str, module: str, says: str
) -> None:
    document = documents[doc_id]
    assert document.title.startswith(title)
    assert document.metadata == {"kind": kind, "module": module}
    assert says in document.text


@pytest.mark.parametrize(
    "doc_id",
    [
        "posix.mkdir",
        "posixpath.join",
        "ntpath.join",
        "builtins.str.split",
        "_collections.OrderedDict",
        "asyncio.runners.run",
        "unittest.case.TestCase",
        "random.Random.randint",
        "io.open",
        "IOError",
        "this",
        "distutils.core",
        "encodings.utf_8",
    ],
)
def test_an_object_is_found_only_there(documents: dict[str, Document], doc_id: str) -> None:
    assert doc_id not in documents


def test_there_are_thousands_and_none_is_trivial(documents: dict[str, Document]) -> None:
    assert len(documents) > 2500
    assert all(len(document.text) >= 10 for document in documents.values())
    assert not [document.doc_id for document in documents.values() if " at 0x" in document.title + document.text]
    assert not [doc_id for doc_id in documents if any(part.startswith("_") for part in doc_id.split("."))]


def test_a_docstring_of_a_base_class_is_not_repeated(documents: dict[str, Document]) -> None:
    texts = [document.text for document in documents.values() if document.metadata["kind"] == "class"]
    assert "collections.OrderedDict" in documents
    assert texts.count(documents["dict"].text) == 1


def test_two_processes_give_the_same_and_print_nothing(documents: dict[str, Document]) -> None:
    source = str(Path(python_docs.__file__).parents[2])
    digests = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": source, "PYTHONWARNINGS": "always"}
        run = subprocess.run([sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True)
        assert run.stdout == ""
        digests.add(run.stderr)
    assert len(digests) == 1
    assert len(digests.pop()) == hashlib.sha256().digest_size * 2
