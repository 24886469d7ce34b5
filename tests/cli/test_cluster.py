from pathlib import Path

import pytest

from trilens.cli.cluster import SUBCOMMANDS

from .conftest import Trilens


def test_publish_and_pull(tmp_path: Path, corpus: Path, trilens: Trilens) -> None:
    path, address, copy = tmp_path / "c.trilens", tmp_path / "published", tmp_path / "copy.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "bm25").code == 0
    assert trilens("cluster", "publish", path, address, "--shards", 3).err.count("\n") == 1
    assert trilens("optimize", path, "--segments", 3, "--json").json["segments"] == 3
    report = trilens("cluster", "publish", path, address, "--shards", 3, "--json").json
    assert (report["number"], report["documents"], report["shards"]) == (1, 3, 3)
    assert "0.0 MB copied" in trilens("cluster", "publish", path, address).out
    assert trilens("cluster", "pull", address, copy, "--json").json == {"number": 1, "documents": 3, "shards": 3, "shard": None}
    hits = [trilens("search", folder, "directory", "--json").out for folder in (path, copy)]
    assert hits[0] == hits[1]
    assert "commit 1: shard 1 of 3 documents" in trilens("cluster", "pull", address, tmp_path / "part", "--shard", 1).out
    assert trilens("info", tmp_path / "part", "--json").json["documents"] == 1
    assert trilens("cluster", "pull", tmp_path / "nothing", copy).err.startswith("trilens: there is no cluster collection at")


@pytest.mark.parametrize("name", [function.__name__ for function in SUBCOMMANDS])
def test_help_of_the_subcommands(name: str, trilens: Trilens) -> None:
    outcome = trilens("cluster", name, "--help")
    assert outcome.code == 0
    assert f"trilens cluster {name} " in outcome.out.partition("Example")[2]
