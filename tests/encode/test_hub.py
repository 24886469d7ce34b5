"""Hub ids, with the client of the hub against a local server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trilens import Collection, Document
from trilens.encode.hub import HubId, download, find_model, hub_model, is_hub_id, parse_hub_id
from trilens.encode.models import resolve_model
from trilens.errors import BadInput, BadModel

from ..hub_server import COMMIT, Hub, serve_hub, use_hub
from .echo_model import echo_model


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with the model folder acme/echo."""
    with serve_hub(echo=echo_model(tmp_path / "echo")) as served:
        use_hub(served, tmp_path, monkeypatch)
        yield served


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BAAI/bge-m3", HubId("BAAI/bge-m3", None)),
        ("colbert-ir/colbertv2.0@main", HubId("colbert-ir/colbertv2.0", "main")),
        ("gpt2", HubId("gpt2", None)),
        ("a/b/c", None),
        ("./a/b", None),
        ("~/a", None),
        ("/a/b", None),
        ("", None),
    ],
)
def test_hub_ids(name: str, expected: HubId | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_hub_id(name) == expected
    assert is_hub_id(name) == (expected is not None and "/" in name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "BAAI" / "bge-m3").mkdir(parents=True)
    assert not is_hub_id("BAAI/bge-m3") and find_model("BAAI/bge-m3") == Path("BAAI/bge-m3")


def test_a_model_folder_on_the_hub(hub: Hub, tmp_path: Path) -> None:
    """It is used as it is, and everywhere under its id; what was downloaded once is not downloaded again."""
    folder = hub_model("acme/echo")
    assert folder == resolve_model("acme/echo") == resolve_model(f"acme/echo@{COMMIT}") and folder.name == COMMIT
    assert sorted(hub.downloads) == ["model.onnx", "sparse.onnx", "tokenizer.json", "trilens.json"]
    with Collection.create(tmp_path / "c", model="acme/echo", lenses=["dense"]) as made:
        made.add([Document("a", "red fox"), Document("b", "home")])
    with Collection.open_or_create(tmp_path / "c", model="acme/echo") as opened:
        assert [hit.doc_id for hit in opened.search(["fox"], 1)[0]] == ["a"]
    with pytest.raises(BadInput, match=r"was created with model .*, not acme/other"):
        Collection.open_or_create(tmp_path / "c", model="acme/other")


def test_what_the_hub_refuses(hub: Hub, tmp_path: Path) -> None:
    hub.gated.add("acme/echo")
    with pytest.raises(BadModel, match=rf"^acme/echo is a gated model; accept its conditions at {hub.address}/acme/echo, then"):
        download("acme/echo")
    with pytest.raises(BadModel, match=r"^there is no folder acme/none, and the hub has no public model of that name; "):
        hub_model("acme/none")
    hub.gated.clear()
    with pytest.raises(BadModel, match=r"^the hub has no revision v9 of acme/echo; choose another one$"):
        find_model("acme/echo@v9")


def test_a_hub_that_cannot_be_reached(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    known = hub_model("acme/echo")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert hub_model("acme/echo") == known
    with pytest.raises(BadModel, match=r"^there is no folder acme/other, its download is not in .*127.0.0.1:9 cannot be"):
        download("acme/other")


def test_environment(hub: Hub, tmp_path: Path) -> None:
    """HF_ENDPOINT, HF_HOME and HF_HUB_OFFLINE are respected, and a model folder of the hub needs no torch."""
    documents = tmp_path / "docs.jsonl"
    documents.write_text(json.dumps({"id": "a", "text": "red fox"}) + "\n" + json.dumps({"id": "b", "text": "home"}))
    program = "import sys, trilens.cli.main as m\ntry: m.main()\nfinally: assert 'torch' not in sys.modules"

    def run(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(command, env=os.environ | more, capture_output=True, text=True, timeout=120)

    offline = run("index", str(documents), "--to", str(tmp_path / "c"), "--model", "acme/echo", HF_HUB_OFFLINE="1")
    assert offline.returncode == 1 and "and HF_HUB_OFFLINE is set; connect and repeat" in offline.stderr
    assert offline.stderr.count("\n") == 1 and not (tmp_path / "c").exists() and not hub.requests
    done = run("index", str(documents), "--to", str(tmp_path / "c"), "--lens", "dense", "--model", "acme/echo")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "home" / "hub" / "models--acme--echo").is_dir()
    asked = len(hub.requests)
    found = run("search", str(tmp_path / "c"), "fox", "--json", HF_HUB_OFFLINE="1")
    assert found.returncode == 0, found.stderr
    again = run("index", str(documents), "--to", str(tmp_path / "c"), "--model", "acme/echo", HF_HUB_OFFLINE="1")
    assert again.returncode == 0, again.stderr
    assert len(hub.requests) == asked and json.loads(found.stdout)["hits"][0]["doc_id"] == "a"
