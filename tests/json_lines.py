"""Documents as a corpus of JSON lines."""

import json

from parabit import Document


def as_lines(documents: list[Document]) -> str:
    """Documents as a corpus of JSON lines."""
    return "".join(
        json.dumps({"id": one.id, "text": one.text, "labels": list(one.labels), **one.fields}) + "\n"
        for one in documents
    )
