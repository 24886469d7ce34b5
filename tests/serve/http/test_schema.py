"""The service keeps what its description promises: generated requests get no 5xx, and only answers of the documented form."""

from typing import Any

import pytest

pytest.importorskip("schemathesis")

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from .running import WRITE_KEY, Running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
BOUNDED = settings(max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def reading(service: Running) -> Any:
    return schemathesis.openapi.from_url(service.address + "openapi.json")


@pytest.fixture
def writing(writable: Running) -> Any:
    return schemathesis.openapi.from_url(writable.address + "openapi.json")


to_read = schemathesis.pytest.from_fixture("reading")
to_write = schemathesis.pytest.from_fixture("writing").include(tag="documents")


@to_read.parametrize()
@BOUNDED
def test_reading(case: Any) -> None:
    if "{name}" in case.path:
        case.path_parameters["name"] = "small"
    case.call_and_validate(checks=CHECKS, timeout=60)


@to_write.parametrize()
@BOUNDED
def test_writing(case: Any) -> None:
    case.path_parameters["name"] = "notes"
    case.call_and_validate(checks=CHECKS, timeout=60, headers={"Authorization": f"Bearer {WRITE_KEY}"})
