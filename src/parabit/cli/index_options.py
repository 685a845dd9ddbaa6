"""What the verbs share that make an index or use one."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parabit.choices import CONSISTENCIES, MILVUS_INDEXES
from parabit.cli.frame import check_spelling, completing
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from parabit.index import Milvus

MILVUS = "milvus"  # the back end that is a server

IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.", show_default=False)]
MilvusUri = Annotated[
    str | None,
    typer.Option(
        "--uri",
        metavar="http://HOST:PORT",
        help="The Milvus server, for --backend milvus. A token or USER:PASSWORD is read from PARABIT_MILVUS_TOKEN.",
        show_default=False,
    ),
]
MilvusCollection = Annotated[
    str | None,
    typer.Option("--collection", metavar="NAME", help="The collection to make there. Default: a free name."),
]
MilvusIndex = Annotated[
    str | None,
    typer.Option(
        "--milvus-index",
        metavar="INDEX",
        help="How Milvus searches: BIN_FLAT compares all codes, BIN_IVF_FLAT some lists of them, and may miss some. "
        "Default: BIN_FLAT.",
        show_default=False,
        autocompletion=completing(MILVUS_INDEXES),
    ),
]
MilvusConsistency = Annotated[
    str | None,
    typer.Option(
        "--consistency",
        metavar="LEVEL",
        help=f"What a search on Milvus is sure to find, {', '.join(CONSISTENCIES)}. strong finds all that was "
        "acknowledged and waits some 200 ms for it. Default: strong.",
        show_default=False,
        autocompletion=completing(CONSISTENCIES),
    ),
]


def milvus_of(
    backend: str, uri: str | None, collection: str | None, index: str | None, consistency: str | None
) -> "Milvus | None":
    """The server that the options of a command name; None where the index is an embedded one."""
    options = {"uri": uri, "collection": collection, "index": index, "consistency": consistency}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if backend != MILVUS:
        if given:
            option = {"index": "milvus-index"}.get(name := next(iter(given)), name)
            raise ParabitError(f"--{option} is for an index on Milvus", hint="give --backend milvus, too")
        return None
    if uri is None:
        raise ParabitError("--backend milvus needs a server", hint="give --uri, such as http://localhost:19530")
    check_spelling("index of Milvus", index, MILVUS_INDEXES)
    check_spelling("consistency", consistency, CONSISTENCIES)
    from parabit.index import Milvus

    return Milvus(**given).check()


def server_of(about: Mapping[str, Any]) -> str:
    """Where an index on Milvus is, for people, and what is wrong with the server; nothing of an embedded one."""
    if not about.get("milvus"):
        return ""
    where = f"on Milvus {about['milvus']['version']} at {about['milvus']['uri']}, {about['milvus']['collection']}"
    return "; ".join(filter(None, [where, about["milvus"]["fault"]]))


def readable_size(size: int) -> str:
    """A size for people.

    Example:
        >>> readable_size(999), readable_size(12_345), readable_size(12_345_678)
        ('999 bytes', '12.3 KB', '12.3 MB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"


def size_on_disk(about: Mapping[str, Any]) -> str:
    """What an index takes, and how much of it is the model, which does not grow."""
    model = f", {readable_size(about['model_bytes'])} of it the model" if about["model_bytes"] else ""
    return f"{readable_size(about['bytes'])} on the disk{model}"


def read_text(source: str) -> str:
    """The text of a file, or of standard input where its name is `-`."""
    if source != "-":
        try:
            content = Path(source).read_bytes()
        except OSError as problem:
            raise ParabitError(f"{source} cannot be read: {problem.strerror}", hint="give the name of a file") from None
        return content.decode("utf-8-sig", "replace")
    if sys.stdin is None:
        raise ParabitError("standard input is closed", hint="give it something to read")
    return sys.stdin.buffer.read().decode("utf-8-sig", "replace")
