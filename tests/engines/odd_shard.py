"""Runs the command with a model that does something odd at the shard part-01: its worker waits, or dies.

A program of its own, so that Ray sends the model's class along.
"""

import os
import sys
from pathlib import Path
from typing import Any

import parabit.model
from parabit.cli import main
from parabit.model import TextEncoder, load_model


class Odd(TextEncoder):
    """A model for which one shard is odd."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Odd, super().__reduce__()[1]

    def infer_each(self, corpus: Any, *options: Any) -> Any:
        """Wait until the pipe has been opened and closed, if it is there; without one, end as for lack of memory."""
        if "part-01" in corpus.sources[0].name:
            pipe = Path(self.config["pipe"])
            if pipe.name == "none":
                os._exit(1)
            if pipe.exists():
                pipe.read_bytes()
        return super().infer_each(corpus, *options)


def load_odd(folder: Path) -> Odd:
    """A model that waits at the odd shard; for a pipe named `none`, its worker dies."""
    model = load_model(folder)
    return Odd(model.vocabulary, {**model.config, "pipe": pipe}, model.tensors)


if __name__ == "__main__":
    pipe = str(Path(sys.argv.pop(1)).absolute())
    parabit.model.load_model = load_odd  # type: ignore[assignment]
    main()
