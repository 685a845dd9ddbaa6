"""The API against its own description: whatever is asked, the answer is one that it names, and never a 500."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from live_server import serving
from schemathesis import GenerationMode

OPERATIONS = {
    "GET /api/about",
    "GET /api/fields",
    "GET /api/start",
    "POST /api/search",
    "GET /api/document",
    "GET /api/map",
    "GET /healthz",
    "GET /metrics",
}


@pytest.fixture(scope="module")
def schema(_made: Path) -> Iterator[Any]:
    with serving(_made) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


def operations(schema: Any) -> dict[str, Any]:
    found = (result.ok() for result in schema.get_all_operations())
    return {operation.label: operation for operation in found}


def test_every_operation_is_described(schema: Any) -> None:
    found = operations(schema)
    assert found.keys() == OPERATIONS
    for operation in found.values():
        assert operation.definition.raw["summary"]
        assert operation.definition.raw["description"]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        *((name, GenerationMode.POSITIVE) for name in sorted(OPERATIONS)),
        *((name, GenerationMode.NEGATIVE) for name in ("GET /api/document", "POST /api/search")),
    ],
)
def test_nothing_that_is_asked_is_answered_by_a_failure(schema: Any, name: str, mode: GenerationMode) -> None:
    operation = operations(schema)[name]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=100, suppress_health_check=list(HealthCheck))
    def ask(case: Any) -> None:
        response = case.call(timeout=600)
        assert response.status_code < 500, response.text
        case.validate_response(response, checks=[schemathesis.checks.CHECKS.get_one("response_schema_conformance")])
        assert str(response.status_code) in {*operation.definition.raw["responses"], "405", "404"}

    ask()
