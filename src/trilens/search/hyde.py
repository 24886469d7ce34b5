"""HyDE (Gao et al. 2022): a language model writes a hypothetical passage that answers the query, which is searched for as well.

Any address with OpenAI's chat completions API can write it. The dense lens searches the mean of the query's and the
passage's vector; other lenses search the original query. The API key comes from the environment only.
"""

import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from http.client import HTTPException
from typing import Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pydantic import Field, field_validator

from trilens.cancellation import require_wanted
from trilens.encode.encoder import Encoded
from trilens.errors import ServiceFailed
from trilens.frozen import Frozen
from trilens.lenses.registry import lenses_with
from trilens.store.lens_set import LensSet

KEY_NAMES = ("TRILENS_HYDE_KEY", "OPENAI_API_KEY")
ENDPOINT = "/chat/completions"
MOST_BYTES = 1 << 20
PROMPT = "Write a short passage, of about a hundred words, that answers this search query. Answer with the passage alone.\n\n"


class Hyde(Frozen):
    """The language model that writes the passages. `url` is its address up to `/v1`, or in full."""

    url: str
    model: str = "default"
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30.0
    prompt: str = PROMPT

    @field_validator("url")
    @classmethod
    def _address_without_secrets(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"is {url!r}; expected an address such as http://localhost:8080/v1")
        if parts.username or parts.password:
            raise ValueError(f"contains a name or password; put the key into {KEY_NAMES[0]} in the environment")
        return url

    @property
    def address(self) -> str:
        """The address in full."""
        base = self.url.rstrip("/")
        return base if base.endswith(ENDPOINT) else base + ENDPOINT


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect, which could send the API key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


@lru_cache(maxsize=256)
def imagine(hyde: Hyde, query: str) -> str:
    """A passage, written by the language model, that answers the query.

    It is cached, so that an explanation is about the passage that was searched for.
    """
    body = {
        "model": hyde.model,
        "messages": [{"role": "user", "content": hyde.prompt + query}],
        "temperature": 0,
        "max_tokens": 256,
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key := next((os.environ[name] for name in KEY_NAMES if os.environ.get(name)), None):
        headers["Authorization"] = f"Bearer {key}"
    request = Request(hyde.address, json.dumps(body).encode(), headers, method="POST")
    try:
        with build_opener(_NoRedirect).open(request, timeout=hyde.timeout) as response:
            content = response.read(MOST_BYTES)
    except HTTPError as error:
        hint = f"; put the key into {KEY_NAMES[0]}" if error.code in (401, 403) else ""
        raise ServiceFailed(f"{hyde.address} answered {error.code} {error.reason}; expected a chat completion{hint}") from error
    except (URLError, HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise ServiceFailed(f"{hyde.address} cannot be reached ({reason}); check the address, or leave HyDE out") from error
    return _read(hyde, content)


def _read(hyde: Hyde, content: bytes) -> str:
    try:
        text = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError) as error:
        shown = content[:80].decode("utf-8", "replace")
        raise ServiceFailed(f"{hyde.address} answered {shown!r}; expected a chat completion as OpenAI gives it") from error
    if not isinstance(text, str) or not text.strip():
        raise ServiceFailed(f"{hyde.address} wrote no passage; try another model, or leave HyDE out")
    return text.strip()


def expand_with_passages(
    lenses: LensSet, encoded: Mapping[str, Encoded], queries: Sequence[str], hyde: Hyde
) -> tuple[dict[str, Encoded], dict[str, list[dict[str, Any]]]]:
    """The queries mixed with one generated passage each, for every lens that supports it, and what was added to each."""
    passages = []
    for query in queries:
        require_wanted()
        passages.append(imagine(hyde, query))
    infos = [{"method": "hyde", "model": hyde.model, "passage": passage} for passage in passages]
    mixed = {
        name: lenses[name].mix_passages(encoded[name], lenses[name].encoder.encode_docs(passages))
        for name in lenses_with("hyde")
        if name in encoded
    }
    return {**encoded, **mixed}, dict.fromkeys(mixed, infos)
