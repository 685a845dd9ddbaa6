"""A connection to a Milvus server, whose failures are told in words."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL, getLogger
from typing import Any

from parabit.errors import IndexFolderError, need

TOKEN = "PARABIT_MILVUS_TOKEN"
_SECONDS = 5.0  # to find out that nobody is there
_OLDEST = (2, 3, 2)  # that has arrays, which filters need
# Before, one that was killed may skip a part of its log when it starts again, if collections share a channel of it, as
# the 17th does with another: of what it had acknowledged, what is in its files is left (milvus-io/milvus#34255).
_READS_LOG = (2, 4, 6)
# Before, it may forget deletions, and find what was deleted or replaced again: when it loads a file, if many came
# meanwhile, which it now keeps until they are in the file (milvus-io/milvus#29625); and when it has just merged files,
# if a flush writes deletions to those that are no longer.
_REMEMBERS = (2, 4)
# How often to try again what a busy server refuses: for a second to read, and for some 15 to write. An insertion is not
# tried again, as it may be there.
_TRIES = {"search": 4, "query": 4, "insert": 0, "upsert": 10, "delete": 10}
_QUICK = {"has_collection", "describe_collection", "describe_index", "alter_collection_properties"}
_LIMITS = (10.0, 3600.0)  # seconds for what is quick, and for what has to read or write a whole collection
_MISSING = 100  # Milvus' number for a collection that is not there
_NOT_LOADED = (101, 103)  # for one that is there and cannot be searched yet, as after the server was started anew


class Server:
    """A Milvus server. `ask` calls what `pymilvus.MilvusClient` offers."""

    def __init__(self, uri: str) -> None:
        pymilvus = need("pymilvus", "milvus", IndexFolderError)
        # All that fails is raised, and told by us; its log would tell it a second time, with tracebacks.
        for name in ("pymilvus.decorators", "pymilvus.client.connection_manager"):
            getLogger(name).setLevel(CRITICAL + 1)
        self.uri = uri
        self.types = pymilvus.DataType
        self._error, self._rpc_error = pymilvus.MilvusException, need("grpc", "milvus", IndexFolderError).RpcError
        with self._told("connecting"):
            # A connection of its own, as a shared one would be closed for all.
            self._client = pymilvus.MilvusClient(
                uri=uri, token=os.environ.get(TOKEN, ""), timeout=_SECONDS, dedicated=True
            )
            self.version = str(self._client.get_server_version(timeout=_SECONDS)).removeprefix("v")
        found = _numbers(self.version)
        self.reads_log = not found or found >= _READS_LOG  # all of it, when it starts again
        self.remembers = not found or found >= _REMEMBERS  # all deletions
        if found and found < _OLDEST:
            self.close()
            raise IndexFolderError(
                f"the Milvus server at {uri} is of version {self.version}",
                hint=f"parabit needs {'.'.join(map(str, _OLDEST))} or later",
            )

    @property
    def fault(self) -> str:
        """What is wrong with this version, in words; nothing of a later one."""
        if self.reads_log:
            return ""
        merging = "" if self.remembers else ", and leaves it to `parabit compact` to merge files"
        sound = ".".join(map(str, _READS_LOG))
        return f"this version may lose what is being written when it is killed{merging}; better is {sound} or later"

    def ask(self, what: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the client."""
        if what in _TRIES:
            options["retry_times"] = _TRIES[what]
        else:
            options.setdefault("timeout", _LIMITS[what not in _QUICK])
        with self._told(what):
            try:
                return getattr(self._client, what)(*arguments, **options)
            except self._error as problem:
                if what not in ("search", "query") or problem.code not in _NOT_LOADED:
                    raise
                self._client.load_collection(arguments[0], timeout=_LIMITS[1])
                return getattr(self._client, what)(*arguments, **options)

    def schema(self, description: str) -> Any:
        """An empty schema of a collection."""
        return self._client.create_schema(auto_id=False, enable_dynamic_field=False, description=description)

    def index_params(self) -> Any:
        """No indexes yet."""
        return self._client.prepare_index_params()

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    @contextmanager
    def _told(self, doing: str) -> Iterator[None]:
        try:
            yield
        except self._error as problem:
            raise self._in_words(doing, problem.code, problem.message, problem.__cause__) from problem
        except self._rpc_error as problem:
            raise self._in_words(doing, None, str(problem)) from problem

    def _in_words(self, doing: str, code: object, message: str, cause: BaseException | None = None) -> IndexFolderError:
        said = " ".join(str(message).split())
        lower = f"{said} {cause}".lower()  # a wrong password is told by the cause alone
        if "unauthenticated" in lower or "auth check failure" in lower:
            return IndexFolderError(
                f"the Milvus server at {self.uri} does not let us in", hint=f"set {TOKEN} to a token or USER:PASSWORD"
            )
        if doing == "connecting" or "unavailable" in lower or "failed to connect" in lower or "closed channel" in lower:
            return IndexFolderError(
                f"no Milvus server answers at {self.uri}", hint="start it, or correct the address, and try again"
            )
        if code == _MISSING:
            return IndexFolderError(
                f"the Milvus server at {self.uri} has no such collection any more", hint="build the index anew"
            )
        return IndexFolderError(
            f"the Milvus server at {self.uri} failed to {doing.replace('_', ' ')}: {said[:500]}",
            hint="its log may say why",
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version; none of one that has no such.

    Example:
        >>> _numbers("2.3.5-lite"), _numbers("master-1234")
        ((2, 3, 5), ())
    """
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(map(int, match.groups())) if match else ()
