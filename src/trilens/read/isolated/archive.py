"""ZIP archives (DOCX, PPTX, XLSX, EPUB): checks before a parser unpacks them, and the properties of Office files."""

from contextlib import suppress
from datetime import datetime
from typing import NamedTuple
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from trilens.errors import BadInput, Unreadable
from trilens.read.decode import DAMAGED
from trilens.read.described import moment, one_line
from trilens.read.isolated.local_file import LocalFile
from trilens.read.limits import MIB

COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the container of old Office files, and of encrypted present ones
ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
ENCRYPTED = "encrypted"  # a reason for which files are skipped
CORE_PROPERTIES = "docProps/core.xml"


class OfficeProperties(NamedTuple):
    """The properties of an Office file; empty if the file does not have them."""

    title: str = ""
    author: str = ""
    date: str = ""


def encrypted() -> Unreadable:
    """The error for a file with a password."""
    message = "is encrypted; expected a file without a password: remove it in the program that made the file"
    return Unreadable(message, ENCRYPTED)


def check_archive(file: LocalFile) -> None:
    """Refuse files that are encrypted, no archive, or an archive that unpacks to more than the limit."""
    raw = file.path.read_bytes()
    if raw.startswith(COMPOUND_FILE):
        if ENCRYPTED_PACKAGE in raw:
            raise encrypted()
        raise BadInput("has the format of Office 97-2003; expected a present one: save it as DOCX, PPTX or XLSX")
    try:
        with ZipFile(file.path) as archive:
            members = archive.infolist()
    except BadZipFile as error:
        raise Unreadable(f"is damaged or cut short ({error}); expected a ZIP archive: copy it again", DAMAGED) from error
    if any(member.flag_bits & 1 for member in members):
        raise encrypted()
    if sum(member.file_size for member in members) > file.limits.unpacked_bytes:
        raise BadInput(f"unpacks to more than {file.limits.unpacked_bytes // MIB:,} MiB; split it, or leave it out")


def office_properties(file: LocalFile) -> OfficeProperties:
    """The properties of a DOCX, PPTX or XLSX file. The libraries invent some, such as a date, where a file has none."""
    with ZipFile(file.path) as archive:
        if CORE_PROPERTIES not in archive.namelist():
            return OfficeProperties()
        root = ElementTree.fromstring(archive.read(CORE_PROPERTIES))
    title, author, modified, created = (
        one_line(root.findtext(f"{{*}}{name}")) for name in ("title", "creator", "modified", "created")
    )
    with suppress(ValueError):
        return OfficeProperties(title, author, moment(datetime.fromisoformat(modified or created)))
    return OfficeProperties(title, author)
