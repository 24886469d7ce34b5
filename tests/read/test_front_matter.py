import pytest

from trilens.read.front_matter import split_front_matter
from trilens.read.markdown import read_markdown


def test_values_get_their_types_and_nested_objects_are_skipped() -> None:
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
    assert split_front_matter(source)[1] == "# Heading\nWords.\n"
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
    assert split_front_matter(source) == ({}, source)
