import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trilens.errors import BadInput
from trilens.read import jsonlines
from trilens.read.jsonlines import read_json, read_jsonl
from trilens.read.limits import ParsingLimits

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


def lines(raw: bytes) -> list[Any]:
    return [str(item) if isinstance(item, BadInput) else (item[0].line, item[1]) for item in read_jsonl(io.BytesIO(raw), "f")]


def array(raw: bytes) -> list[Any]:
    return [str(item) if isinstance(item, BadInput) else (item[0].line, item[1]) for item in read_json(io.BytesIO(raw), "f")]


def test_blank_lines_are_skipped_but_counted() -> None:
    assert lines(b'\xef\xbb\xbf{"a":1}\n\n  \r\n{"a":2}\r\n') == [(1, {"a": 1}), (4, {"a": 2})]


def test_a_broken_line_does_not_end_the_file() -> None:
    found = lines(b'{"a":1}\n{"a":\n{"a":3}{\n\xff\n[' + b"[" * 100_000 + b'\n{"a":6}\n')
    assert found[0] == (1, {"a": 1})
    assert [message.partition(";")[0] for message in found[1:5]] == [
        "f:2: broken JSON (Expecting value at column 6)",
        "f:3: broken JSON (Extra data at column 8)",
        "f:4 is not UTF-8: byte 0xff at offset 23",
        "f:5: broken JSON (nested too deeply)",
    ]
    assert found[5] == (6, {"a": 6})


def test_a_number_with_too_many_digits_is_an_error_of_its_line() -> None:
    (message,) = lines(b'{"a":' + b"1" * 5000 + b"}")
    assert message.startswith("f:1: broken JSON (Exceeds the limit")


def test_an_array_gives_its_members_with_their_lines() -> None:
    assert array(b' [\n{"a":1}, {"b":\n2},\n 3 ]\n') == [(2, {"a": 1}), (2, {"b": 2}), (4, 3)]
    assert array(b'\n{"a": 1}\n') == [(2, {"a": 1})]
    assert array(b"[]") == array(b"  ") == array(b"") == []


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'[{"a":1},\n{"a" 2}]', "f:2: broken JSON .Expecting ':' delimiter"),
        (b'[{"a":1}\n{"a":2}]', "f:2: broken JSON .no comma or closing bracket"),
        (b'[{"a":1},]', "f:1: broken JSON .a comma before the closing bracket"),
        (b'[{"a":1}', "f:1: broken JSON .no comma or closing bracket"),
        (b'[{"a":1},', "f:1: broken JSON .Expecting value"),
        (b'[{"a":"never ends', "f:1: broken JSON .Unterminated string"),
        (b'[{"a":1}]\n\n{', "f:3: broken JSON .more text after the array"),
        (b'{"a":1}\n{"a":2}', "f:2: broken JSON .more text after the record.*rename the file to .jsonl"),
        (b"[" * 100_000, "f:1: broken JSON .nested too deeply"),
        (b"[\x001]", "f is binary: NUL byte at offset 1"),
        (b'\xef\xbb\xbf["\xff"]', "f is not UTF-8: byte 0xff at offset 5"),
        (b'["\xe2\x82', "f is not UTF-8: byte 0xe2 at offset 2"),
    ],
)
def test_a_broken_array_names_the_line(raw: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        array(raw)


@given(st.lists(JSON), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_any_window_reads_what_json_reads(values: list[Any], window: int, indent: int | None, ascii_only: bool) -> None:
    raw = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    try:
        raw.decode()
    except UnicodeDecodeError:
        raw = json.dumps(values, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines, "WINDOW_CHARACTERS", window)
        found = array(raw)
    assert [value for _, value in found] == values
    assert [line for line, _ in found] == sorted(line for line, _ in found)


def test_the_window_does_not_grow_with_the_file() -> None:
    class Counted(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.largest = max(self.largest, size or 0)
            return super().read(size)

    record = json.dumps({"id": "x", "text": "word " * 1000})
    stream = Counted(("[" + ",".join([record] * 2000) + "]").encode())
    assert sum(1 for _ in read_json(stream, "f")) == 2000
    assert stream.largest == jsonlines.WINDOW_CHARACTERS


def test_a_record_above_the_limit_ends_the_file_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlines, "WINDOW_CHARACTERS", 10)
    monkeypatch.setattr(jsonlines, "LIMITS", ParsingLimits(text_bytes=100))
    stream = io.BytesIO(b'[{"text": "' + b"word " * 10_000 + b'"}]')
    with pytest.raises(BadInput, match=r"^f has a record or a line of more than 0 MiB; split it"):
        list(read_json(stream, "f"))
    assert stream.tell() < 500
