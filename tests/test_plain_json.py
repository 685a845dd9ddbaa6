"""JSON that every reader takes, whatever it is made of."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from parabit.plain_json import as_json, plain

TEXTS = st.text(st.characters(exclude_categories=()))  # halves of surrogate pairs, too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(VALUES, st.integers(0, 2000))
def test_whatever_is_stored_becomes_json(value: Any, levels: int) -> None:
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    json.loads(as_json({"hits": [value]}).decode("utf-8"))
    written = as_json({"hits": [plain(value)]})  # for readers that are stricter than a browser
    assert from_json(written) == json.loads(written.decode("utf-8"))


@given(VALUES)
def test_what_json_has_stays_as_it_is(value: Any) -> None:
    try:
        same = json.loads(json.dumps(value, allow_nan=False).encode().decode())
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:  # it has no such number, or half a character
        return
    assert plain(value) == same
