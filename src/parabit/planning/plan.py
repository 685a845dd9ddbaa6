"""A plan: what all stages take, whether it works, and all that it takes for granted."""

from dataclasses import asdict, dataclass
from typing import Any

from parabit.planning.assumptions import Assumption, assumptions_of
from parabit.planning.costs import Costs
from parabit.planning.figures import Figures
from parabit.planning.question import Question
from parabit.planning.stages import Search, Stage, Working
from parabit.planning.training import Training
from parabit.planning.warnings import Warned, warnings_of


@dataclass(frozen=True)
class Plan:
    """What a corpus would take: a row for each stage, and what searching it takes."""

    question: Question
    figures: Figures
    stages: tuple[Stage, ...]
    search: Search
    warnings: tuple[str, ...]
    assumptions: tuple[Assumption, ...]

    def __getitem__(self, name: str) -> Stage:
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def hours(self) -> float:
        """Of all stages, one after the other."""
        return sum(stage.hours for stage in self.stages)

    @property
    def memory(self) -> float:
        """Bytes that a worker must have, for the stage that needs most."""
        return max(stage.memory for stage in self.stages)

    @property
    def disk(self) -> float:
        """Bytes of all that is written, if nothing is removed between the stages."""
        return sum(stage.disk for stage in self.stages)

    @property
    def traffic(self) -> float:
        """Bytes that all workers send or fetch from elsewhere."""
        return sum(stage.traffic for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """The plan for scripts: hours, and bytes."""
        return {
            "question": asdict(self.question),
            "corpus": asdict(self.figures),
            "stages": [
                {
                    "stage": stage.name,
                    "hours": stage.hours,
                    "memory_bytes_a_worker": stage.memory,
                    "disk_bytes": stage.disk,
                    "traffic_bytes": stage.traffic,
                    "traffic_bytes_a_worker": stage.traffic / stage.workers,
                    "limited_by": stage.limited_by,
                    "seconds": stage.seconds,
                }
                for stage in self.stages
            ],
            "total": {
                "hours": self.hours,
                "memory_bytes_a_worker": self.memory,
                "disk_bytes": self.disk,
                "traffic_bytes": self.traffic,
            },
            "search": asdict(self.search),
            "warnings": list(self.warnings),
            "assumptions": [asdict(assumption) for assumption in self.assumptions],
        }


def plan(question: Question, costs: Costs | None = None) -> Plan:
    """What each stage of a corpus takes, from counting its words to searching its codes.

    Example:
        >>> small, large = (plan(Question(documents=count)) for count in (10**6, 10**7))
        >>> [stage.name for stage in small.stages]
        ['counting', 'bags', 'training', 'encoding', 'index']
        >>> round(large["encoding"].hours / small["encoding"].hours, 3)
        10.0
        >>> small.traffic
        0.0
    """
    costs = costs or Costs.shipped()
    working, training = Working(question, costs), Training(question.training, costs)
    stages = (working.counting(), working.bags(), training.training(), working.encoding(), working.index())
    search = working.search()
    return Plan(
        question,
        training.figures,
        stages,
        search,
        tuple(warnings_of(Warned(question, training, stages, search))),
        tuple(assumptions_of(question, training)),
    )
