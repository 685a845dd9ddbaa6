"""Connections to the server: how many there may be, and how slow and large a request may be.

uvicorn reads requests with httptools, which takes a head of any length and waits for it for ever.
Here each connection counts what it reads beside bodies, whose length the application limits, and
once a second all are looked at:

- a request must be there as a whole 20 seconds after its first byte, or after the connection was
  opened;
- an answer that its client does not read is given up after the same time;
- if there are as many connections as there may be, those that have been sending the longest are
  closed for a new one. Somebody who opens a thousand and sends half a head on each only loses them,
  and others are answered meanwhile.
"""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from parabit.web.answers import ASK_AGAIN, CLOSING_HEADERS, problem_response
from parabit.web.guard import HEAD_TOO_LARGE, MOST_HEAD_BYTES, SEND_LESS

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError:  # as on Windows
    HttpToolsProtocol = None  # type: ignore[assignment, misc]

# Each has a descriptor and perhaps a head and a large body that are being read. A page opens 6 at
# most.
MOST_CONNECTIONS = 512
_TOO_MANY = "the server has too many connections"
# For the files of an index and for connections that are about to be closed.
_SPARE_DESCRIPTORS = 256
_ANSWERED_BEYOND = 64  # connections above the most that still get an answer, which says so
_ARRIVAL_SECONDS = 20.0  # a megabyte at 50 KB/s, as on a slow phone
_KEEP_ALIVE_SECONDS = 5  # between two requests; a page that is open longer connects again
_LOOKED_AT_SECONDS = 1.0
# Bytes of answers that clients have not read yet, of all of them: then the largest are given up.
# The answer to a search has about 20 KB, a map of 20,000 documents 1 MB.
_MOST_UNSENT_BYTES = 128 << 20
_MOST_PIPELINED = 32  # requests that are sent before the first is answered, which browsers never do

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]


def uvicorn_config(app: ASGIApp, most_connections: int | None = None) -> uvicorn.Config:
    """How uvicorn serves an application with these limits.

    Parameters:
        app: The application.
        most_connections: How many may be open; by default 512, or what the limit of open files
            leaves.

    Returns:
        The configuration for `uvicorn.Server`.
    """
    connections = Connections(most_connections or _most_connections())
    kind: Callable[..., asyncio.Protocol] = H11Connection
    if HttpToolsProtocol is not None:
        kind = HttpToolsConnection
    return uvicorn.Config(
        app,
        http=partial(kind, connections),  # type: ignore[arg-type]
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
    )


def _most_connections() -> int:
    """As many as the process may open files, with a reserve; the limit is raised if it may be."""
    if resource is None:
        return MOST_CONNECTIONS
    # The system hands over connections many at a time, before those that are too many can be
    # closed.
    descriptors = 4096
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    if soft < descriptors:
        soft = descriptors if hard == resource.RLIM_INFINITY else min(descriptors, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(16, min(MOST_CONNECTIONS, soft - _SPARE_DESCRIPTORS))


class Connections:
    """The open connections of a server."""

    def __init__(self, most: int) -> None:
        """None are open yet.

        Parameters:
            most: How many may be open at the same time.
        """
        self._most = most
        self.most_answered = most + _ANSWERED_BEYOND
        self._open = set[Connection]()
        self._is_watched = False

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: "Connection") -> bool:
        """Take a new connection, for which others may be closed; False if no other can be."""
        self._open.add(connection)
        if not self._is_watched:
            self._is_watched = True
            connection.loop.call_later(_LOOKED_AT_SECONDS, self._look, connection.loop)
        if len(self._open) <= self._most:
            return True
        self._make_room(connection)
        return len(self._open) <= self._most

    def remove(self, connection: "Connection") -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)

    def _make_room(self, newest: "Connection") -> None:
        """Close an eighth of the connections, so that this is not done for each new one."""
        candidates = [
            connection
            for connection in self._open
            if connection.sending_since is not None and connection is not newest
        ]
        candidates.sort(key=lambda connection: connection.sending_since or 0.0)
        if not candidates:
            candidates = [connection for connection in self._open if connection.is_idle]
        for connection in candidates[: max(1, self._most // 8)]:
            connection.refuse(503, _TOO_MANY, ASK_AGAIN)
            self.remove(connection)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections whose request or whose reading of the answer takes too long."""
        now = loop.time()
        unsent_bytes = 0
        for connection in list(self._open):
            sending_since = connection.sending_since
            if sending_since is not None and now - sending_since > _ARRIVAL_SECONDS:
                error = f"the request was not there after {_ARRIVAL_SECONDS:g} seconds"
                connection.refuse(408, error, "send it faster")
            elif connection.unread_seconds(now) > _ARRIVAL_SECONDS:
                connection.transport.abort()
            else:
                unsent_bytes += connection.unsent_bytes
        if unsent_bytes > _MOST_UNSENT_BYTES:
            largest_first = sorted(self._open, key=lambda connection: -connection.unsent_bytes)
            for connection in largest_first:
                unsent_bytes -= connection.unsent_bytes
                connection.transport.abort()
                if unsent_bytes <= _MOST_UNSENT_BYTES:
                    break
        self._is_watched = bool(self._open)
        if self._is_watched:
            loop.call_later(_LOOKED_AT_SECONDS, self._look, loop)


class Connection(asyncio.Protocol):
    """Adds to a connection of uvicorn since when its client has been sending, and what it reads."""

    # Of uvicorn's own
    app: Any
    cycle: Any
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport

    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        """`uvicorns` are the arguments that uvicorn gives to a protocol."""
        super().__init__(**uvicorns)
        self._connections = connections
        # When the first byte of a request came that is not there as a whole; at first, when the
        # connection was opened.
        self.sending_since: float | None = None
        self.unsent_bytes = 0  # of answers, when they were last counted
        self._unread_since = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked and nothing is left to be sent."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return is_answered and not self.transport.get_write_buffer_size()

    def unread_seconds(self, now: float) -> float:
        """For how long the client has read nothing of an answer."""
        unsent_bytes = self.transport.get_write_buffer_size()
        if unsent_bytes == 0 or unsent_bytes < self.unsent_bytes:
            self._unread_since = now
        self.unsent_bytes = unsent_bytes
        return now - self._unread_since

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.sending_since = self._unread_since = self.loop.time()
        if not self._connections.add(self):
            self.app = _no_room
            if len(self._connections) > self._connections.most_answered:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.sending_since is None:
            self.sending_since = self.loop.time()
        super().data_received(data)
        if not self.is_receiving:
            self.sending_since = None

    @property
    def is_receiving(self) -> bool:
        """Whether a request has begun that is not there as a whole."""
        raise NotImplementedError

    def refuse(self, status: int, error: str, hint: str) -> None:
        """Close the connection, with an answer if none has begun."""
        if self.transport.is_closing():
            return
        if self.transport.get_write_buffer_size():  # the client does not read
            self.transport.abort()
            return
        has_begun = self.cycle is not None and (
            self.cycle.response_started and not self.cycle.response_complete
        )
        if not has_begun:
            self.transport.write(_raw_problem(status, error, hint))
        self.sending_since = None
        self.transport.close()


class H11Connection(Connection, H11Protocol):
    """A connection that is read by h11, which limits heads itself."""

    @property
    def is_receiving(self) -> bool:
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)


if HttpToolsProtocol is not None:

    class HttpToolsConnection(Connection, HttpToolsProtocol):
        """A connection that is read by httptools, which is faster and limits nothing."""

        is_receiving = False
        _bytes_beside_body = 0  # heads, and what stands between pieces of a body and after it

        def data_received(self, data: bytes) -> None:
            self._bytes_beside_body += len(data)
            super().data_received(data)
            if not self.is_receiving:
                self._bytes_beside_body = 0
            elif self._bytes_beside_body > MOST_HEAD_BYTES:
                self.refuse(431, HEAD_TOO_LARGE, SEND_LESS)

        def on_message_begin(self) -> None:
            self.is_receiving = True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            if len(self.pipeline) >= _MOST_PIPELINED:  # the parser then refuses all of them
                raise ValueError(f"more than {_MOST_PIPELINED} requests before an answer")
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._bytes_beside_body -= len(body)
            super().on_body(body)

        def on_message_complete(self) -> None:
            self.is_receiving = False
            self._bytes_beside_body = 0
            super().on_message_complete()


def _raw_problem(status: int, error: str, hint: str) -> bytes:
    """An answer without the help of uvicorn, which has no request to answer yet."""
    body = json.dumps({"error": error, "hint": hint}).encode()
    head = (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
        "retry-after: 1\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


_PHRASES = {
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
_no_room = problem_response(503, _TOO_MANY, ASK_AGAIN, CLOSING_HEADERS)
