"""The card of a model: what it is, what it was trained on, how well that went."""

from collections.abc import Mapping
from typing import Any

from parabit import __version__
from parabit.networks.config import Shape


def write_card(config: Mapping[str, Any], slim: bool) -> str:
    """The card, in Markdown. It holds no time and no date: the same training writes the same card."""
    shape, training, recipe = Shape(**config["shape"]), config["training"], config["recipe"]
    history = training["history"]
    kept = training["kept"]
    lines = [
        f"# {shape.name}, {shape.size} a document",
        "",
        f"Trained by parabit {__version__}. Load it with `parabit.ParagraphVectors.load(folder)`.",
        "",
        "| | |",
        "| --- | --- |",
        f"| documents | {training['documents']:,} |",
        f"| words of text | {training['tokens']:,} |",
        f"| vocabulary | {training['words']:,} words, {training['bigrams']:,} bigrams |",
        f"| preset | {config['parameters']['preset']} |",
        f"| epochs | {len(history)} of {recipe['epochs']}; the parameters are those after epoch {kept} |",
        f"| loss a word in training | {history[kept - 1]['loss']:.4f} |",
    ]
    completion = history[kept - 1]["completion"]
    if completion is not None:
        lines.append(f"| document completion, held out: loss a word | {completion:.4f} |")
    lines += [
        f"| embeddings of the training documents | {'left out (slim)' if slim else 'in `documents`'} |",
        "",
        "Losses are minus the logarithm of a word's probability, weighted as in training. Document completion infers",
        "held-out documents from half of what they say and scores the other half.",
        "",
        "`config.json` has every parameter, `vocabulary.parquet` the words, `model.safetensors` the weights.",
        "",
        "## Losses by epoch",
        "",
        "| epoch | training | completion |",
        "| --- | --- | --- |",
    ]
    for number, epoch in enumerate(history, start=1):
        score = "" if epoch["completion"] is None else f"{epoch['completion']:.4f}"
        lines.append(f"| {number} | {epoch['loss']:.4f} | {score} |")
    return "\n".join(lines) + "\n"
