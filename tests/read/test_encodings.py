import random
from pathlib import Path

import pytest

from trilens.errors import BadInput
from trilens.read.encodings import detect
from trilens.read.readers import read

TEXTS = {
    "Die Straße nach Köln ist schön. Übermäßige Größe.": ["cp1252", "latin-1"],
    "Le café noir est à côté de l'hôtel, où l'on mange très bien.": ["cp1252"],
    "café": ["latin-1"],
    "It’s a “quoted” text – really.": ["cp1252"],
    "El niño comió mañana una piña en España.": ["latin-1"],
    "Съешь же ещё этих мягких французских булок, да выпей чаю.": ["cp1251", "koi8-r"],
    "日本語のテキストファイルです。漢字とひらがな、カタカナ。": ["shift_jis", "euc-jp"],
    "这是一个中文文本文件,用于测试编码检测。": ["gb18030"],
    "한국어 텍스트 파일입니다. 인코딩 감지 시험.": ["euc-kr"],
    "Αυτό είναι ένα ελληνικό κείμενο για δοκιμή.": ["cp1253"],
    "Zażółć gęślą jaźń. Książka leży na półce.": ["cp1250"],
}
PREFACE = "The first lines of a file are often plain English.\n" * 50


@pytest.mark.parametrize("text", TEXTS)
def test_texts_survive_their_encodings(text: str) -> None:
    for encoding in [*TEXTS[text], "utf-8", "utf-8-sig", "utf-16", "utf-32"]:
        for whole in (text, PREFACE + text):
            raw = whole.encode(encoding)
            found = detect(raw)
            assert found is not None, encoding
            assert raw.decode(found).removeprefix("\ufeff") == whole, (encoding, found)


def test_a_declared_encoding_is_believed() -> None:
    assert detect('<meta charset="iso-8859-5"> привет'.encode("iso-8859-5")) == "iso-8859-5"
    assert detect("# -*- coding: mac-roman -*-\n# café".encode("mac-roman")) == "mac-roman"
    assert detect('<meta charset="zip"> é'.encode("latin-1")) == "cp1252"


def test_utf_16_without_a_mark_is_recognised() -> None:
    assert detect("plain words".encode("utf-16-le")) == "utf-16-le"
    assert detect("plain words".encode("utf-16-be")) == "utf-16-be"


def test_random_bytes_are_no_text() -> None:
    rng = random.Random(0)
    assert {detect(rng.randbytes(300)) for _ in range(50)} == {None}


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8"])
def test_tables_are_decoded_line_by_line(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(("id,text\n" + "1,schöne Größe\n2,plain\n").encode(encoding))
    assert [document.text for document in read([path])] == ["schöne Größe", "plain"]


def test_a_table_in_utf8_with_one_bad_line_is_not_decoded_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\n1,schöne Größe\n".encode() + b"2,caf\xe9\n")
    with pytest.raises(BadInput, match=r"a.csv:3 is not UTF-8: byte 0xe9"):
        list(read([path]))


def test_json_may_be_utf_16(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes('[{"id": 1, "text": "schön"}]'.encode("utf-16"))
    assert [document.text for document in read([path])] == ["schön"]
