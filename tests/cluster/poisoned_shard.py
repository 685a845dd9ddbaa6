"""Encodes a corpus of which one shard kills its worker, or counts it; a program of its own, so that Ray sends its
classes along."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from parabit import ParagraphVectors
from parabit.cluster import build_vocabulary_on_ray, connected, encode_shards, open_shards
from parabit.corpus import ReadOptions
from parabit.errors import CorpusError
from parabit.text import Tokenizer, VocabularyRule


class Poisoned(ParagraphVectors):
    """A model that cannot bear one shard."""

    def infer_each(self, corpus: Any, *options: Any) -> Any:
        """End the process, as a lack of memory would."""
        if "part-01" in corpus.source.name:
            os._exit(1)
        return super().infer_each(corpus, *options)


class PoisonedTokenizer(Tokenizer):
    """Cannot bear the first text of that shard."""

    def tokenize(self, texts: Any) -> Any:
        """End the process."""
        if poison in texts:
            os._exit(1)
        return super().tokenize(texts)


if __name__ == "__main__":
    shards = open_shards("corpus", ReadOptions())
    with connected(sys.argv[1]) as ray:
        try:
            if sys.argv[2] == "encode":
                model = ParagraphVectors.load("model")
                model.__class__ = Poisoned
                encode_shards(ray, model, "corpus", shards, "codes")
            else:
                poison = json.loads(Path("corpus", "part-01.jsonl").read_text().splitlines()[0])["text"]
                build_vocabulary_on_ray(ray, shards, VocabularyRule(PoisonedTokenizer()))
        except CorpusError as problem:
            print(problem)  # noqa: T201
