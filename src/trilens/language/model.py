"""`LanguageModel`: which language model to ask, and `ask`, which asks it.

A model is an address with OpenAI's chat completions API, or `local:PATH`, a folder or GGUF file that runs in this process. The
API key comes from the environment only.
"""

from pathlib import Path
from time import monotonic, sleep
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from trilens.cancellation import require_wanted
from trilens.errors import ServiceBusy
from trilens.frozen import Frozen
from trilens.language.server import ENDPOINT, KEY_NAMES, complete, require_reachable

LOCAL = "local:"
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds between attempts, unless the service names another time


class LanguageModel(Frozen):
    """A language model. `url` is its address up to `/v1`, or in full, or `local:PATH`; `timeout` limits a request."""

    url: str
    model: str = "default"
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0

    @field_validator("url")
    @classmethod
    def _address_without_secrets(cls, url: str) -> str:
        if url.startswith(LOCAL):
            if not Path(url.removeprefix(LOCAL)).expanduser().exists():
                raise ValueError(f"is {url!r}, and there is no such file; expected local:PATH with a folder or a GGUF file")
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"is {url!r}; expected an address such as http://localhost:8080/v1, or local:PATH")
        if parts.username or parts.password:
            raise ValueError(f"contains a name or password; put the key into {KEY_NAMES[0]} in the environment")
        return url

    @property
    def path(self) -> Path | None:
        """The folder or file of a local model; None for an address."""
        return Path(self.url.removeprefix(LOCAL)).expanduser() if self.url.startswith(LOCAL) else None

    @property
    def address(self) -> str:
        """The address in full; for a local model, as given."""
        base = self.url.rstrip("/")
        return self.url if self.path or base.endswith(ENDPOINT) else base + ENDPOINT

    def require_reachable(self) -> None:
        """Raise unless the model can be loaded, or something listens at its address."""
        if self.path:
            from trilens.language.local import load

            load(self.path)
        else:
            require_reachable(self.address, self.timeout)


def ask(model: LanguageModel, prompt: str, max_tokens: int, patience: float = 0.0) -> str:
    """What the model writes, at most `max_tokens` long; possibly nothing.

    If the service is busy or fails, it is asked again for up to `patience` seconds, at the times that it names or ever more
    rarely.
    """
    if model.path:
        from trilens.language.local import write  # deferred: needs torch

        return write(model.path, prompt, max_tokens)
    end, wait = monotonic() + patience, FIRST_WAIT
    while True:
        require_wanted()
        try:
            return complete(model.address, model.model, prompt, max_tokens, model.timeout)
        except ServiceBusy as busy:
            pause = wait if busy.wait is None else busy.wait
            if monotonic() + pause > end:
                raise
        sleep(pause)
        wait = min(2 * wait, LONGEST_WAIT)
