import pytest

from trilens.errors import BadInput
from trilens.read import duplicates
from trilens.read.decode import Place
from trilens.read.duplicates import SeenIds


def test_a_known_id_names_both_places() -> None:
    with SeenIds() as seen:
        seen.add("x", Place("a.jsonl", 3))
        seen.add("y", Place("b.txt"))
        with pytest.raises(BadInput, match=r"c.jsonl:9: the id 'x' was read before at a.jsonl:3; expected unique ids"):
            seen.add("x", Place("c.jsonl", 9))
        with pytest.raises(BadInput, match=r"c.jsonl:10: the id 'y' was read before at b.txt;"):
            seen.add("y", Place("c.jsonl", 10))


def test_ids_are_compared_exactly() -> None:
    with SeenIds() as seen:
        for number, doc_id in enumerate(["a", "A", "a ", "á", "a\u0301", "a\0b", "a\0c", "1", "1.0", "01"]):
            seen.add(doc_id, Place("f", number))


def test_every_id_is_remembered_when_the_table_is_larger_than_its_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "CACHE_KIB", 100)
    ids = [f"{number * 7919 % 30_000:0100d}" for number in range(30_000)]
    with SeenIds() as seen:
        for line, doc_id in enumerate(ids, 1):
            seen.add(doc_id, Place("f", line))
        for line in (1, 15_000, 30_000):
            with pytest.raises(BadInput, match=f"read before at f:{line};"):
                seen.add(ids[line - 1], Place("g", 1))
