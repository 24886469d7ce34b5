"""The command line as users meet it: what goes to which stream, exit codes, one line for every error."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trilens.cli.main import COMMANDS, load_command

from .conftest import CORPUS, Trilens

CHOICES = ("format", "head", "of", "pooling", "precision")  # the help lists their values
GROUPS = ("cluster",)
NAMES = [name for names in COMMANDS.values() for name in names]


@pytest.fixture
def collection(tmp_path: Path, corpus: Path, trilens: Trilens) -> Path:
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "bm25").code == 0
    return path


def test_index_says_what_it_did_and_again_does_nothing(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    path = tmp_path / "new.trilens"
    first = trilens("index", corpus, "--to", path, "--lens", "bm25", "--json").json
    assert (first["added"], first["unchanged"], first["documents"]) == (3, 0, 3)
    again = trilens("index", corpus, "--to", path, "--json").json
    assert (again["added"], again["unchanged"], again["documents"]) == (0, 3, 3)
    assert trilens("info", path, "--json").json["commit"] == 1


def test_search_in_json_has_the_documented_keys(collection: Path, trilens: Trilens) -> None:
    answer = trilens("search", collection, "delete a directory", "-k", 2, "--json").json
    assert answer["query"] == "delete a directory"
    assert [hit["doc_id"] for hit in answer["hits"]] == ["rmtree", "mkdir"]
    first = answer["hits"][0]
    assert set(first) == {"doc_id", "rank", "score", "weak", "by_lens", "title", "text", "metadata", "passage", "snippet"}
    assert set(first["by_lens"]["bm25"]) == {"score", "rank", "contribution", "standard", "strength"}
    assert (first["by_lens"]["bm25"]["score"], first["by_lens"]["bm25"]["contribution"]) == (first["score"], first["score"])
    assert first["by_lens"]["bm25"]["rank"] == 1
    assert first["metadata"] == {"year": 2021}


def test_both_lenses_are_fused(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    path = tmp_path / "both.trilens"
    assert trilens("index", corpus, "--to", path).code == 0
    (first, *_) = trilens("search", path, "remove a folder and all that is inside", "--json").json["hits"]
    assert first["doc_id"] == "rmtree"
    assert "dense" in first["by_lens"]
    assert re.search(r"\d\.\d+  bm25 .*σ.*  dense .*σ", trilens("search", path, "delete a directory").out)


def test_search_for_people_shows_the_passage_and_a_filter_excludes(collection: Path, trilens: Trilens) -> None:
    outcome = trilens("search", collection, "directory", "--filter", '{"year": {"$lt": 2020}}')
    assert "Create a directory." in outcome.out
    assert "rmtree" not in outcome.out


def test_queries_from_standard_input_give_a_line_each(collection: Path, trilens: Trilens) -> None:
    lines = trilens("search", collection, "-", "--json", stdin="directory\nsquare root\n").out.splitlines()
    assert [json.loads(line)["query"] for line in lines] == ["directory", "square root"]


def test_a_document_cannot_steer_the_terminal(tmp_path: Path, trilens: Trilens) -> None:
    source, path = tmp_path / "evil.jsonl", tmp_path / "evil.trilens"
    source.write_text(json.dumps({"id": "evil\u001b[2J", "text": "bell \u0007 escape \u001b]0;owned\u0007 [red]markup[/red]"}))
    assert trilens("index", source, "--to", path, "--lens", "bm25").code == 0
    outcome = trilens("search", path, "escape")
    assert not {"\u001b", "\u0007"} & set(outcome.out)
    assert "[red]markup[/red]" in outcome.out


def test_a_bad_line_of_standard_input_is_called_that(tmp_path: Path, trilens: Trilens) -> None:
    outcome = trilens("index", "-", "--to", tmp_path / "c", "--lens", "bm25", stdin="{broken\n")
    assert outcome.code == 1
    assert outcome.err.startswith("trilens: standard input:1: broken JSON")


def test_a_long_first_word_is_cut(tmp_path: Path, trilens: Trilens) -> None:
    (tmp_path / "long.txt").write_text("x9z8" * 200 + " endword")
    trilens("index", tmp_path / "long.txt", "--to", tmp_path / "c", "--lens", "bm25")
    assert "x9z8x9z8" in trilens("search", tmp_path / "c", "endword").out


def test_delete_names_what_is_not_there(collection: Path, trilens: Trilens) -> None:
    outcome = trilens("delete", collection, "sqrt", "nothing", "--json")
    assert outcome.json == {"deleted": 1, "missing": ["nothing"], "documents": 2}
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert trilens("delete", collection, "-", "--json", stdin="mkdir\n").json["documents"] == 1


def test_get_check_optimize_info(collection: Path, trilens: Trilens) -> None:
    assert trilens("get", collection, "sqrt", "--json").json["text"] == CORPUS[2]["text"]
    assert trilens("check", collection, "--json").json["problems"] == []
    assert trilens("optimize", collection, "--json").json["segments"] == 1
    info = trilens("info", collection, "--json").json
    assert (info["documents"], info["lenses"]) == (3, ["bm25"])
    assert "documents" in trilens("info", collection).out


def test_check_of_a_changed_file_fails(collection: Path, trilens: Trilens) -> None:
    file = next(collection.glob("segments/*/bm25/postings.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    outcome = trilens("check", collection)
    assert outcome.code == 1
    assert "postings.npy has changed" in outcome.err


BAD_SOURCES = {
    "empty.jsonl": (b"", "holds no record"),
    "broken.jsonl": (b'{"id": "a", "text": "x"}\n{broken\n', "broken.jsonl:2"),
    "twice.jsonl": (b'{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n', "twice.jsonl:1"),
    "no-text.jsonl": (b'{"id": "x"}\n', "--text-field"),
    "binary.txt": (b"\x00\x01\x02", "binary"),
    "surrogate.jsonl": (b'{"id": "a", "text": "\\ud800"}\n', "surrogate U+D800"),
}


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_bad_input_is_one_line_and_changes_nothing(
    name: str, tmp_path: Path, corpus: Path, collection: Path, trilens: Trilens
) -> None:
    content, says = BAD_SOURCES[name]
    (tmp_path / name).write_bytes(content)
    before = trilens("info", collection, "--json").out
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "more", "text": "good"}\n')
    outcome = trilens("index", more, tmp_path / name, "--to", collection)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert says in outcome.err
    assert trilens("info", collection, "--json").out == before
    nowhere = tmp_path / "nowhere.trilens"
    assert trilens("index", tmp_path / name, "--to", nowhere).code == 1
    assert not nowhere.exists()


def test_skip_bad_goes_on(tmp_path: Path, trilens: Trilens) -> None:
    source = tmp_path / "mixed.jsonl"
    source.write_text('{"id": "a", "text": "x"}\n{broken\n{"id": "b", "text": "y"}\n')
    outcome = trilens("index", source, "--to", tmp_path / "c", "--lens", "bm25", "--skip-bad", "--json")
    assert (outcome.json["added"], outcome.json["skipped"]) == (2, 1)
    assert "mixed.jsonl:2" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "", "x"], "no collection"),
        (["search", "C", ""], "query 1 is empty"),
        (["search", "C", "x", "-k", "0"], "k is 0"),
        (["search", "C", "x", "--lens", "zip"], "no lens 'zip'"),
        (["search", "C", "x", "--lens", "bm25,"], "--lens is 'bm25,'"),
        (["search", "C", "x", "--filter", "{"], "is not JSON"),
        (["search", "C", "x", "--filter", '{"a": {"$like": 1}}'], "operator '$like'"),
        (["get", "C", "nothing"], "no document 'nothing'"),
        (["index", "missing", "--to", "C"], "does not exist"),
        (["index", "CORPUS", "--to", "C", "--lens", "dense"], "was created with lenses"),
        (["index", "CORPUS", "--to", "new", "--language", "klingon"], "expected one of none, arabic"),
        (["index", "CORPUS", "--to", "new", "--model", "no-such-model"], "no model 'no-such-model'"),
        (["eval", "CORPUS"], "corpus.jsonl"),
    ],
)
def test_errors_are_one_line(arguments: list[str], says: str, corpus: Path, collection: Path, trilens: Trilens) -> None:
    places = {"C": str(collection), "CORPUS": str(corpus), "new": str(corpus.parent / "new")}
    outcome = trilens(*(places.get(argument, argument) for argument in arguments))
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert says in outcome.err


@pytest.mark.parametrize("arguments", [["frobnicate"], ["search"], ["search", "c", "x", "--no-such-option"]])
def test_a_command_that_is_not_understood_is_2(arguments: list[str], trilens: Trilens) -> None:
    assert trilens(*arguments).code == 2


def test_an_option_given_twice_is_refused(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    """The first value would be dropped without a word."""
    outcome = trilens("index", corpus, "--to", tmp_path / "c", "--lens", "bm25", "--lens", "dense")
    assert outcome.code == 2
    assert "--lens was given 2 times; expected it once: --lens NAME[,NAME]" in outcome.err
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("command", NAMES)
def test_help_has_examples(command: str, trilens: Trilens) -> None:
    outcome = trilens(command, "--help")
    assert outcome.code == 0
    assert f"trilens {command}" in outcome.out.partition("Example")[2]


@pytest.mark.parametrize("command", NAMES)
def test_values_have_names_in_capitals(command: str) -> None:
    """The rest of the help is built from the types of the arguments, which users do not need to know."""
    valued = [parameter for parameter in load_command(command).params if not getattr(parameter, "is_flag", False)]
    unnamed = [
        parameter.name for parameter in valued if not (parameter.metavar or "").isupper() and parameter.name not in CHOICES
    ]
    assert unnamed == []


@pytest.mark.parametrize("command", NAMES)
def test_help_shows_no_types_of_python_and_whole_paragraphs(
    command: str, trilens: Trilens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")  # wider than the source, so that every paragraph is one line
    (usage, *lines) = [line.strip(" │") for line in trilens(command, "--help").out.splitlines() if line.strip()]
    assert not re.search(r"<(bool|str|list|path|int|float)\b", "\n".join(lines))
    arguments = [known for known in load_command(command).params if known.param_type_name == "argument"]
    shown = [known.metavar if known.required else f"[{known.metavar}]" for known in arguments]
    if command in GROUPS:
        shown = ["COMMAND", "[ARGS]..."]
    assert usage.split()[-1 - len(shown) :] == ["[OPTIONS]", *shown]
    paragraphs = inspect.cleandoc(load_command(command).callback.__doc__).split("\n\n")
    prose = [" ".join(paragraph.split()) for paragraph in paragraphs if not paragraph.startswith(" ")]
    assert set(prose) <= set(lines)


def test_help_lists_every_command_once_with_the_first_line_of_its_docstring(trilens: Trilens) -> None:
    shown = " ".join(line.strip(" │") for line in trilens("--help").out.splitlines())
    assert "Start with `trilens demo`, or `trilens index FOLDER --to my.trilens`" in shown
    files = {path.stem for path in Path(load_command.__code__.co_filename).parent.glob("*.py")}
    assert set(NAMES) <= files and len(set(NAMES)) == len(NAMES)
    for name in NAMES:
        summary = load_command(name).help.partition("\n")[0]
        assert summary.split()[0] in shown and f"{name} " in shown
    assert all(f"─ {panel} ─" in shown for panel in COMMANDS)


def test_version_and_help_import_no_command() -> None:
    """They answer at once, and in an installation in which numpy or numba cannot be imported."""
    code = "import sys; from trilens.cli.main import main; sys.argv = ['trilens', {!r}]; main()"
    for option in ("--version", "--help"):
        broken = "import sys; sys.modules.update(dict.fromkeys(('numpy', 'numba', 'onnxruntime', 'trilens.collection')));"
        done = subprocess.run([sys.executable, "-c", broken + code.format(option)], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert "trilens" in done.stdout


def test_without_ir_measures_an_evaluation_names_the_extra(
    tmp_path: Path, trilens: Trilens, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.trec").write_text(f"q Q0 d 1 1.0 {name}\n")
    (tmp_path / "qrels").write_text("q 0 d 1\n")
    arguments = ("compare", tmp_path / "a.trec", tmp_path / "b.trec", "--qrels", tmp_path / "qrels")
    assert trilens(*arguments).code == 0
    monkeypatch.setitem(sys.modules, "ir_measures", None)  # importing it fails
    outcome = trilens(*arguments)
    assert (outcome.code, outcome.err) == (1, "trilens: evaluation needs ir-measures: run `pip install 'trilens[eval]'`\n")


def test_stop_words_alone_find_nothing_and_a_large_k_is_fine(collection: Path, trilens: Trilens) -> None:
    assert trilens("search", collection, "the of and", "--json").json["hits"] == []
    assert len(trilens("search", collection, "directory root", "-k", 1000, "--json").json["hits"]) == 3
