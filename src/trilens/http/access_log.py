"""The access log: one line per request, with the texts of queries only if they are wanted."""

import sys
from typing import Any

from starlette.requests import Request
from starlette.types import Scope

from trilens.http.callers import Caller
from trilens.http.log_file import LogFile


class AccessLog:
    """Writes a line per request. A log that cannot be written is reported once and disturbs no request."""

    def __init__(self, file: LogFile, with_queries: bool = False) -> None:
        self.file, self._with_queries = file, with_queries
        self._failed = False

    def write(self, scope: Scope, caller: Caller, route: str, answer: dict[str, Any]) -> None:
        """Record a request; `answer` is its status, time and size."""
        queries: list[str] = scope["state"].get("queries", [])
        entry = {
            "client": caller.address,
            "key": caller.key,
            "method": scope["method"],
            "route": route,
            "collection": scope.get("path_params", {}).get("name"),
            **answer,
            "queries": len(queries),
        }
        if self._with_queries and queries:
            entry["texts"] = queries
        try:
            self.file.write(entry)
            self._failed = False
        except OSError as error:
            if not self._failed:
                sys.stderr.write(f"the access log {self.file.path} cannot be written ({error.strerror})\n")
            self._failed = True


def note_queries(request: Request, queries: list[str]) -> None:
    """Keep the queries of a request for its line in the access log."""
    request.state.queries = queries
