"""The synthesize command."""

from pathlib import Path

import pytest

from ..language.servers import nobody, says, serving
from .conftest import Trilens


@pytest.fixture
def collection(tmp_path: Path, corpus: Path, trilens: Trilens) -> Path:
    path = tmp_path / "c.trilens"
    assert trilens("index", corpus, "--to", path, "--lens", "bm25").code == 0
    return path


def test_the_cost_is_told_before_and_the_result_after(collection: Path, tmp_path: Path, trilens: Trilens) -> None:
    with serving(says("What about this?")) as service:
        arguments = ("synthesize", collection, "--llm", service.url, "--to", tmp_path / "out.jsonl", "--found-in", "0")
        estimate = trilens(*arguments, "--dry-run")
        assert estimate.code == 0 and "requests with about" in estimate.out and not service.prompts
        done = trilens(*arguments)
    assert done.code == 0 and estimate.out.strip() in done.err
    assert f"{len(service.prompts)} questions for {len(service.prompts)} passages" in done.out
    again = trilens(*arguments)
    assert again.code == 1 and "exists already" in again.err


def test_what_is_refused(collection: Path, tmp_path: Path, trilens: Trilens) -> None:
    out = ("--to", tmp_path / "out.jsonl")
    with nobody() as url:
        for arguments, says_what in (
            ((collection, "--llm", url), "cannot be reached"),
            ((collection, "--llm", "nowhere"), "url is 'nowhere'; expected an address"),
            ((collection, "--llm", "local:/none.gguf"), "there is no such file"),
            ((tmp_path / "none", "--llm", url), "none"),
            ((collection, "--llm", url, "--lens", "smell"), "smell"),
        ):
            done = trilens("synthesize", *arguments, *out)
            assert done.code == 1 and says_what in done.err and done.err.count("\n") <= 2
