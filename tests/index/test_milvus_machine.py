"""Whatever is done to an index on a real Milvus server in whatever order: the suite of the embedded index, on it."""

import hypothesis.strategies as st
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from test_index_machine import DOCUMENTS, QUESTIONS, IndexMachine, Question

from milvus_server import running
from parabit.index import Milvus
from parabit.index.store import Id

pytestmark = [pytest.mark.scale]


class MilvusMachine(IndexMachine):
    """The same, but that a reader finds what is there when it asks, and counts it when it is told to."""

    @initialize(documents=DOCUMENTS, bits=st.sampled_from([1, 12, 28, 128]))
    def create(self, documents: dict[Id, int], bits: int) -> None:  # type: ignore[override]
        self.place = Milvus(running().uri)
        self.make(documents, bits, backend="auto")

    @rule(questions=QUESTIONS)
    def search_elsewhere(self, questions: list[Question]) -> None:
        self.refresh()
        self.check(self.reader, self.seen, questions)

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.index._home._collection.drop()  # type: ignore[attr-defined]
        super().teardown()


def test_the_suite_of_the_embedded_index_holds_on_milvus() -> None:
    # A failure is told as it was found: to make it smaller would take hours.
    few = settings(max_examples=2, stateful_step_count=40, deadline=None, phases=[Phase.generate])
    run_state_machine_as_test(MilvusMachine, settings=few)
