"""Manual pages in Debian packages as documents: one for each page, rendered to text by groff."""

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.everyday.apt import run
from trilens.text.document import Document

PACKAGES = ("coreutils", "git-man")
PAGE = re.compile(r"\./usr/share/man/man(?P<section>[157])/(?P<name>[^/]+)\.(?P=section)\.gz")
# Continuous text without overstriking, and lines long enough that no paragraph is broken.
GROFF = ("groff", "-K", "utf8", "-t", "-mandoc", "-Tutf8", "-P-cbou", "-rLL=9999n", "-rHY=0")
INDENT = 7  # of the text under a heading
ASCII = str.maketrans({"‐": "-", "−": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "\xa0": " "})
NAME_LINE = re.compile(r"\s*NAME\n(?P<title>(?:[ \t]+\S.*\n)+)\s*?(?=^\S)", re.MULTILINE)


def pages(package: Path, wanted: re.Pattern[str] = PAGE) -> Iterator[Document]:
    """Yield the manual pages of a package file whose paths match, ordered by id; links to other pages are left out."""
    with tarfile.open(fileobj=io.BytesIO(run(["dpkg-deb", "--fsys-tarfile", str(package)]))) as archive:
        for member in sorted(archive, key=lambda member: member.name):
            match, file = wanted.fullmatch(member.name), archive.extractfile(member) if member.isfile() else None
            if match is None or file is None:
                continue
            troff = gzip.decompress(file.read())
            if not troff.startswith(b".so "):
                yield page(f"{match['name']}({match['section']})", run([*GROFF], given=troff).decode())


def page(doc_id: str, rendered: str) -> Document:
    """A rendered page as a document: its name line is the title; header, footer and indentation are removed."""
    lines = rendered.translate(ASCII).strip("\n").split("\n")
    body = "\n".join(line.rstrip() for line in lines[1:-1]).strip("\n") + "\n"
    name = NAME_LINE.match(body)
    title = " ".join(name["title"].split()) if name else doc_id
    text = "\n".join(_unindented(line) for line in body[name.end() if name else 0 :].split("\n"))
    return Document(doc_id, re.sub(r"\n{3,}", "\n\n", text).strip(), title)


def _unindented(line: str) -> str:
    return line[INDENT:] if line[:INDENT].isspace() else line.lstrip()
