"""How far the constants of stage_costs.py carry: what follows from them beside what was measured."""

import json
from pathlib import Path
from typing import Any

from common import RESULTS
from parabit.planning import Costs, Question, sizes
from parabit.planning.stages import Working
from parabit.planning.training import Training

BITS = 128
_HERE = 1e6  # Gbit/s: what workers on one machine send each other never leaves it


def beside(name: str, predicted: float, measured: float) -> dict[str, Any]:
    """A prediction, what it should have been, and the ratio."""
    print(f"{name}: {predicted:,.4g} predicted, {measured:,.4g} measured, {predicted / measured:.2f} times")
    shown = {"predicted": float(f"{predicted:.4g}"), "measured": float(f"{measured:.4g}")}
    return {**shown, "ratio": round(predicted / measured, 2)}


def checks(
    path: Path, written: dict[str, Any], other: dict[str, Any], exchanged: list[dict[str, Any]]
) -> dict[str, Any]:
    """Sizes, times of another corpus, memory and traffic."""
    costs = Costs.load(path)
    return {
        "bytes": _sizes(costs, written),
        "20newsgroups_seconds": _times(costs, other),
        "memory": _memory(costs),
        "workers": _workers(costs, other),
        "two_workers": {one["corpus"].partition("/")[0]: _traffic(costs, one) for one in exchanged},
    }


def _sizes(costs: Costs, written: dict[str, Any]) -> dict[str, Any]:
    about, count = costs.about, costs.about["documents"]
    ids = about["id"]
    features, hidden = written["features"], BITS + 1
    model = sizes.model(features, hidden, BITS, costs.bytes["feature_name"], count)
    bigrams = sizes.bags(count, written["bigram_words"], written["bigram_entries"], ids)
    return {
        "bags": beside("bags", sizes.bags(count, about["words"], about["entries"], ids), written["bags"]),
        "bags with bigrams": beside("bags with bigrams", bigrams, written["bags_with_bigrams"]),
        "model": beside("model", model, written["model"]),
        "index": beside("index", sizes.index(count, BITS // 8, about["id"]), written["index_bytes"]),
    }


def _times(costs: Costs, other: dict[str, Any]) -> dict[str, Any]:
    question = Question(
        documents=int(other["documents"]), bits=BITS, words=other["words"], characters=other["characters"],
        vocabulary=int(other["features"]), epochs=int(other["epochs"]), id_bytes=other["id"],
    )  # fmt: skip
    working = Training(question, costs)
    text = question.documents * working.figures.characters
    predicted = {
        "reading": costs.seconds(read_character=text),  # of JSON lines, here of an archive of small files
        "cutting words": costs.seconds(cut_character=text),
        "bags": working.bags().seconds["cores"],
        "training": working.starting + working.arithmetic,
        "fast encoder": working.ending,
        "encoding": working.encoding().seconds["cores"] - costs.seconds(read_character=text),
        "index": costs.at("index", question.documents),
    }
    figures = working.figures
    grown = Working(Question(documents=question.documents, words=question.words), costs).figures
    return {
        **{name: beside(name, seconds, other[name]) for name, seconds in predicted.items()},
        "distinct words of a document": beside("distinct words", figures.entries, other["entries"]),
        "vocabulary": beside("vocabulary", grown.features, other["features"]),
    }


def _memory(costs: Costs) -> dict[str, Any]:
    """Trainings that train_memory.py measured, without the pages of files."""
    measured = json.loads((RESULTS / "train_memory.json").read_text())["sizes"]
    found = {}
    for row in measured:
        if row["neighbours"]:
            question = Question(documents=row["documents"], bits=BITS, vocabulary=row["words"], memory=64)
            name = f"{row['documents']:,} documents"
            found[name] = beside(name, Training(question, costs).memory, row["own_mb"] * 2**20)
    return found


def _traffic(costs: Costs, exchanged: dict[str, Any]) -> dict[str, Any]:
    question = Question(
        documents=exchanged["documents"], bits=BITS, workers=2,
        words=exchanged["words"], vocabulary=exchanged["features"], network=_HERE,
    )  # fmt: skip
    training = Training(question, costs)
    epoch = (training.arithmetic + training.exchange) / question.epochs
    sent = beside(f"{exchanged['corpus']}: sent by a worker in an epoch", training.sent_an_epoch, exchanged["sent"])
    seconds = beside("an epoch of two workers", epoch, exchanged["seconds"])
    return {"documents": exchanged["documents"], "bytes sent": sent, "seconds": seconds}


def _workers(costs: Costs, other: dict[str, Any]) -> dict[str, Any]:
    """Trainings that train_workers.py measured on another machine, with all words and one thread a worker."""
    measured = json.loads((RESULTS / "train_workers.json").read_text())
    sent = {row["workers"]: row["mb_sent_an_epoch_by_a_worker"] for row in measured["quality"]}
    found = {}
    for row in measured["speed"]:
        if row["threads"] != 1:
            continue
        workers = row["workers"]
        question = Question(
            documents=measured["documents"], bits=BITS, workers=workers, words=other["tokens"],
            vocabulary=measured["words"], network=_HERE,
        )  # fmt: skip
        training = Training(question, costs)
        epoch = (training.arithmetic + training.exchange) / question.epochs
        name = f"{workers} worker{'s' * (workers > 1)}"
        found[name] = {"seconds": beside(f"an epoch of {name}", epoch, row["seconds_an_epoch"])}
        if workers > 1:
            found[name]["bytes sent"] = beside(f"sent with {name}", training.sent_an_epoch, sent[workers] * 1e6)
    return found
