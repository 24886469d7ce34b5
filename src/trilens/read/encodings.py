"""Detection of text encodings: byte order marks, UTF-8, declared encodings, UTF-16, and the usual 8-bit and East Asian ones."""

import codecs
import re
from collections.abc import Iterator

from charset_normalizer import from_bytes

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LONGEST_MARK = 4
NAMES = "cp1252 cp1250 iso8859_2 cp1251 koi8_r cp1253 cp1254 cp1255 cp1256 cp932 euc_jp gb18030 big5 cp949"
CANDIDATES = NAMES.split()
WESTERN = "cp1252"
DECLARATION = re.compile(rb"(?:charset|coding|encoding)\s*[=:]\s*[\"']?([-\w.]+)")
DECLARATION_BYTES = 2048  # a declaration is at the start of a file
SAMPLE_BYTES = 1 << 15
FEW_BYTES = 4  # distinct bytes outside ASCII; fewer are no evidence of a language
FEWEST_ZEROS = 8  # in UTF-16 without a byte order mark
CONTROLS = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
CONTROLS_PER_CHARACTER = 0.001


def marked_encoding(start: bytes) -> str | None:
    """The encoding that a byte order mark names; None without one."""
    return next((encoding for mark, encoding in MARKS if start.startswith(mark)), None)


def detect(raw: bytes) -> str | None:
    """The encoding of a text as a codec name; None if the bytes are no text. UTF-8 wins if the bytes are valid."""
    return next((encoding for encoding in _guesses(raw) if _is_text(raw, encoding)), None)


def detect_lines(raw: bytes) -> str | None:
    """The encoding of some lines that are not UTF-8 and have no byte order mark."""
    return next((encoding for encoding in _by_language(raw) if _is_text(raw, encoding)), None)


def _guesses(raw: bytes) -> Iterator[str]:
    marked = marked_encoding(raw)
    if marked is not None:
        yield marked
    if b"\0" in raw:
        # ASCII characters in UTF-16 have a zero in their high byte.
        low, high = raw[::2].count(0), raw[1::2].count(0)
        if max(low, high) >= FEWEST_ZEROS:
            yield "utf-16-le" if high > low else "utf-16-be"
        return
    yield "utf-8"
    yield from (name.decode() for name in DECLARATION.findall(raw[:DECLARATION_BYTES]))
    yield from _by_language(raw)


def _by_language(raw: bytes) -> Iterator[str]:
    """Encodings in which the lines with bytes outside ASCII read like a language."""
    if _is_little_evidence(raw):
        yield WESTERN
    matches = from_bytes(_sample(raw), cp_isolation=CANDIDATES)
    names = [match.encoding for match in matches]
    if WESTERN in names and names[0] in ("cp1250", "iso8859_2"):
        # They share most letters, and Western texts are far more frequent.
        yield WESTERN
    yield from names


def _is_little_evidence(raw: bytes) -> bool:
    """Whether few bytes are outside ASCII and none are adjacent, as in an English text with a name in it."""
    outside = re.findall(rb"[\x80-\xff]+", raw)
    return all(len(run) == 1 for run in outside) and len(set(outside)) < FEW_BYTES


def _sample(raw: bytes) -> bytes:
    """The first lines with bytes outside ASCII: the others say nothing about the encoding."""
    lines = re.finditer(rb"[^\n]*[\x80-\xff][^\n]*\n?", raw)
    sample = bytearray()
    for line in lines:
        sample += line.group()
        if len(sample) >= SAMPLE_BYTES:
            break
    return bytes(sample)


def _is_text(raw: bytes, encoding: str) -> bool:
    try:
        text = raw.decode(encoding)
    except (UnicodeError, LookupError):
        return False
    if "\0" in text:
        return False
    if encoding.startswith("utf-16-") and any(not (character.isprintable() or character.isspace()) for character in text):
        return False
    return encoding == "utf-8" or len(CONTROLS.findall(text)) <= CONTROLS_PER_CHARACTER * len(text)
