"""Whatever is done to a store in whatever order, it holds what a plain dictionary would."""

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from made_up_documents import Document, batch_of, check, document, make_store

from parabit.index.store import Id, Store

IDS = st.one_of(st.integers(-3, 8), st.sampled_from(["", "1", "é", "a" * 300]))
DOCUMENTS = st.dictionaries(IDS, st.integers(0, 500).map(document), max_size=5)


class StoreMachine(RuleBasedStateMachine):
    """A writer, and a reader that looks now and then."""

    @initialize(documents=DOCUMENTS, each=st.integers(1, 3))
    def create(self, documents: dict[Id, Document], each: int) -> None:
        self.root = Path(tempfile.mkdtemp())
        make_store(self.root / "index", documents, each)
        self.expected = dict(documents)
        self.ids = set(documents)
        self.store = Store(self.root / "index", write=True)
        self.reader = Store(self.root / "index")

    @rule(documents=DOCUMENTS)
    def append(self, documents: dict[Id, Document]) -> None:
        new = {identity: some for identity, some in documents.items() if identity not in self.expected}
        self.store.put(batch_of(new))
        self.expected |= new
        self.ids |= set(new)

    @rule(data=st.data())
    @precondition(lambda self: self.expected)
    def delete(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.sampled_from(list(self.expected)), unique=True))
        self.store.put(None, gone)
        for identity in gone:
            del self.expected[identity]

    @rule(documents=DOCUMENTS)
    def update(self, documents: dict[Id, Document]) -> None:
        known = {identity: some for identity, some in documents.items() if identity in self.expected}
        self.store.put(batch_of(known))
        self.expected |= known

    @rule()
    def compact(self) -> None:
        self.store.compact()

    @rule(write=st.booleans())
    def open_again(self, write: bool) -> None:
        self.store.close()
        if not write:
            with Store(self.root / "index") as store:
                check(store, self.expected, self.ids)
        self.store = Store(self.root / "index", write=True)

    @rule()
    def read_elsewhere(self) -> None:
        self.reader.refresh()
        check(self.reader, self.expected, self.ids)

    @rule()
    def save(self) -> None:
        self.store.save(self.root / "copy", overwrite=True)
        with Store(self.root / "copy") as copy:
            check(copy, self.expected, self.ids)

    @invariant()
    def holds_what_a_dictionary_holds(self) -> None:
        if hasattr(self, "store"):
            check(self.store, self.expected, self.ids)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.reader.close()
            shutil.rmtree(self.root)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
