"""Texts of software packages with the questions they answer: docstrings of Python wheels, manual pages and WordNet's glosses.

Nothing of the packages is installed or run. Wheels are zip archives whose modules are parsed; Debian packages are unpacked by
`dpkg-deb`, and manual pages are rendered by groff.
"""

import ast
import io
import random
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.everyday.apt import run
from benchmarks.everyday.manuals import pages

PRIVATE = re.compile(r"(^|/)(tests?|_vendor|vendor|vendored|testing|locale|migrations|conftest)(/|\.py)")
SHORTEST_DOC, SHORTEST_SUMMARY = 40, 3  # characters, words
SHORTEST_REST, REST_SHARE = 120, 0.3  # characters after the summary, and how many docstrings lose theirs
DOCSTRINGS_PER_WHEEL, PAGES_PER_PACKAGE = 450, 250
MANUAL = re.compile(r"\./usr/share/man/man(?P<section>[1235678])/(?P<name>[^/]+)\.(?P=section)[a-z]*\.gz")
NAME_LINE = re.compile(r"(?P<names>.*?)\s+-\s+(?P<what>.*)")
SHORTEST_PAGE, PAGE_START = 100, 1200  # characters
ASKING, ASKED_SHARE = ("how to", "how do I", "how can I"), 0.35
WORDNET = "wordnet-base"
GLOSSES = re.compile(r"data\.(noun|verb)$")

Pair = tuple[str, str]
"""A question and a passage that answers it."""


@dataclass(frozen=True, slots=True)
class Docstring:
    """The docstring of a public class or function of a package."""

    package: str
    qualified: str
    signature: str
    text: str


def docstring_pairs(wheels: Path, draw: random.Random) -> Iterator[Pair]:
    """Docstrings, asked for by their summary, by the words of the name, or by these and the package."""
    found: list[Docstring] = []
    for wheel in sorted(wheels.glob("*.whl")):
        docs = [*docstrings(wheel)]
        draw.shuffle(docs)
        found += docs[:DOCSTRINGS_PER_WHEEL]
    draw.shuffle(found)
    seen = set()
    for doc in found:
        summary = doc.text.partition("\n")[0].strip()
        if summary.lower() in seen or len(summary.split()) < SHORTEST_SUMMARY:
            continue
        seen.add(summary.lower())
        kind = draw.random()
        by_name = f"{split_name(doc.qualified)} {doc.package if kind > 0.9 else ''}".strip()
        asked = how_to(summary, draw) if kind < 0.6 else by_name
        rest = doc.text.partition("\n")[2].strip()
        text = rest if len(rest) >= SHORTEST_REST and draw.random() < REST_SHARE else doc.text
        yield asked, f"{doc.signature}\n{text}"


def docstrings(wheel: Path) -> Iterator[Docstring]:
    """The docstrings of the public modules of a wheel."""
    package = wheel.name.partition("-")[0]
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".py") and not PRIVATE.search(name):
                try:
                    tree = ast.parse(archive.read(name).decode())
                except (SyntaxError, ValueError):
                    continue  # templates, and tests of parsers
                yield from documented(tree, package, "")


def documented(node: ast.Module | ast.ClassDef, package: str, owner: str) -> Iterator[Docstring]:
    """The documented public classes and functions in a module or class."""
    for child in node.body:
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or child.name.startswith("_"):
            continue
        text = ast.get_docstring(child) or ""
        if len(text) >= SHORTEST_DOC:
            yield Docstring(package, owner + child.name, child.name + parameters(child), text)
        if isinstance(child, ast.ClassDef):
            yield from documented(child, package, f"{owner}{child.name}.")


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    """The parameter names of a function; nothing for a class."""
    if isinstance(node, ast.ClassDef):
        return ""
    return f"({', '.join(argument.arg for argument in node.args.args if argument.arg not in ('self', 'cls'))})"


def split_name(qualified: str) -> str:
    """The words of the last part of a name: `Frame.readCsv_file` has the words read csv file."""
    last = qualified.rsplit(".", 1)[-1]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", last).replace("_", " ").lower().strip()


def how_to(summary: str, draw: random.Random) -> str:
    """A summary as it is or, for a part of them, as people ask for what code does."""
    summary = summary.rstrip(".")
    return f"{draw.choice(ASKING)} {summary[0].lower()}{summary[1:]}" if draw.random() < ASKED_SHARE else summary


def manual_pairs(debs: Path, draw: random.Random) -> Iterator[Pair]:
    """The starts of manual pages, asked for by what their name line says."""
    for package in sorted(debs.glob("*.deb")):
        if package.name.startswith(WORDNET):
            continue
        for page in islice(pages(package, MANUAL), PAGES_PER_PACKAGE):
            name = NAME_LINE.match(page.title)
            if name and len(page.text) >= SHORTEST_PAGE:
                yield how_to(name["what"], draw), f"{page.title}\n{page.text[:PAGE_START]}"


def gloss_pairs(debs: Path, draw: random.Random) -> list[Pair]:
    """WordNet's glosses of nouns and verbs, asked for by the synonyms they define, in random order."""
    pairs = []
    for package in debs.glob(f"{WORDNET}*.deb"):
        with tarfile.open(fileobj=io.BytesIO(run(["dpkg-deb", "--fsys-tarfile", str(package)]))) as archive:
            files = [archive.extractfile(member) for member in archive if member.isfile() and GLOSSES.search(member.name)]
            lines = [line for file in files if file for line in file.read().decode().splitlines()]
        for line in lines:
            if not line.startswith(" "):  # the licence is indented
                synset, _, gloss = line.partition(" | ")
                fields = synset.split()
                words = [fields[4 + 2 * index].replace("_", " ") for index in range(int(fields[3], 16))]
                pairs.append((", ".join(words), gloss.strip()))
    draw.shuffle(pairs)
    return pairs
