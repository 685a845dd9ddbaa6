"""Where on a Milvus server an index is kept, and how."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from parabit.choices import CONSISTENCIES, MILVUS_INDEXES
from parabit.errors import IndexFolderError, did_you_mean

MOST_BITS = 32_768  # that Milvus takes
MORE = "_more"  # after the name of a collection: that of the parts which are too long for it


@dataclass(frozen=True)
class Milvus:
    """A Milvus server, and how an index is kept on it.

    `index` is `"BIN_FLAT"`, which compares all codes, or `"BIN_IVF_FLAT"`, which looks at `probes` of `lists` lists and
    may miss some. With the consistency `"strong"` a search finds all that was acknowledged before it, and waits some
    200 ms for it; see Milvus' documentation for `"session"`, `"bounded"` and `"eventually"`. A token or USER:PASSWORD
    is taken from the environment variable PARABIT_MILVUS_TOKEN.

    Example:
        >>> Milvus("http://localhost:19530").index
        'BIN_FLAT'
    """

    uri: str
    collection: str | None = None  # a name that no other has, if none is given
    index: str = "BIN_FLAT"
    consistency: str = "strong"
    lists: int = 1024
    probes: int = 64

    def check(self) -> "Milvus":
        """The same; an IndexFolderError says what of it makes no sense.

        Example:
            >>> Milvus("localhost:19530").check()
            Traceback (most recent call last):
            parabit.errors.IndexFolderError: 'localhost:19530' is no address of a Milvus server; give one such as \
http://localhost:19530
        """
        _check_uri(self.uri)
        if self.collection is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,199}", self.collection):
            raise IndexFolderError(
                f"a collection cannot be named {self.collection!r}", hint="use up to 200 letters, digits and _"
            )
        if self.collection is not None and self.collection.endswith(MORE):
            raise IndexFolderError(
                f"a collection cannot be named {self.collection!r}",
                hint=f"names that end in {MORE} are for the long texts of other indexes",
            )
        for what, given, known in (
            ("index of Milvus", self.index, MILVUS_INDEXES),
            ("consistency", self.consistency, CONSISTENCIES),
        ):
            if given not in known:
                hint = did_you_mean(given, known) or f"there are {', '.join(known)}"
                raise IndexFolderError(f"no {what} {given!r}", hint=hint)
        if not 1 <= self.probes <= self.lists <= 65_536:
            raise IndexFolderError(
                f"{self.probes} of {self.lists} lists cannot be looked at",
                hint="give 1 to 65,536 lists, and as many probes or fewer",
            )
        return self


def _check_uri(uri: str) -> None:
    if uri.endswith(".db") and "://" not in uri:
        raise IndexFolderError(
            f"{uri!r} is a file, as Milvus Lite takes one, and Milvus Lite 3 has no binary vectors",
            hint="give the address of a server, such as http://localhost:19530, or use the embedded index",
        )
    try:
        parts = urlsplit(uri)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        named = False
    if not named:
        raise IndexFolderError(
            f"{uri!r} is no address of a Milvus server", hint="give one such as http://localhost:19530"
        )
    if "@" in parts.netloc:  # which the folder would keep for everybody to read
        raise IndexFolderError(
            "the address has a password in it",
            hint="give USER:PASSWORD in the environment variable PARABIT_MILVUS_TOKEN",
        )
