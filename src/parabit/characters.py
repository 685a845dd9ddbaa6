"""Characters that are none in a document, or that act on what shows or reads it."""

import re

# Control characters (Unicode category Cc), and the other two characters that end a line.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Halves of surrogate pairs: no characters, so UTF-8 has no bytes for them.
HALVES = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    r"""A text with U+FFFD for each half of a surrogate pair; halves that fit become one character.

    Parameters:
        text: Any string. If it has no halves, the same object is returned.

    Example:
        >>> without_halves("\ud83d\ude00 and \ud83d")
        '😀 and �'
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
