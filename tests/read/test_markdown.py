import pytest

from trilens.read.markdown import read_markdown


def text(source: str) -> str:
    return read_markdown(source)[1]


def test_the_front_matter_gives_the_title_and_the_metadata() -> None:
    source = "---\ntitle: Of the page\nyear: 2020\n---\n# Heading\nWords.\n"
    assert read_markdown(source) == ("Of the page", "Heading\nWords.", {"year": 2020})


@pytest.mark.parametrize(
    ("source", "title"),
    [
        ("intro\n\n## First `code` heading ##\n\n# Second", "First code heading"),
        ("A title\n=======\ntext", "A title"),
        ("A title\n---\ntext", "A title"),
        ("# C#\n", "C#"),
        ("#hashtag is no heading", ""),
        ("```\n# a comment\n```\n# Real", "Real"),
    ],
)
def test_the_first_heading_is_the_title(source: str, title: str) -> None:
    assert read_markdown(source)[0] == title


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("**bold**, *slanted*, __bold__, _slanted_, ***both***, ~~gone~~", "bold, slanted, bold, slanted, both, gone"),
        ("snake_case_name and 2 * 3 * 4 and __dunder", "snake_case_name and 2 * 3 * 4 and __dunder"),
        ("`a_b*c*` and ``x ` y``", "a_b*c* and x ` y"),
        ('[text](http://x.org/a_(b) "title") and [ref][1] and [`code`](y.md)\n\n[1]: z.md', "text and ref and code"),
        ("[text][undefined] and [undefined]", "[text][undefined] and [undefined]"),
        ("![alt text](image.png) [![badge](b.svg)](link)", "alt text badge"),
        ("<https://x.org> and <me@x.org>", "https://x.org and me@x.org"),
        ("a<br>b <span class='x'>c</span> <!-- no --> d", "ab c  d"),
        (r"\*not slanted\* and \[x\](y)", "*not slanted* and [x](y)"),
        ("R&amp;D &copy; `&amp;`", "R&D © &amp;"),
        ("a footnote[^1] here", "a footnote here"),
        ("array[0] and f(x)", "array[0] and f(x)"),
    ],
)
def test_inline_marks_go_and_words_stay(source: str, plain: str) -> None:
    assert text(source) == plain


def test_blocks_lose_their_marks() -> None:
    source = """# Title

> quoted
> text

- one
* two
  - [x] done
1. first

***

| a | b |
|---|:-:|
| 1 | **2** |

[ref]: http://x.org "title"
[^1]: The note.
"""
    assert text(source) == "Title\n\nquoted\ntext\n\none\ntwo\n  done\n1. first\n\na  b\n1  2\n\nThe note."


def test_code_is_kept_as_it_is() -> None:
    source = "See:\n\n```python\ndef f(*args, **kw):  # [x](y)\n    return `a`\n```\n\n    indented __init__\n\ndone *now*\n"
    assert text(source) == "See:\n\ndef f(*args, **kw):  # [x](y)\n    return `a`\n\n    indented __init__\n\ndone now"


def test_a_fence_inside_a_quote_or_a_list_ends_there() -> None:
    assert text("> ```\n> code\n> ```\n> *a*\n") == "code\na"
    assert text("1. do\n\n    ```\n    x = *y\n    ```\n\n*after*") == "1. do\n\n    x = *y\n\nafter"


def test_a_longer_fence_may_hold_a_shorter_one() -> None:
    assert text("````\n```\n# no heading\n```\n````\n# Yes") == "```\n# no heading\n```\nYes"


def test_indented_text_of_a_list_item_is_prose() -> None:
    assert text("- item\n\n    more *of it*\n") == "item\n\n    more of it"


def test_links_and_emphasis_may_cross_a_line_end() -> None:
    assert text("a [long\nlink](x) and **very\nbold** text") == "a long\nlink and very\nbold text"


def test_a_comment_over_several_paragraphs_is_dropped() -> None:
    assert text("a\n\n<!-- one\n\ntwo -->\n\nb") == "a\n\nb"


def test_html_blocks_give_their_visible_text() -> None:
    source = "<div align='center'>\n  <h1>Name</h1>\n  <script>no()</script>\n</div>\n\n<details>\n\n*more*\n\n</details>\n"
    assert text(source) == "Name\n\nmore"


def test_footnotes_keep_their_text_and_lose_their_labels() -> None:
    assert text("a[^1] b[^two].\n\n[^1]: One\n[^two]: *Two* words") == "a b.\n\nOne\nTwo words"
    assert text("[^1](x.md) is a link") == "^1 is a link"


def test_items_keep_their_numbers_and_their_indentation() -> None:
    assert (
        text("1. one\n   1. two\n2) three\n- - four\n- 5. five\n-\n- six") == "1. one\n   1. two\n2) three\nfour\n5. five\nsix"
    )


def test_hard_line_breaks_are_newlines() -> None:
    assert text("one  \ntwo\\\nthree") == "one\ntwo\nthree"


def test_indented_code_keeps_its_indentation_in_quotes_and_lists() -> None:
    assert text("intro\n\n>     a\n>       b\n\n\tc") == "intro\n\n    a\n      b\n\n\tc"
    assert text("-     code\n\n      more") == "code\n\nmore"


@pytest.mark.parametrize(("mark", "levels"), [("> ", 150), ("- ", 150), ("> - ", 75)])
def test_text_below_the_nesting_limit_is_kept(mark: str, levels: int) -> None:
    assert text(mark * 30 + "*word*") == "word"
    assert text(mark * levels + "*word*").endswith("- word" if "-" in mark else "> word")


MANY = 30_000


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("*a " * MANY + "x", "*a " * MANY + "x"),
        (" _a" * MANY + "x", (" _a" * MANY + "x").lstrip()),
        ("[" * MANY + "x", "[" * MANY + "x"),
        ("[a](" * MANY + "x", "[a](" * MANY + "x"),
        ("![a](" * MANY + "x", "![a](" * MANY + "x"),
        ("`" * MANY + "x", ""),  # an unclosed fence
        ("<" * MANY + "x", "<" * MANY + "x"),
        ("<!--" * MANY + "x", ""),  # an unclosed comment
        ("# " * MANY + "x", "# " * (MANY - 1) + "x"),
        ("> " * MANY + "x", "> " * (MANY - 98) + "x"),
        ("| " * MANY + "x", "| " * MANY + "x"),
        ("a " * MANY + "x", "a " * MANY + "x"),
        ("   " * MANY + "x", "   " * MANY + "x"),
        ("\\" * MANY + "x", "\\" * (MANY // 2) + "x"),
    ],
    ids=lambda source: repr(source[:6]),
)
def test_long_lines_of_one_mark(source: str, plain: str) -> None:
    assert text(source) == plain
