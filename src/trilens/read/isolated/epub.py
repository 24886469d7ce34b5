"""EPUB: one document per chapter, that is per file of the book's reading order."""

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree import ElementTree
from zipfile import ZipFile

from trilens.errors import BadInput, Unreadable
from trilens.read.described import described, one_line, part_title
from trilens.read.formats import PageContent
from trilens.read.html import read_html
from trilens.read.isolated.archive import ENCRYPTED, check_archive
from trilens.read.isolated.local_file import LocalFile

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
BODY = re.compile(r"<body\b", re.IGNORECASE)
DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"


def parse(file: LocalFile) -> Iterator[PageContent]:
    """Yield the chapters."""
    check_archive(file)
    with ZipFile(file.path) as archive:
        package_path = _package_path(archive)
        package = ElementTree.fromstring(archive.read(package_path))
        paths = list(_reading_order(package, posixpath.dirname(package_path)))
        if _encrypted(archive).intersection(paths):
            raise Unreadable("is encrypted (digital rights management); expected a book without it: leave it out", ENCRYPTED)
        book = _first(package, "title")
        facts = described(
            chapters=len(paths),
            author=", ".join(_all(package, "creator")),
            date=_first(package, "date"),
            lang=_first(package, "language"),
        )
        for number, path in enumerate(paths, start=1):
            # The head is left out: its title is often the name of the file or of the book.
            body = BODY.search(markup := archive.read(path).decode("utf-8-sig", errors="replace"))
            heading, text = read_html(markup[body.start() :] if body else markup)
            yield PageContent(part_title(book, heading), text, {"chapter": number, **facts}, part=f"chapter={number}")


def _package_path(archive: ZipFile) -> str:
    for element in ElementTree.fromstring(archive.read(CONTAINER)).iterfind(".//{*}rootfile"):
        return element.get("full-path", "")
    raise BadInput("names no package in its container.xml; expected an EPUB file: repair it")


def _reading_order(package: ElementTree.Element, folder: str) -> Iterator[str]:
    """The paths of the files of the spine that exist, without the table of contents."""
    items = {item.get("id"): item for item in package.iterfind(".//{*}item")}
    for reference in package.iterfind(".//{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is not None and "nav" not in item.get("properties", "").split():
            yield posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))


def _encrypted(archive: ZipFile) -> set[str]:
    """The paths of encrypted files; in many books these are the fonts alone."""
    if ENCRYPTION not in archive.namelist():
        return set()
    references = ElementTree.fromstring(archive.read(ENCRYPTION)).iterfind(".//{*}CipherReference")
    return {unquote(reference.get("URI", "")) for reference in references}


def _first(package: ElementTree.Element, name: str) -> str:
    return next(_all(package, name), "")


def _all(package: ElementTree.Element, name: str) -> Iterator[str]:
    """The values of a field of Dublin Core that are not empty."""
    return filter(None, (one_line(element.text) for element in package.iter(f"{DUBLIN_CORE}{name}")))
