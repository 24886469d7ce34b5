"""HyDE (Gao et al. 2022): a language model writes a passage that would answer the query, and the search is for that.

The passage comes from any address that speaks OpenAI's chat completions. The dense lens is asked with the mean of what it makes
of the query and of the passage; other lenses are asked as before. The key comes from the environment alone.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

from trilens.encode.encoder import Encoded
from trilens.errors import BadInput, ServiceFailed
from trilens.represent import Dense
from trilens.store.lenses import Lenses

KEY_NAMES = ("TRILENS_HYDE_KEY", "OPENAI_API_KEY")
ENDPOINT = "/chat/completions"
MOST_BYTES = 1 << 20
PROMPT = "Write a short passage, of about a hundred words, that answers this search query. Answer with the passage alone.\n\n"


@dataclass(frozen=True, slots=True)
class Hyde:
    """Who writes the passages. `url` is the address up to `/v1`, or the whole one."""

    url: str
    model: str = "default"
    timeout: float = 30.0
    prompt: str = PROMPT

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"HyDE address is {self.url!r}; expected one such as http://localhost:8080/v1")
        if parts.username or parts.password:
            raise BadInput(f"the HyDE address holds a name or password; put the key into {KEY_NAMES[0]} in the environment")
        if not self.timeout > 0:
            raise BadInput(f"HyDE timeout is {self.timeout}; expected seconds, more than 0")

    @property
    def address(self) -> str:
        """The whole address."""
        base = self.url.rstrip("/")
        return base if base.endswith(ENDPOINT) else base + ENDPOINT


class _NoRedirect(HTTPRedirectHandler):
    """A redirect could lead the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Never."""


def imagine(hyde: Hyde, query: str) -> str:
    """A passage that could answer the query."""
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
        raise ServiceFailed(f"{hyde.address} cannot be asked ({reason}); check the address, or leave HyDE out") from error
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
    lenses: Lenses, encoded: Mapping[str, Encoded], queries: Sequence[str], names: Sequence[str], hyde: Hyde
) -> tuple[dict[str, Encoded], dict[str, list[dict[str, Any]]]]:
    """The queries as the dense lens sees them with their passages, and what was added to each."""
    if "dense" not in names:
        raise BadInput(f"the lenses searched are {', '.join(names)}; HyDE is for lens dense: search it as well")
    passages = [imagine(hyde, query) for query in queries]
    asked, written = encoded["dense"].dense, lenses["dense"].encoder.encode_docs(passages).dense
    assert asked is not None and written is not None
    mean = (asked.vectors + written.vectors) / 2
    lengths = np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
    vectors = Dense(np.ascontiguousarray(mean / lengths, np.float32))
    told = [{"method": "hyde", "model": hyde.model, "passage": passage} for passage in passages]
    return {**encoded, "dense": replace(encoded["dense"], dense=vectors)}, {"dense": told}
