"""Encodes a corpus of which one shard kills its worker; a program of its own, so that Ray sends its class along."""

import os
import sys
from typing import Any

from parabit import ParagraphVectors
from parabit.cluster import connected, encode_shards, open_shards
from parabit.corpus import ReadOptions
from parabit.errors import CorpusError


class Poisoned(ParagraphVectors):
    """A model that cannot bear one shard."""

    def infer_each(self, corpus: Any, *options: Any) -> Any:
        """End the process, as a lack of memory would."""
        if "part-01" in corpus.source.name:
            os._exit(1)
        return super().infer_each(corpus, *options)


if __name__ == "__main__":
    shards = open_shards("corpus", ReadOptions())
    with connected(sys.argv[1]) as ray:
        try:
            model = ParagraphVectors.load("model")
            model.__class__ = Poisoned
            encode_shards(ray, model, "corpus", shards, "codes")
        except CorpusError as problem:
            print(problem)  # noqa: T201
