"""The time until a new user sees a first answer.

    ./scripts/bench newcomer
    ./scripts/bench newcomer --before ../trilens-before

Two ways, for this tree and for another one. A clone of the tree is installed and asked by `./scripts/demo`, whose output is no
terminal, so that it ends without a web page. A wheel of the tree is installed with its default dependencies and indexes a
folder, which is then searched. Installations, home folders and therefore the caches of compiled kernels are fresh in every
repeat. pip keeps its settings and its package cache, which the trees share; the trees take turns.
The folder has a page for each module of the running Python's standard library, made of its docstrings: those with the longest
texts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from benchmarks.fresh import Stopwatch, Usage, add_before, answers, build, environment, install, trees
from benchmarks.record import commit_of, record, spread, started
from trilens.read.python_docs import standard_library

DOCUMENTS = 300
QUESTION = "remove a folder and everything inside it"

Usages = dict[str, Usage]


def pages() -> dict[str, str]:
    """File name → a page of Markdown on a module of the standard library."""
    sections = defaultdict(list)
    for document in standard_library():
        sections[document.metadata["module"]].append(f"## {document.title}\n\n{document.text}\n")
    texts = {f"{module}.md": f"# {module}\n\n" + "\n".join(parts) for module, parts in sections.items()}
    longest = sorted(texts, key=lambda name: (-len(texts[name]), name))[:DOCUMENTS]
    return {name: texts[name] for name in sorted(longest)}


def trial(tree: Path, documents: Path, folder: Path) -> Usages:
    """One new user: the steps with their usage."""
    clone, home = folder / "clone", folder / "home"
    home.mkdir()
    subprocess.run(["git", "-c", "advice.detachedHead=false", "clone", "--quiet", tree, clone], check=True)
    return dict((*_by_clone(clone, home), *_by_wheel(build(clone, folder), documents, folder, home)))


def _by_clone(clone: Path, home: Path) -> Iterator[tuple[str, Usage]]:
    python = {"PYTHON": sys.executable}
    watch = Stopwatch()
    subprocess.run(["bash", "-c", ". scripts/venv serve"], cwd=clone, env=environment() | python, check=True)
    yield "clone_install", watch.ended()
    _, first, last = answers(["./scripts/demo", QUESTION], clone, environment(home) | python)
    yield "demo_first", first
    yield "demo_all", last


def _by_wheel(wheel: Path, documents: Path, folder: Path, home: Path) -> Iterator[tuple[str, Usage]]:
    watch = Stopwatch()
    programs, _ = install(wheel, folder / "environment")
    yield "wheel_install", watch.ended()
    trilens = programs / "trilens"
    for step, words in (("index", ["index", documents, "--to", "c.trilens"]), ("search", ["search", "c.trilens", QUESTION])):
        _, _, last = answers([trilens, *words], folder, environment(home))
        yield step, last


def main() -> None:
    """Measure this tree, and another one if it is given, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_before(parser)
    parser.add_argument("--repeats", type=int, default=3, help="new users of each tree")
    options = parser.parse_args()
    run, load, texts, measured = started(), os.getloadavg()[0], pages(), trees(options.before)
    usages: dict[str, list[Usages]] = {name: [] for name in measured}
    for _ in range(options.repeats):
        for name, tree in measured.items():
            with tempfile.TemporaryDirectory() as temporary:
                documents = Path(temporary) / "documents"
                documents.mkdir()
                for page, text in texts.items():
                    (documents / page).write_text(text, encoding="utf-8")
                usages[name].append(trial(tree, documents, Path(temporary)))
    facts = {
        "run": run,
        "load": round(load, 2),
        "data": blake2b("".join(texts.values()).encode(), digest_size=8).hexdigest(),
        "documents": len(texts),
        "characters": sum(map(len, texts.values())),
        "threads": os.cpu_count(),
        "seed": None,
        "repeats": options.repeats,
    }
    for name, trials in usages.items():
        times: dict[str, float] = {}
        for step in trials[0]:
            times |= spread(f"{step}_wall", [steps[step].wall for steps in trials], 2)
            times |= spread(f"{step}_cpu", [steps[step].cpu for steps in trials], 2)
        record("newcomer", **facts, tree=name, tree_commit=commit_of(measured[name]), **times)


if __name__ == "__main__":
    main()
