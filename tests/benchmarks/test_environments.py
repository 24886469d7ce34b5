"""Environments of peers: real virtual environments without network access."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.peers import environments
from benchmarks.peers.environments import PeerMissing, java_home, python_of


def test_an_environment_is_recreated_when_its_requirements_change(tmp_path: Path) -> None:
    (tmp_path / "peer.txt").write_text("# nothing\n", encoding="utf-8")
    python = python_of("peer", tmp_path, tmp_path / "made")
    assert subprocess.run([str(python), "-c", "import sys; assert sys.prefix != sys.base_prefix"], check=True).returncode == 0
    mark = python.parent / "mark"
    mark.touch()
    python_of("peer", tmp_path, tmp_path / "made")
    assert mark.exists()
    (tmp_path / "peer.txt").write_text("# something else\n", encoding="utf-8")
    python_of("peer", tmp_path, tmp_path / "made")
    assert not mark.exists()


def test_a_failed_installation_is_reported_and_not_cached(tmp_path: Path) -> None:
    (tmp_path / "peer.txt").write_text("# pip: --no-index\nno-such-peer==1.0\n", encoding="utf-8")
    with pytest.raises(PeerMissing, match=r"could not be installed: .*no-such-peer==1\.0"):
        python_of("peer", tmp_path, tmp_path / "made")
    assert not (tmp_path / "made" / "peer" / "installed.txt").exists()


def test_java_is_selected_by_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in (17, 25):
        java = tmp_path / f"java-{version}" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}.0.1\"' >&2\n", encoding="utf-8")
        java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java-17"))
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr(environments, "JAVA_HOMES", tmp_path)
    assert java_home(21) == tmp_path / "java-25"
    assert java_home(11) == tmp_path / "java-17"
    with pytest.raises(PeerMissing, match="needs Java 99 or newer; found 17, 25"):
        java_home(99)
