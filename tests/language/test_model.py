"""Asking a language model whose service answers well, badly, slowly or not at all."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from trilens.errors import BadInput, ServiceBusy, ServiceFailed
from trilens.language import model as asking
from trilens.language.model import LanguageModel, ask

from .servers import Reply, closes, drips, nobody, says, sends, serving, stays_silent

SOON = 0.3  # seconds: long enough for a good answer of this machine


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which do not take place."""
    for name in ("TRILENS_LLM_KEY", "TRILENS_HYDE_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    noted: list[float] = []
    monkeypatch.setattr(asking, "sleep", noted.append)
    return noted


def test_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(says("  Paris.\n")) as service:
        assert ask(LanguageModel(url=service.url, model="tiny"), "Where?", 9) == "Paris."
        monkeypatch.setenv("TRILENS_LLM_KEY", "secret")
        assert ask(LanguageModel(url=f"{service.url}/chat/completions"), "Where?", 9) == "Paris."
    first, second = service.requests
    assert (first["path"], first["key"], second["key"]) == ("/v1/chat/completions", None, "Bearer secret")
    wanted = {"model": "tiny", "messages": [{"role": "user", "content": "Where?"}], "temperature": 0, "max_tokens": 9}
    assert first["body"] == wanted


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (sends(401), "answered 401 .*; put the key into TRILENS_LLM_KEY"),
        (sends(302, Location="/elsewhere"), "answered 302"),
        (sends(200, b"<html>"), "answered '<html>'; expected a chat completion"),
        (sends(200, b'{"choices": []}'), "expected a chat completion"),
        (sends(200, b"[" * 100_000), "expected a chat completion"),
    ],
)
def test_nonsense_is_not_asked_for_again(reply: Reply, message: str) -> None:
    with serving(reply) as service, pytest.raises(ServiceFailed, match=message) as failure:
        ask(LanguageModel(url=service.url), "?", 9, patience=100)
    assert "\n" not in str(failure.value)
    assert not isinstance(failure.value, ServiceBusy)
    assert len(service.prompts) == 1


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (stays_silent, f"did not answer within {SOON} s"),
        (drips, f"did not answer within {SOON} s"),
        (closes, "cannot be reached"),
        (sends(503), "answered 503 .*; try again later"),
        (sends(429, Retry_After="7"), "answered 429 .* and asks to wait 7 s"),
    ],
)
def test_no_answer_is_an_error_in_time(reply: Reply, message: str, pauses: list[float]) -> None:
    with serving(reply) as service, pytest.raises(ServiceBusy, match=message) as failure:
        ask(LanguageModel(url=service.url, timeout=SOON), "?", 9)
    assert "\n" not in str(failure.value)
    assert (len(service.prompts), pauses) == (1, [])


def test_attempts_until_an_answer(pauses: list[float]) -> None:
    """The times that the service names are kept; without them, pauses grow."""
    busy: Sequence[Reply] = [sends(429, Retry_After="7"), closes, sends(500), stays_silent, sends(503, Retry_After="soon")]
    with serving(*busy, says("at last")) as service:
        assert ask(LanguageModel(url=service.url, timeout=SOON), "?", 9, patience=1000) == "at last"
    assert len(service.prompts) == 6
    assert pauses == [7, 2, 4, 8, 16]


def test_pauses_longer_than_the_patience_are_not_made(pauses: list[float]) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(hours=1))
    for after in ("3600", date):
        with serving(sends(429, Retry_After=after)) as service, pytest.raises(ServiceBusy, match=r"asks to wait 3[56]\d\d s"):
            ask(LanguageModel(url=service.url), "?", 9, patience=600)
        assert len(service.prompts) == 1
    assert pauses == []


def test_nobody_there() -> None:
    with nobody() as url:
        for call in (lambda: ask(LanguageModel(url=url), "?", 9), LanguageModel(url=url).require_reachable):
            with pytest.raises(ServiceFailed, match="cannot be reached"):
                call()


@pytest.mark.parametrize(
    "url", ["", "localhost:80", "file:///etc/passwd", "ftp://host/v1", "http://name:key@host/v1", "local:/no/such/file"]
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(BadInput, match=r"url(:)? (is|contains)"):
        LanguageModel(url=url)


def test_a_local_model_is_a_path(tmp_path: Path) -> None:
    model = LanguageModel(url=f"local:{tmp_path}")
    assert (model.path, model.address) == (tmp_path, f"local:{tmp_path}")
    assert LanguageModel(url="http://localhost:1/v1/").path is None
