import io

from trilens.read.formats import InputFile, PageContent
from trilens.read.source_code import LANGUAGES, LARGEST_GROUP_LINES, read_blocks, read_source_code


def function(name: str, lines: int) -> str:
    body = "\n\n".join(f"  step({number});" for number in range((lines - 1) // 2))
    return f"function {name}() {{\n{body}\n}}"


def test_blocks_are_grouped_and_named_by_their_first_line() -> None:
    long = function("long", 2 * LARGEST_GROUP_LINES)
    source = f"// head\n\nlet a = 1\n\n{long}\n\nlet b = 2\n"
    after = source[: source.index("let b")].count("\n") + 1
    assert list(read_blocks(source, "a.js", "javascript")) == [
        PageContent("a.js", "// head\n\nlet a = 1", {"language": "javascript", "line": 1}, "L1"),
        PageContent("a.js", long, {"language": "javascript", "line": 5}, "L5"),
        PageContent("a.js", "let b = 2", {"language": "javascript", "line": after}, f"L{after}"),
    ]


def test_a_short_file_is_one_document_without_a_part() -> None:
    (content,) = read_source_code(InputFile(io.BytesIO(b"\n\nint main() {\n\n}\n"), "/a.C", "src/a.C.gz"))
    assert content == PageContent("a.C.gz", "int main() {\n\n}", {"language": "c", "line": 3})
    assert list(read_blocks("\n \n", "a", "c")) == []


def test_no_line_is_lost() -> None:
    source = "\n\n".join(function(f"f{number}", number) for number in range(3, 60, 7))
    texts = [content.text for content in read_blocks(source, "a.js", "javascript")]
    assert "\n\n".join(texts) == source


def test_suffixes_have_one_language_each() -> None:
    assert (LANGUAGES[".rs"], LANGUAGES[".hpp"], LANGUAGES[".tsx"]) == ("rust", "c++", "typescript")
    assert all(suffix == suffix.lower() and language for suffix, language in LANGUAGES.items())
