from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from trilens.errors import BadInput
from trilens.http.keys import ApiKeys, load_keys
from trilens.http.start import ServeOptions, require_safe

READ, WRITE = "r" * 16, "w" * 16


def test_rights() -> None:
    keys = ApiKeys((READ,), (WRITE,))
    assert [keys.may("read", key) for key in (READ, WRITE, "x", None)] == [True, True, False, False]
    assert [keys.may("write", key) for key in (READ, WRITE, "x", None)] == [False, True, False, False]
    open_to_read = ApiKeys((), (WRITE,))
    assert open_to_read.may("read", None)
    assert not ApiKeys().may("write", None)
    assert not ApiKeys().may("write", "")


def test_from_file_and_environment(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# comment\n\nread {READ}\nwrite {WRITE}\n")
    more = {"TRILENS_READ_KEYS": f"{'a' * 16},{'b' * 16}", "TRILENS_WRITE_KEYS": " ".join(["c" * 16, "d" * 16])}
    assert load_keys(file, more) == ApiKeys(("a" * 16, "b" * 16, READ), ("c" * 16, "d" * 16, WRITE))
    assert load_keys(None, {}) == ApiKeys()


@pytest.mark.parametrize(
    ("content", "says"), [("admin x", ":1 is not a key"), ("read", ":1 is not"), ("read short", "at least 16")]
)
def test_bad_files_are_one_line(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(BadInput, match=says) as error:
        load_keys(file, {})
    assert "short" not in str(error.value).split()  # a key is never shown
    with pytest.raises(BadInput, match="cannot be read"):
        load_keys(tmp_path / "none", {})


def test_what_is_unsafe_is_refused() -> None:
    with pytest.raises(BadInput, match="no write key"):
        require_safe(ServeOptions(write=True), ApiKeys())
    for host in ("0.0.0.0", "192.168.1.5", "::", "example.org"):
        with pytest.raises(BadInput, match="no read key"):
            require_safe(ServeOptions(host=host), ApiKeys(write=(WRITE,)))
        require_safe(ServeOptions(host=host, open_to_all=True), ApiKeys())
        require_safe(ServeOptions(host=host), ApiKeys(read=(READ,)))
    for host in ("127.0.0.1", "::1", "localhost", "127.3.2.1"):
        require_safe(ServeOptions(host=host), ApiKeys())
    with pytest.raises(BadInput, match="--cors"):
        require_safe(ServeOptions(origins=("example.org",)), ApiKeys())
