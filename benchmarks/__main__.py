"""Runs a chapter of the benchmark book, then regenerates the tables of README.md, BOOK.md and the model card."""

import argparse
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.record import ROOT

DATA = "$TRILENS_DATA"


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter: `runs` are modules with arguments, extended by those of the user; `before` are preparation steps."""

    what: str
    needs: str
    takes: str
    runs: tuple[tuple[str, ...], ...]
    before: tuple[tuple[str, ...], ...] = ()


CHAPTERS = {
    "bm25": Chapter(
        "BM25 against bm25s and tantivy",
        f"{DATA}/debian-en.jsonl.xz",
        "10 minutes",
        (("bm25",), ("bm25", "--grow", "1000000")),
    ),
    "sparse": Chapter(
        "learned sparse vectors against scipy, splade-index and Seismic",
        f"{DATA}/debian-en.jsonl.xz",
        "40 minutes the first time (encoding the corpus), then 20",
        (("sparse", "--shape", "vdr"), ("sparse", "--shape", "splade")),
        before=(("sparse_vectors", "--to", "runs/sparse/debian-en", "--characters", "240"),),
    ),
    "multi": Chapter(
        "token vectors against fast-plaid and xtr-warp-rs",
        f"{DATA}/squad-retrieval",
        "2 hours the first time (peers build indexes), then 30 minutes",
        (("multi", "--documents", "5000", "--threads", "1"), ("multi", "--documents", "5000", "--threads", "2")),
    ),
    "dense": Chapter(
        "dense vectors against faiss", f"{DATA}/debian-en.jsonl.xz", "20 minutes the first time, then a minute", (("dense",),)
    ),
    "encode": Chapter(
        "the encoder against sentence-transformers",
        f"{DATA}/cranfield; $TRILENS_CHECKPOINT, the weights of the bundled model",
        "20 minutes",
        (("encode",),),
    ),
    "train": Chapter("the vocabulary head in training", "pip install trilens[train]", "10 minutes", (("train",),)),
    "serve": Chapter("the service under load", f"{DATA}/debian-en.jsonl.xz", "15 minutes", (("serve",),)),
    "soak": Chapter(
        "the service under everything at once, for a long time", f"{DATA}/debian-en.jsonl.xz", "32 minutes", (("soak",),)
    ),
    "store": Chapter("opening a collection", f"{DATA}/debian-en.jsonl.xz", "2 minutes", (("store",),)),
    "readers": Chapter("HTML, Markdown and passages on pathological input", "nothing", "1 minute", (("readers",),)),
    "install": Chapter(
        "the size of an installation and the start of commands",
        "the package index; --before, another checkout",
        "5 minutes",
        (("install",),),
    ),
    "newcomer": Chapter(
        "the time until a new user sees a first answer",
        "the package index; --before, another checkout",
        "10 minutes",
        (("newcomer",),),
    ),
    "endtoend": Chapter(
        "whole systems: trilens, bm25s, Pyserini, PyLate, txtai",
        f"{DATA}/squad-retrieval; $TRILENS_CHECKPOINT, the weights of the bundled model; Java 21 for Pyserini",
        "35 minutes",
        (("endtoend",),),
    ),
    "growth": Chapter(
        "BM25 and token vectors as a collection grows",
        f"{DATA}/debian-en.jsonl.xz, {DATA}/squad-retrieval",
        "2 hours the first time",
        (
            ("bm25", "--systems", "trilens", "--grow", "125000", "250000", "500000", "1000000"),
            ("multi", "--grow"),
        ),
    ),
    "quality": Chapter(
        "every lens and fusion on ten judged collections",
        DATA,
        "hours the first time (encoding every corpus), then 30 minutes",
        (("quality",),),
    ),
    "everyday": Chapter(
        "everyday questions over three collections that every Debian machine can build",
        "Debian's package lists, through apt; groff",
        "10 minutes the first time (encoding the collections), then seconds",
        (("everyday",),),
        before=(("everyday.build", "--to", "runs/everyday/corpora"),),
    ),
    "reference": Chapter(
        "the checkpoint of the bundled dense vectors, float32 in torch",
        f"{DATA}; $TRILENS_CHECKPOINT, the weights of the bundled model",
        "1 hour",
        (("reference",),),
    ),
    "trees": Chapter(
        "two checkouts of trilens against each other",
        f"{DATA}/cranfield; --other, another checkout",
        "5 minutes the first time (encoding the corpus), then 2",
        (("trees",),),
    ),
    "words": Chapter("terms that everyday sentences activate", "nothing", "seconds", (("words",),)),
    "ablations": Chapter("ablations of single settings of the lenses", f"{DATA}/cranfield", "15 minutes", (("ablations",),)),
    "recipes": Chapter(
        "every training recipe and its variants",
        "pip install trilens[train]; --data, --backbone",
        "days",
        (("recipes",),),
    ),
    "token-training": Chapter(
        "XTR training against MaxSim training at few probes",
        f"{DATA}/squad-retrieval; the runs of recipes",
        "15 minutes",
        (("token_training",),),
    ),
}
SPEED = ("bm25", "sparse", "multi", "dense", "encode", "train", "serve", "store", "readers", "endtoend", "growth")


def listing() -> str:
    """List all chapters with their requirements and run times."""
    lines = []
    for name, chapter in CHAPTERS.items():
        lines += [f"  {name:15} {chapter.what}", f"{'':18}needs {chapter.needs}; takes {chapter.takes}"]
    lines.append(f"  {'speed':15} all of {', '.join(SPEED)}")
    return "\n".join(lines)


def run(name: str, more: list[str]) -> int:
    """Run the scripts of a chapter until one fails; return its exit code."""
    chapter = CHAPTERS[name]
    for module, *arguments in (*chapter.before, *((*command, *more) for command in chapter.runs)):
        print(f"{name}: python -m benchmarks.{' '.join([module, *arguments])}", file=sys.stderr)
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


def main() -> None:
    """Run a chapter; with `speed`, run all speed chapters and report failures at the end."""
    parser = argparse.ArgumentParser(
        prog="./scripts/bench",
        description=f"{__doc__}\n\nchapters:\n{listing()}",
        epilog="Other arguments are passed to the chapter's script: ./scripts/bench bm25 --help. $TRILENS_DATA is the data "
        "folder, $TRILENS_CHECKPOINT the checkpoint for peers, $TRILENS_PEERS the folder of the peers' environments, "
        "$TRILENS_RESULTS an alternative folder for trial results.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("chapter", choices=[*CHAPTERS, "speed"], metavar="CHAPTER")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the chapter's script")
    options = parser.parse_args()
    if {"-h", "--help"} & set(options.arguments) and options.chapter != "speed":
        module, *_ = CHAPTERS[options.chapter].runs[0]
        sys.exit(subprocess.run([sys.executable, "-m", f"benchmarks.{module}", "--help"], cwd=ROOT, check=False).returncode)
    names = SPEED if options.chapter == "speed" else (options.chapter,)
    failed = [name for name in names if run(name, options.arguments)]
    tables = subprocess.run([sys.executable, "-m", "benchmarks.tables"], cwd=ROOT, check=False)
    if failed or tables.returncode:
        sys.exit(f"failed: {', '.join(failed) or 'tables'}; finished measurements are recorded")


if __name__ == "__main__":
    main()
