"""Answers: as JSON, with what went wrong in words, and remembered within a number of bytes."""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from parabit.plain_json import as_json

ASK_AGAIN = "ask again in a moment"
# Of an answer after which the connection is closed, because the server is busy.
CLOSING_HEADERS = {"retry-after": "1", "connection": "close"}
_ENTRY_BYTES = 250  # of memory that an answer takes beside itself: its key and a place in a dict


class RefusalError(HTTPException):
    """A request that is refused: what was wrong, what to do, and when to ask again."""

    def __init__(self, status: int, error: str, hint: str = "", retry: int | None = None) -> None:
        """An error that the application answers with `problem_response`.

        Parameters:
            status: The status of HTTP.
            error: What was wrong.
            hint: What to do about it.
            retry: After how many seconds the same request may be answered; None if it never is.
        """
        headers = None if retry is None else {"retry-after": str(retry)}
        super().__init__(status, error, headers)
        self.hint = hint


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer of JSON; bytes are sent as they are.

    Parameters:
        content: What JSON has, or JSON in bytes.
        status: The status of HTTP.
        headers: More headers of the answer.
    """
    body = content if isinstance(content, bytes) else as_json(content)
    return Response(body, status, headers, media_type="application/json")


def problem_response(
    status: int, error: str, hint: str, headers: Mapping[str, str] | None = None
) -> Response:
    """The answer to a request that is refused.

    Parameters:
        status: The status of HTTP.
        error: What was wrong.
        hint: What to do about it.
        headers: More headers of the answer.
    """
    return json_response({"error": error, "hint": hint}, status, headers)


class AnswerCache:
    """Answers by key, of a bounded number of bytes; those that were asked for least recently go.

    Example:
        >>> cache = AnswerCache(most_bytes=1000)
        >>> cache.put(b"first", bytes(400))
        >>> cache.put(b"second", bytes(400))
        >>> cache.get(b"first") is None, len(cache.get(b"second"))
        (True, 400)
    """

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes` counts the answers, and for each of them 250 bytes more."""
        self._most_bytes = most_bytes
        self._answers = dict[bytes, bytes]()
        self.bytes = 0

    def get(self, key: bytes) -> bytes | None:
        """The answer of a key, which now is the last to be forgotten; None if there is none."""
        answer = self._answers.pop(key, None)
        if answer is not None:
            self._answers[key] = answer  # at the end
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Remember an answer.

        Parameters:
            key: A digest of the request, which is short whatever was asked.
            answer: What is sent.
        """
        self._forget(key)
        self._answers[key] = answer
        self.bytes += len(answer) + _ENTRY_BYTES
        while self.bytes > self._most_bytes:
            oldest_key = next(iter(self._answers))
            self._forget(oldest_key)

    def _forget(self, key: bytes) -> None:
        answer = self._answers.pop(key, None)
        if answer is not None:
            self.bytes -= len(answer) + _ENTRY_BYTES
