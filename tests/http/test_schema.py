"""The service keeps what its description promises: generated requests get no 5xx, and only answers of the documented form."""

from typing import Any

import httpx
import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from .running import WRITE_KEY, Running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BOUNDED = settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


def keep_promises(service: Running, collection: str, tag: str | None = None, key: str | None = None) -> int:
    """Call each operation with generated requests; how many operations there are."""
    schema = schemathesis.openapi.from_url(service.address + "openapi.json")
    operations: list[Any] = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    chosen = [operation for operation in operations if tag is None or tag in operation.tags]
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    def check(operation: Any) -> None:
        @BOUNDED
        @given(operation.as_strategy())
        def call(case: Any) -> None:
            if "{name}" in case.path:
                case.path_parameters["name"] = collection
            case.call_and_validate(checks=CHECKS, timeout=60, headers=headers)

        call()

    for operation in chosen:
        check(operation)
    return len(chosen)


def test_reading(service: Running) -> None:
    assert keep_promises(service, "small") == 20


def test_writing(writable: Running) -> None:
    assert keep_promises(writable, "notes", "documents", WRITE_KEY) == 7


def test_operations_have_names_for_generated_clients(service: Running) -> None:
    schema = httpx.get(service.address + "openapi.json").json()
    names = [operation["operationId"] for path in schema["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert {"search", "explain", "disentangle", "encode", "put_documents", "get_document", "health"} <= set(names)
