"""What each stage costs, as `benchmarks/stage_costs.py` measured it on a machine."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from parabit.errors import ParabitError

FORMAT = 1
_SHIPPED = Path(__file__).with_name("stage_costs.json")

# The costs that a plan is made of, in nanoseconds on one core. A unit is a column of an embedding or the hidden layer.
NANOSECONDS = (
    *("read_character", "cut_character", "bigram_token", "bag_word", "bag_bigram_word", "hash_byte"),
    *("count_word", "count_bigram_word"),
    *("semantic_document_unit", "project_entry_unit", "neighbour_candidate", "neighbour_candidate_unit"),
    *("turn_unit_unit", "begin_unit_unit"),
    *("step", "step_sample", "step_entry", "step_entry_unit", "step_candidate_unit", "step_row_unit"),
    *("update", "update_row_unit", "update_all_row_unit", "update_document_unit", "exchange_byte", "completion_unit"),
    *("distill_entry_unit", "distill_feature_unit", "product_entry", "product_entry_unit", "encode_document"),
    *("scan_code", "scan_byte", "scan_alone_code", "scan_alone_byte"),
)
# What the documents were like that it was measured on, a document or a token.
_ABOUT = (
    *("documents", "characters", "tokens", "words", "entries", "entries_power", "bigram_entries", "id"),
    *("counted_words", "counted_pairs", "word_bytes"),
)
_BYTES = ("process", "counting", "bookkeeping", "feature_name", "feature_memory")
_CURVES = ("words", "bigrams", "rows", "bigram_rows", "index", "multi_build", "multi_alone", "threads")

Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Costs:
    """Measured costs, and the machine and the corpus that they were measured on.

    Example:
        >>> costs = Costs.shipped()
        >>> costs.nanoseconds["cut_character"] > 0
        True
    """

    nanoseconds: Mapping[str, float]
    about: Mapping[str, float]  # what the corpus's documents are like
    bytes: Mapping[str, float]
    curves: Mapping[str, Curve]  # what was measured at several sizes
    corpus: str
    date: str
    machine: Mapping[str, Any]
    sources: Mapping[str, str]  # results that figures were taken from, instead of measured anew

    @classmethod
    def shipped(cls) -> "Costs":
        """Those that parabit comes with."""
        return _read(_SHIPPED)

    @classmethod
    def load(cls, path: Path | str) -> "Costs":
        """Those of another machine: what `python benchmarks/stage_costs.py` wrote there."""
        return _read(Path(path))

    def seconds(self, **amounts: float) -> float:
        """What so much of some costs takes on one core.

        Example:
            >>> costs = Costs.shipped()
            >>> costs.seconds(cut_character=2e9) == 2 * costs.seconds(cut_character=1e9)
            True
        """
        return sum(self.nanoseconds[name] * amount for name, amount in amounts.items()) * 1e-9

    def at(self, curve: str, size: float, most: float = math.inf) -> float:
        """A curve at a size: between what was measured, and beyond it, a power of the size, this one at most."""
        return on_curve(self.curves[curve], size, most)


def on_curve(points: Sequence[tuple[float, float]], size: float, most: float = math.inf) -> float:
    """The value of a curve at a size, along straight lines between the logarithms of its points and on beyond them.

    Beyond the last point it grows with no higher power of the size than `most`.

    Example:
        >>> round(on_curve([(1, 10), (100, 1000)], 10)), round(on_curve([(1, 10), (100, 1000)], 1000))
        (100, 10000)
        >>> round(on_curve([(1, 10), (100, 1000)], 10_000, most=0.5))
        10000
    """
    last, highest = points[-1]
    if size > last and most < math.inf:
        reached = on_curve(points, size)
        return min(reached, highest * math.exp(most * math.log(size / last)))
    place = next((place for place, (end, _) in enumerate(points[1:-1], start=1) if size <= end), len(points) - 1)
    (before, low), (after, high) = points[place - 1], points[place]
    power = math.log(high / low) / math.log(after / before)
    return low * math.exp(power * math.log(size / before))


@cache
def _read(path: Path) -> Costs:
    again = "measure it with `python benchmarks/stage_costs.py`"
    try:
        content = json.loads(path.read_text())
        newer = content["format"] > FORMAT
        curves = {
            name: tuple((float(size), float(value)) for size, value in content["curves"][name]) for name in _CURVES
        }
        costs = Costs(
            nanoseconds=_numbers(content["nanoseconds"], NANOSECONDS),
            about=_numbers(content["about"], _ABOUT),
            bytes=_numbers(content["bytes"], _BYTES),
            curves=curves,
            corpus=str(content["corpus"]),
            date=str(content["date"]),
            machine=dict(content["machine"]),
            sources=dict(content["sources"]),
        )
    except OSError as problem:
        raise ParabitError(f"{path} cannot be read: {problem.strerror}", hint=again) from problem
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise ParabitError(f"{path} does not hold the costs of all stages", hint=again) from problem
    if newer:
        raise ParabitError(f"{path} has format {content['format']}, newer than this parabit reads", hint=again)
    if any(len(curve) < 2 or min(min(point) for point in curve) <= 0 for curve in curves.values()):
        raise ParabitError(f"{path} has a curve that is none", hint=again)
    return costs


def _numbers(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    found = {name: float(given[name]) for name in names}
    if not all(math.isfinite(value) and value >= 0 for value in found.values()):
        raise ValueError("a cost is no number")
    return found
