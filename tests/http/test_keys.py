import hashlib
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from trilens.errors import BadInput
from trilens.http.keys import ApiKeys, load_keys
from trilens.http.start import ServeOptions, require_safe

READ, WRITE = "r" * 16, "w" * 16


def private(file: Path, content: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(content)
    return file


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
    private(file, f"# comment\n\nread {READ}\nwrite {WRITE} indexer\n")
    more = {"TRILENS_READ_KEYS": f"{'a' * 16},{'b' * 16}", "TRILENS_WRITE_KEYS": " ".join(["c" * 16, "d" * 16])}
    keys = load_keys(file, more)
    assert keys == ApiKeys(("a" * 16, "b" * 16, READ), ("c" * 16, "d" * 16, WRITE), {WRITE: "indexer"})
    assert (keys.label(WRITE), keys.label(READ)) == ("indexer", hashlib.sha256(READ.encode()).hexdigest()[:12])
    assert load_keys(None, {}) == ApiKeys()


@pytest.mark.parametrize(
    ("content", "says"), [("admin x", ":1 is not a key"), ("read", ":1 is not"), ("read short", "at least 16")]
)
def test_bad_files_are_one_line(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "keys"
    private(file, content)
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
    with pytest.raises(BadInput, match="--proxy forwards from others"):
        require_safe(ServeOptions(proxies=("127.0.0.1",)), ApiKeys())
    for host in ("127.0.0.1", "::1", "localhost", "127.3.2.1"):
        require_safe(ServeOptions(host=host), ApiKeys())
    with pytest.raises(BadInput, match="--cors"):
        require_safe(ServeOptions(origins=("example.org",)), ApiKeys())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = private(tmp_path / "keys", f"read {READ}\n")
    file.chmod(mode)
    with pytest.raises(BadInput, match=f"can be read by others .mode {mode:o}.; run `chmod 600 {file}`"):
        load_keys(file, {})
    assert load_keys(file, {"CREDENTIALS_DIRECTORY": str(tmp_path)}).read == (READ,)  # systemd protects the folder
    with pytest.raises(BadInput, match="can be read by others"):
        load_keys(file, {"CREDENTIALS_DIRECTORY": str(tmp_path / "other")})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (ServeOptions(tls_key=Path("key.pem")), "--tls-cert and --tls-key belong together"),
        (ServeOptions(log_queries=True), "--log-queries is given without --access-log"),
        (ServeOptions(audit_log=Path("-")), "--audit-log is '-'; expected a file"),
    ],
)
def test_options_that_do_not_fit_together(options: ServeOptions, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        require_safe(options, ApiKeys())
