"""What a request may cost."""

from types import SimpleNamespace

import pytest

from parabit import budget
from parabit.budget import check_conditions, check_time, deadline
from parabit.errors import QueryError, TooSlowError


def test_the_earlier_deadline_counts_and_none_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    with deadline(10):
        with deadline(1000):
            now = 109.0
            check_time()
            now = 111.0
            with pytest.raises(TooSlowError):
                check_time()
        with pytest.raises(TooSlowError):
            check_time()
    check_time()


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        (
            {"year": dict.fromkeys([">=", "<"] * 9, 1)} | {str(n): 1 for n in range(31)},
            "conditions",
        ),
        ({"a": ["x"] * 600, "b": {"!=": ["y"] * 401}}, "1,001 values"),
        ({"a": ["x" * 1000] * 51}, "51,001 characters"),
    ],
)
def test_more_conditions_than_a_request_may_have_are_refused(
    conditions: dict[str, object], problem: str
) -> None:
    with pytest.raises(QueryError, match=problem) as error:
        check_conditions(conditions)
    assert "at most" in error.value.hint
