"""Answers that are kept on disk."""

from pathlib import Path

import pytest

from trilens.language import answers
from trilens.language.answers import answers_file, ask_once
from trilens.language.model import LanguageModel

from .servers import says, serving


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return answers_file()


def test_no_question_is_asked_twice() -> None:
    with serving(says(str.upper)) as service:
        model, other = LanguageModel(url=service.url), LanguageModel(url=service.url, model="other")
        assert [ask_once(model, prompt, 9) for prompt in ("a", "b", "a")] == ["A", "B", "A"]
        assert service.prompts == ["a", "b"]
        ask_once(other, "a", 9)
        ask_once(model, "a", 10)
    assert service.prompts == ["a", "b", "a", "a"]
    assert ask_once(model, "a", 9) == "A"  # even now that the service is gone


def test_nothing_is_no_answer() -> None:
    with serving(says(""), says("something")) as service:
        model = LanguageModel(url=service.url)
        assert [ask_once(model, "a", 9) for _ in range(3)] == ["", "something", "something"]
    assert len(service.prompts) == 2


def test_the_oldest_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST", 2)
    with serving(says(str.upper)) as service:
        model = LanguageModel(url=service.url)
        for prompt in ("a", "b", "c", "b", "a"):
            ask_once(model, prompt, 9)
    assert service.prompts == ["a", "b", "c", "a"]


@pytest.mark.parametrize("obstacle", ["damaged", "folder", "file in the way"])
def test_without_a_cache_the_model_is_asked(obstacle: str, cache: Path) -> None:
    if obstacle == "file in the way":
        cache.parent.parent.mkdir()
        cache.parent.write_text("")
    else:
        cache.parent.mkdir(parents=True)
        cache.mkdir() if obstacle == "folder" else cache.write_bytes(b"no database" * 100)
    with serving(says(str.upper)) as service:
        model = LanguageModel(url=service.url)
        assert [ask_once(model, "a", 9) for _ in range(2)] == ["A", "A"]
    assert len(service.prompts) == 2
