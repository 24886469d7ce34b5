"""Answers that are written without the models of messages are what the models would write."""

import json
import math

from trilens import Document
from trilens.http.answers import answer_json, answers_json
from trilens.http.messages import Answer, Answers
from trilens.search.hits import Hit, LensScore, read_hit


def hits() -> list[Hit]:
    seen = {"bm25": LensScore(18.053895950317383, 1, 1 / 61), "dense": LensScore(-0.1, None, 0.0)}
    metadata = {"year": 2020, "tags": ["a", "ü"], "ratio": 1e-7, "none": None, "nested": {"yes": True}}
    document = Document('a "quoted"\n id', "Grüße aus dem Text 🙂 </script>", "Titel", metadata)
    return [
        Hit(document.doc_id, 1, 0.03278688524590164, document, seen, 3, 12),
        Hit("plain", 2, 1e22, Document("plain", ""), {}, 0, 0),
    ]


def test_as_the_models_write_them() -> None:
    answer = answer_json("Größe?", 7, hits())
    first, second = Answer(query="Größe?", commit=7, hits=hits()), Answer(query="b", commit=8, hits=[])
    assert first.model_dump_json().encode() == answer
    both = answers_json("my papers", 0.125, [answer, answer_json("b", 8, [])])
    assert Answers(collection="my papers", took_ms=0.125, answers=[first, second]).model_dump_json().encode() == both
    assert json.loads(both)["answers"][0]["hits"][0]["text"] == "ße aus de"


def test_hits_with_the_texts_of_their_documents_can_be_read() -> None:
    written = json.loads(answer_json("Größe?", 7, hits(), document_texts=True))["hits"]
    assert [read_hit(plain) for plain in written] == hits()


def test_what_json_cannot_say_is_null() -> None:
    hit = Hit("a", 1, math.inf, Document("a", "text"), {}, 0, 4)
    assert b'"score":null' in answer_json("q", 1, [hit])
