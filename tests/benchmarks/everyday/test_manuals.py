"""Manual pages: rendered text, and a package with pages and links."""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.everyday.apt import run
from benchmarks.everyday.manuals import page, pages
from trilens.errors import BadInput

RENDERED = """TAC(1)                          User Commands                          TAC(1)

NAME
       tac - concatenate and print files in reverse

SYNOPSIS
       tac [OPTION]... [FILE]...

DESCRIPTION
       Write each FILE to standard output, last line first.


       -b, --before
              attach the separator before instead of after; the ‘−’ is a sign

GNU coreutils 9.1               September 2022                         TAC(1)
"""
TROFF = r""".TH CUT "1" "September 2022" "GNU coreutils 9.1" "User Commands"
.SH NAME
cut \- remove sections from each line of files
.SH DESCRIPTION
.\" Add any additional description here
.PP
Print selected parts of lines from each FILE to standard output, which is a paragraph that would not fit on a line of eighty.
.TP
\fB\-b\fR, \fB\-\-bytes\fR=\fI\,LIST\/\fR
select only these bytes
"""


def test_a_page_has_its_name_line_as_title_and_no_margins() -> None:
    document = page("tac(1)", RENDERED)
    assert document.title == "tac - concatenate and print files in reverse"
    assert document.text == (
        "SYNOPSIS\ntac [OPTION]... [FILE]...\n\nDESCRIPTION\nWrite each FILE to standard output, last line first.\n\n"
        "-b, --before\n       attach the separator before instead of after; the '-' is a sign"
    )


def test_a_page_without_a_name_keeps_its_id_as_title() -> None:
    assert page("x(1)", "X(1)\n\nUSAGE\n       x\n\nX(1)").title == "x(1)"


@pytest.mark.skipif(not shutil.which("groff") or not shutil.which("dpkg-deb"), reason="needs groff and dpkg-deb")
def test_pages_of_a_package_are_rendered_without_markup_and_links_are_left_out(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    manuals = tree / "usr" / "share" / "man"
    for section in ("man1", "man3", "man7"):
        (manuals / section).mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text("Package: p\nVersion: 1\nArchitecture: all\nMaintainer: n <n@n>\nDescription: d\n")
    for name in ("man1/cut.1", "man3/cut.3", "man7/cut.7"):
        (manuals / f"{name}.gz").write_bytes(gzip.compress(TROFF.encode()))
    (manuals / "man1" / "clip.1.gz").write_bytes(gzip.compress(b".so man1/cut.1\n"))
    (manuals / "man1" / "snip.1.gz").symlink_to("cut.1.gz")
    subprocess.run(["dpkg-deb", "--build", str(tree), str(tmp_path / "p.deb")], check=True, capture_output=True)
    documents = list(pages(tmp_path / "p.deb"))
    assert [document.doc_id for document in documents] == ["cut(1)", "cut(7)"]
    assert documents[0].title == "cut - remove sections from each line of files"
    assert documents[0].text == (
        "DESCRIPTION\nPrint selected parts of lines from each FILE to standard output, which is a paragraph that would not fit "
        "on a line of eighty.\n\n-b, --bytes=LIST\n       select only these bytes"
    )


def test_a_missing_command_and_a_failing_one_are_named() -> None:
    with pytest.raises(BadInput, match=r"'no-such-command' is not installed"):
        run(["no-such-command"])
    with pytest.raises(BadInput, match=r"^ls failed: .*no-such-file"):
        run(["ls", "/no-such-file"])
