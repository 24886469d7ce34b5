import time

import pytest

from trilens.text.markdown import read_markdown, strip_marks


def text(source: str) -> str:
    return read_markdown(source)[1]


def test_front_matter_becomes_title_and_metadata() -> None:
    source = """---
title: "A page: about things"
year: 2020
rate: 0.5
draft: false
date: 2020-01-02
zip: 00123
tags: [one, "two three"]
authors:
  - Ann
  - Bob
nested:
  key: ignored
---
# Heading
Words.
"""
    title, body, metadata = read_markdown(source)
    assert (title, body) == ("A page: about things", "Heading\nWords.")
    assert metadata == {
        "year": 2020,
        "rate": 0.5,
        "draft": False,
        "date": "2020-01-02",
        "zip": "00123",
        "tags": ["one", "two three"],
        "authors": ["Ann", "Bob"],
    }


@pytest.mark.parametrize("source", ["---\nnever: closed\n", "text\n---\nkey: value\n---\n"])
def test_dashes_elsewhere_are_no_front_matter(source: str) -> None:
    assert read_markdown(source)[2] == {}


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
        ('[text](http://x.org/a_(b) "title") and [ref][1] and [`code`](y.md)', "text and ref and code"),
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
    assert strip_marks(source) == plain


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


@pytest.mark.parametrize("piece", ["*a ", " _a", "[", "[a](", "`", "<", "<!--", "# ", "> ", "| ", "a ", "   ", "\\", "![a]("])
def test_long_lines_take_linear_time(piece: str) -> None:
    start = time.process_time()
    read_markdown(piece * 30_000 + "x")
    assert time.process_time() - start < 2
