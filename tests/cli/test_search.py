"""The command `search` as people read it: width, marks, links, pages and weak matches."""

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from trilens import Collection, Document
from trilens.cli.hits import bar, print_hits, side_by_side
from trilens.search.hits import Hit, LensScore, Snippet

from .conftest import Trilens

LONG = "The engine of the ship broke down near the coast, 東京 far away, and nobody knew how to repair the old engine. " * 3


def shown(hits: list[Hit], width: int = 80, terminal: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    print_hits(hits, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def hit(
    doc_id: str = "d", strength: float | None = None, text: str = LONG, title: str = "A title", path: str | None = None
) -> Hit:
    seen = {
        name: LensScore(1.5 + place, place + 1, 0.01, standard, strength)
        for place, (name, standard) in enumerate(
            {"bm25": 3.1, "dense": 1.2, "sparse": -0.4, "lexical": 0.0, "multi": 9.0}.items()
        )
    }
    start = text.find("engine")
    snippet = Snippet(text, 0, len(text), ((start, start + 6),) if start >= 0 else ())
    document = Document(doc_id, text, title, {"path": path} if path else {})
    return Hit(doc_id, 21, 0.05, document, seen, 0, len(text), snippet)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    hits = [hit(), hit("guide/a-long-path/of.md", title="A very long title 東京 " * 10), hit(strength=0.5, text="短い。" * 100)]
    for line in shown(hits, width, terminal=False).splitlines():
        assert cell_len(line.rstrip()) <= width
    # The lines of a snippet use the width: the terminal does not wrap them again.
    lines = [line.rstrip() for line in shown([hit()], width, terminal=False).splitlines() if "ship" in line]
    assert max(map(cell_len, lines)) > width - 16


def test_matches_are_bold_in_a_terminal_only() -> None:
    assert "\x1b[1mengine\x1b[0m of the ship" in shown([hit()])
    assert "\x1b" not in shown([hit()], terminal=False)


def in_a_column(hit: Hit) -> str:
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system="standard")
    console.print(side_by_side({"bm25": [hit]}))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_column_shows_its_first_match_in_bold_unless_it_is_weak() -> None:
    assert "The \x1b[0m\x1b[1;39mengine\x1b[0m" in in_a_column(hit())
    late = in_a_column(hit(text="Nothing to see here. " * 8 + "At last the engine broke down." + " Nothing more." * 9))
    assert "\x1b[39m… \x1b[0m\x1b[1;39mengine\x1b[0m\x1b[39m broke down. Nothing" in late and late.count("…") == 2
    assert "engine" in in_a_column(hit(strength=0.5)) and "1;39m" not in in_a_column(hit(strength=0.5))
    assert "…" not in in_a_column(hit(text="A short engine."))


def test_weak_matches_are_marked_as_weak() -> None:
    weak, strong = hit("w", strength=0.9), hit("s", strength=1.1)
    assert "no document matches well" in shown([weak, weak])
    both = shown([weak, strong])
    assert "no document matches well" not in both
    assert both.count("weak match") == 1
    assert "\x1b[1mengine" not in shown([weak])


def test_bars_show_standard_deviations() -> None:
    assert [bar(value) for value in (-1.0, 0.0, 1.0, 2.5, 5.0, 9.0)] == ["     ", "     ", "█    ", "██▌  ", "█████", "█████"]
    assert "bm25 ███▏  +3.1σ #1" in shown([hit()], terminal=False)


def test_a_document_with_a_file_is_a_link(tmp_path: Path) -> None:
    file = tmp_path / "a b.md"
    file.write_text("text")
    assert "\x1b]8;id=" in (linked := shown([hit(path=str(file))])) and file.as_uri() in linked
    assert file.as_uri() in shown([hit(str(file))])  # the id is a path
    assert "\x1b]8" not in shown([hit(path=str(tmp_path / "gone.md"))])
    assert "\x1b]8" not in shown([hit(path=str(file))], terminal=False)


def test_pages_are_slices_of_one_ranking(tmp_path: Path, trilens: Trilens) -> None:
    path = tmp_path / "c"
    with Collection.create(path, lenses=["bm25"]) as collection:
        collection.add(Document(f"d{i:02}", "engine " * (i + 1) + "oil " * (30 - i)) for i in range(30))
    whole = trilens("search", path, "engine", "-k", "30", "--json").json["hits"]
    for offset in (0, 10, 25):
        page = trilens("search", path, "engine", "-k", "10", "--offset", str(offset), "--json").json["hits"]
        assert page == whole[offset : offset + 10]
    assert trilens("search", path, "engine", "--offset", "30").out == "no further document matches\n"
    assert trilens("search", path, "unicorn").out == "no document matches\n"


def test_snippets_are_optional(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    trilens("index", corpus, "--to", tmp_path / "c", "--lens", "bm25")
    [plain] = trilens("search", tmp_path / "c", "square root", "--no-details", "--json").json["hits"]
    assert (plain["snippet"], plain["weak"]) == (None, None)
    [found] = trilens("search", tmp_path / "c", "square root", "--json").json["hits"]
    assert [found["snippet"]["text"][start:end] for start, end in found["snippet"]["matches"]] == ["square", "root"]
    assert "Return the square root of x." in trilens("search", tmp_path / "c", "square root", "--no-details").out


def test_get_does_not_wrap_for_programs(tmp_path: Path, trilens: Trilens) -> None:
    with Collection.create(tmp_path / "c", lenses=["bm25"]) as collection:
        collection.add([Document("d", LONG + "\nLast.")])
    assert trilens("get", tmp_path / "c", "d").out == f"d\n{LONG}\nLast.\n"
