"""What a corpus of any size would cost: hours, memory, disk and traffic, from costs that were measured."""

from parabit.planning.costs import Costs
from parabit.planning.plan import Plan, plan
from parabit.planning.question import Question, read_count
from parabit.planning.stages import Search, Stage

__all__ = ["Costs", "Plan", "Question", "Search", "Stage", "plan", "read_count"]
