"""A folder of more than forty files that break careless readers, and what is to be said of them."""

import bz2
import gzip
import json
import os
import random
import socket
from pathlib import Path

PLAIN = {
    "good.txt": b"plain words",
    "latin.txt": "Die Straße nach Köln ist schön, größer und länger.".encode("latin-1"),
    "windows.md": "# Café\n\nIt’s a “quoted” text – really.".encode("cp1252"),
    "utf16.txt": "written on Windows".encode("utf-16"),
    "utf16-unmarked.txt": "written on Windows, without a mark".encode("utf-16-le"),
    "utf32.txt": "written by nobody".encode("utf-32"),
    "japanese.txt": "日本語のテキストファイルです。漢字とひらがな、カタカナ。".encode("shift_jis"),
    "russian.txt": "Съешь же ещё этих мягких французских булок, да выпей чаю.".encode("koi8-r"),
    "declared.html": '<meta charset="iso-8859-5"><p>привет</p>'.encode("iso-8859-5"),
    "bom.txt": b"\xef\xbb\xbfmarked",
    "umlauts.csv": "text,year\nschöne Größe,2020\n".encode("cp1252"),
    "no-ids.jsonl": b'{"text": "one"}\n{"text": "two"}\n',
    "crlf.txt": b"a\r\nb\rc\n",
    "deep.html": b"<div>" * 5000 + b"deep words",
    "unclosed.html": b"<p>words <a <b <![CDATA[ <!-- ",
    "quotes.md": b">" * 3000 + b" quoted",
    "brackets.md": b"[" * 3000,
    "front.md": b"---\ntitle: [unclosed\n---\nbody words",
    "new\nline.txt": b"a name of two lines",
    "-rf.txt": b"a name like an option",
    "long" + "g" * 240 + ".txt": b"a long name",
    "one-line.txt": b"word " * 20_000,
}
MALFORMED = {
    "deep.json": b"[" * 100_000,
    "broken.json": b'[{"id": 1, "text": "t"',
    "huge-number.json": b"1" * 10_000,
    "unquoted.csv": b'id,text\n1,"a\n',
    "twice.csv": b"id,text,text\n1,a,b\n",
}
NOT_TEXT = {"binary.txt": bytes(range(256)) * 20, "program.md": b"\x7fELF\x02\x01\x01\0\0\0" * 20}
EMPTY = {
    "empty.md": b"",
    "blank.txt": b" \n\t",
    "empty.jsonl": b"",
    "head.csv": b"id,text\n",
    "script.html": b"<script>x</script>",
}
DAMAGED = {
    "cut.jsonl.gz": gzip.compress(random.Random(0).randbytes(1000))[:60],
    "fake.jsonl.bz2": b"not compressed",
    "cut.csv.bz2": bz2.compress(bytes(range(256)) * 100)[:100],
}
WITHOUT_TEXT = {
    "package.json": b'{"name": "left-pad", "version": "1.0"}',
    "settings.jsonl": b'{"a": 1}\n{"a": 2}\n' * 200,
    "numbers.csv": b"a,b\n1,2\n",
}
OTHER = {"picture.png": b"\x89PNG\r\n\x1a\n\0", "photo.PNG": b"\x89PNG\r\n\x1a\n\0", "no suffix": b"?"}
LEFT_OUT = {
    ".hidden.txt": b"hidden",
    "node_modules/left-pad/readme.md": b"# Left pad",
    "environment/pyvenv.cfg": b"home = /usr/bin",
    "ignored/a.txt": b"ignored",
    "ignored.log.txt": b"ignored",
}
IGNORE_FILE = "ignored/\n*.log.txt\n!kept.log.txt\n"
KEPT = {"kept.log.txt": b"kept by a negation"}
SUMMARY = [
    "skipped 29 files: 5 empty, 5 malformed, 3 damaged, 3 dangling link, 3 pipe, socket or device, 3 without a text field, "
    "2 not text, 1 link loop, 1 not an object, 3 without a reader: .png 2, no suffix 1",
    "left out 3 files and 3 folders: hidden, ignored, excluded or beside a BEIR corpus",
]


def make_nasty(folder: Path) -> int:
    """Make the folder; returns the number of documents in it."""
    files = PLAIN | MALFORMED | NOT_TEXT | EMPTY | DAMAGED | WITHOUT_TEXT | OTHER | LEFT_OUT | KEPT
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / ".gitignore").write_text(IGNORE_FILE)
    (folder / "scalar.json").write_text(json.dumps(5))
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")).write_bytes(b"a name in Latin-1")
    (folder / "nowhere.txt").symlink_to("gone.txt")
    (folder / "nowhere.jsonl").symlink_to("/nonexistent/gone.jsonl")
    (folder / "nowhere.csv").symlink_to("folder/gone.csv")
    (folder / "self.txt").symlink_to("self.txt")
    (folder / "up").symlink_to(folder)
    (folder / "null.txt").symlink_to("/dev/null")
    os.mkfifo(folder / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # the address of a socket is a short path
        listening.bind("socket.txt")
        os.chdir(here)
    deepest = folder
    for _ in range(180):
        deepest = deepest / "down"
    deepest.mkdir(parents=True)
    (deepest / "bottom.txt").write_bytes(b"at the bottom")
    return len(PLAIN) + len(KEPT) + 3  # no-ids.jsonl has two, and there are café and the bottom
