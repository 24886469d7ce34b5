import pytest

from trilens.read.html import read_html


def test_a_page_gives_its_title_and_visible_text() -> None:
    page = """<!DOCTYPE html><html><head><title> A &amp;
      B </title><style>p { color: red }</style><script>if (a < b) { x("<p>no</p>") }</script></head>
      <body><h1>Head&nbsp;line</h1><p>One <b>bold</b>, <i>slanted</i>   word&mdash;here.<p>Two<br>three</body></html>"""
    assert read_html(page) == ("A & B", "Head line\nOne bold, slanted word—here.\nTwo\nthree")


@pytest.mark.parametrize("tag", ["script", "style", "noscript", "template"])
def test_what_a_reader_does_not_see_is_dropped(tag: str) -> None:
    assert read_html(f"<p>a</p><{tag}><p>hidden</p></{tag}><p>b</p>")[1] == "a\nb"


def test_nested_templates_end_where_the_outer_one_ends() -> None:
    assert read_html("a<template>x<template>y</template>z</template>b")[1] == "ab"


def test_a_hidden_tag_inside_another_does_not_hide_the_rest() -> None:
    assert read_html("a<noscript><template></noscript>b")[1] == "ab"


def test_lists_and_tables_keep_their_rows() -> None:
    page = "<ul><li>one<li>two</ul><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>end"
    assert read_html(page)[1] == "one\ntwo\na b\n1 2\nend"


def test_preformatted_text_keeps_its_lines() -> None:
    assert read_html("<p>see</p><pre>def f():\n    return  1\n</pre><p>a   b</p>")[1] == "see\ndef f():\n    return  1\na b"


def test_words_of_inline_elements_are_not_joined_or_parted() -> None:
    assert read_html("<p>un<b>believ</b>able <i> x </i> <i> y</i></p>")[1] == "unbelievable x y"


def test_without_a_title_the_first_heading_is_one() -> None:
    assert read_html("<p>intro</p><h2>The <em>first</em></h2><h1>Second</h1>")[0] == "The first"
    assert read_html("<title></title><p>only text</p>")[0] == ""


def test_the_title_of_a_drawing_is_not_the_title_of_the_page() -> None:
    assert read_html("<title>Page</title><svg><title>Icon</title></svg>text") == ("Page", "text")


def test_entities_are_decoded_once() -> None:
    assert read_html("<p>&lt;b&gt; &amp;lt; &#233; &#x1F600;</p>")[1] == "<b> &lt; é 😀"


def test_comments_and_broken_tags_are_no_text() -> None:
    assert read_html("a<!-- no --> b </nothing> <p/>c")[1] == "a b\nc"


def test_an_unknown_marked_section_is_a_comment_up_to_the_next_bracket() -> None:
    assert read_html("a<![wrong[ b ]]> c") == ("", "a c")
    assert read_html("a<![!x[ b ]> c") == ("", "a c")


def test_known_marked_sections_are_dropped() -> None:
    assert read_html("a<![CDATA[ x > y ]]> b<![if IE]> c<![endif]> d") == ("", "a b c d")


def test_an_unclosed_comment_extends_to_the_end() -> None:
    assert read_html("<p>a<p>b <!-- c <p>d") == ("", "a\nb")


def test_an_unclosed_tag_is_text() -> None:
    assert read_html("<p>if a <b &amp; c") == ("", "if a <b & c")
    assert read_html("<p>a <b c='>d <i>e</i>") == ("", "a <b c='>d e")


MANY = 50_000


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<div><p>" * MANY + "word " * 200_000, "word " * 199_999 + "word"),
        ("<!--" * MANY + "x", ""),
        ("<a " * MANY + "x", "<a " * MANY + "x"),
        ("<a b='" * MANY + "x", "<a b='" * MANY + "x"),
        ("<![wrong[ " * MANY + "x", "<![wrong[ " * MANY + "x"),
        ("<" * MANY + "x", "<" * MANY + "x"),
    ],
    ids=lambda markup: repr(markup[:8]),
)
def test_large_pages_of_one_mark(markup: str, text: str) -> None:
    assert read_html(markup) == ("", text)
