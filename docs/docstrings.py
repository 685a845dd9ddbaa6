"""Doc strings as the pages show them: examples as code, and numpy's sections as lists."""

import re
from typing import Any

import griffe


class OurDocStrings(griffe.Extension):
    """Turns our form of doc strings into the one that the pages' tool knows."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the doc string of a function, class or module that was read."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(text: str) -> str:
    r"""A doc string in the tool's form.

    Example:
        >>> rewritten("What it does.\n\nParameters\n----------\nk, radius : how many,\n    how far.")
        'What it does.\n\n**Parameters**\n\n- `k`, `radius`: how many, how far.'
    """
    text = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
    return re.sub(r"^(\w+)\n-{3,}\n((?:.+\n?)+)", _listed, text, flags=re.MULTILINE)


def _listed(section: re.Match[str]) -> str:
    joined = re.sub(r"\n {2,}", " ", section[2])
    items = [re.sub(r"^(.*?) : ", _names, line) for line in joined.rstrip("\n").splitlines()]
    ending = section[2][len(section[2].rstrip("\n")) :]
    return f"**{section[1]}**\n\n" + "\n".join(f"- {item}" for item in items) + ending


def _names(names: re.Match[str]) -> str:
    return re.sub(r"\w+", lambda name: f"`{name[0]}`", names[1]) + ": "
