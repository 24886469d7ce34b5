"""Builds the collections of the everyday questions in the BEIR layout.

    python -m benchmarks.everyday.build --to runs/everyday/corpora

Collections: `stdlib`, the docstrings of the running Python's standard library as in `trilens demo`; `manuals`, the manual pages
of coreutils and git; `debian`, the descriptions of programs in Debian. The last two need a Debian machine with groff (package
groff-base); package lists are fetched through apt into the folder, without root and without changing the machine.
`about.json` records the number of documents, the hash of the corpus and the versions.
"""

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.everyday import debian, manuals
from benchmarks.everyday.apt import Apt
from benchmarks.record import file_hash
from trilens.errors import TrilensError
from trilens.read.python_docs import standard_library
from trilens.text.document import Document

Built = tuple[str, list[Document]]


def build_stdlib(apt: Apt) -> Built:
    """The standard library."""
    return f"Python {platform.python_version()}", list(standard_library())


def build_manuals(apt: Apt) -> Built:
    """The manual pages."""
    apt.update()
    files = [apt.download(name) for name in manuals.PACKAGES]
    documents = {document.doc_id: document for file in files for document in manuals.pages(file)}
    return ", ".join(file.stem for file in files), [documents[doc_id] for doc_id in sorted(documents)]


def build_debian(apt: Apt) -> Built:
    """The package descriptions."""
    apt.update()
    documents = list(debian.programs(apt.lists("Packages"), apt.lists("Translations")))
    return f"Debian {platform.freedesktop_os_release().get('VERSION_ID', 'testing')}", documents


COLLECTIONS: dict[str, Callable[[Apt], Built]] = {"stdlib": build_stdlib, "manuals": build_manuals, "debian": build_debian}


def corpus_path(folder: Path, name: str) -> Path:
    """Path of a built corpus."""
    return folder / name / "corpus.jsonl"


def write(folder: Path, name: str, source: str, documents: Iterable[Document]) -> int:
    """Write a corpus and what it is; return the number of documents."""
    path = corpus_path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"_id": document.doc_id, "title": document.title, "text": document.text}, ensure_ascii=False)
        for document in documents
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    about = {"collection": name, "source": source, "documents": len(lines), "hash": file_hash(path)}
    (path.parent / "about.json").write_text(json.dumps(about) + "\n", encoding="utf-8")
    return len(lines)


def main() -> None:
    """Build what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, help="folder of the collections")
    parser.add_argument("--only", nargs="+", choices=COLLECTIONS, default=list(COLLECTIONS))
    parser.add_argument("--again", action="store_true", help="build collections that exist, too")
    options = parser.parse_args()
    apt = Apt((options.to / "apt").absolute())
    try:
        for name in options.only:
            if options.again or not corpus_path(options.to, name).exists():
                source, documents = COLLECTIONS[name](apt)
                print(f"{name}: {write(options.to, name, source, documents):,} documents of {source}")
    except TrilensError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
