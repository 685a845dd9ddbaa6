"""Runs the command with a model that does something odd at the shard part-01: its worker dies, or waits.

A program of its own, so that Ray sends the model's class along.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import parabit.model
from parabit.cli import main
from parabit.model import TextEncoder, load_model

WAITS = 120.0  # seconds at most, so that no worker stays for ever


class Odd(TextEncoder):
    """A model for which one shard is odd."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Odd, super().__reduce__()[1]

    def infer_each(self, corpus: Any, *options: Any) -> Any:
        """End the process as a lack of memory would, or wait for a file."""
        if "part-01" in corpus.sources[0].name:
            go = Path(self.config["go"])
            if go.name == "never":
                os._exit(1)
            end = time.monotonic() + WAITS
            while not go.exists() and time.monotonic() < end:
                time.sleep(0.02)
        return super().infer_each(corpus, *options)


def load_odd(folder: Path) -> Odd:
    """A model that waits at the odd shard until there is a file; for one named `never`, its worker dies."""
    model = load_model(folder)
    return Odd(model.vocabulary, {**model.config, "go": go}, model.tensors)


if __name__ == "__main__":
    go = str(Path(sys.argv.pop(1)).absolute())
    parabit.model.load_model = load_odd  # type: ignore[assignment]
    main()
