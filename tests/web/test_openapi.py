"""The API against its own description: whatever is asked, the answer is one that it names, and never a 500."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from live_server import serving
from schemathesis import GenerationMode


@pytest.fixture(scope="module")
def operations(_made: Path) -> Iterator[list[Any]]:
    with serving(_made) as address:
        schema: Any = schemathesis.openapi.from_url(f"{address}/openapi.json")
        yield [result.ok() for result in schema.get_all_operations()]


@pytest.mark.parametrize("mode", GenerationMode)
def test_nothing_that_is_asked_is_answered_by_a_failure(
    operations: list[Any], mode: GenerationMode
) -> None:
    assert len(operations) == 7
    for operation in operations:
        described = operation.definition.raw
        assert described["summary"]
        assert described["description"]
        if mode == GenerationMode.NEGATIVE and not {"parameters", "requestBody"} & described.keys():
            continue  # nothing that could be wrong

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=100, suppress_health_check=list(HealthCheck))
        def ask(case: Any) -> None:
            response = case.call(timeout=600)
            assert response.status_code < 500, response.text
            case.validate_response(
                response, checks=[schemathesis.checks.CHECKS.get_one("response_schema_conformance")]
            )
            assert str(response.status_code) in {
                *case.operation.definition.raw["responses"],
                "405",
                "404",
            }

        ask()
