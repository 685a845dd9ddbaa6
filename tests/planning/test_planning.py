"""What a plan says follows from what was measured, and its sizes are those of real files and tables."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from parabit import Document, Index, ParabitError, ParagraphVectors, VocabularyRule, build_bags
from parabit.index.backends.multi import Multi
from parabit.index.backends.tables import Tables
from parabit.networks import Checkpoints, Documents
from parabit.networks.exact import statistics_of
from parabit.networks.recipe import preset
from parabit.networks.shape import choose_shape
from parabit.networks.training import Training as RealTraining
from parabit.planning import Costs, Plan, Question, plan, sizes
from parabit.planning.costs import NANOSECONDS, on_curve
from parabit.planning.figures import BIGRAM_SAMPLES, NEIGHBOURS, SAMPLES
from parabit.planning.training import Training
from parabit.progress import silent

ROOT = Path(__file__).parent.parent.parent
COSTS = Costs.shipped()
STAGES = ["counting", "bags", "training", "encoding", "index"]


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Some thousand documents of made-up words, some of them frequent."""
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + int(letter)) for letter in rng.integers(0, 26, 6)) for _ in range(3000)]
    drawn = (3000 * rng.random((4000, 30)) ** 3).astype(int)
    return [Document(f"document{number:06}", " ".join(words[word] for word in row)) for number, row in enumerate(drawn)]


@pytest.fixture(scope="module")
def model(documents: list[Document]) -> ParagraphVectors:
    return ParagraphVectors(bits=32, epochs=1, neighbours=0, start="random", min_count=2).fit(documents)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def hours(**question: object) -> dict[str, float]:
    return {stage.name: stage.hours for stage in plan(Question(**question)).stages}  # type: ignore[arg-type]


def test_the_package_carries_what_was_measured() -> None:
    shipped = ROOT / "src" / "parabit" / "planning" / "stage_costs.json"
    assert shipped.read_text() == (ROOT / "benchmarks" / "results" / "stage_costs.json").read_text()


def test_a_plan_needs_none_of_the_large_libraries() -> None:
    code = "import sys, parabit.planning; print(sorted({'numpy', 'polars', 'torch', 'scipy'} & sys.modules.keys()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_twice_the_documents_take_twice_as_long_to_count_and_encode() -> None:
    rarely = {"vocabulary": 10**6, "checkpoint_every": 1e9}  # they grow with documents, and so does their number
    one, two = hours(documents=10**8, **rarely), hours(documents=2 * 10**8, **rarely)
    assert list(one) == STAGES
    for stage in ("counting", "bags", "encoding"):
        assert two[stage] == pytest.approx(2 * one[stage])
    assert 1.9 < two["training"] / one["training"] < 2.1
    assert two["index"] > 2 * one["index"]  # larger tables are farther from the processor


def test_more_workers_or_cores_count_and_encode_faster() -> None:
    one, many, wide = (hours(documents=10**8, **more) for more in ({}, {"workers": 8}, {"cores": 2}))
    for stage in ("counting", "encoding"):
        assert many[stage] == pytest.approx(one[stage] / 8)
        assert one[stage] / 2 <= wide[stage] < one[stage]


def test_one_worker_sends_nothing_and_more_send_more() -> None:
    alone = plan(Question(documents=10**7))
    assert {stage.traffic for stage in alone.stages} == {0.0}
    assert {stage.seconds["network"] for stage in alone.stages} == {0.0}
    sent = [Training(Question(documents=10**7, workers=workers), COSTS).sent_an_epoch for workers in (1, 2, 4, 8, 64)]
    assert sent[0] == 0
    assert sent == sorted(sent)


def test_training_is_fastest_with_as_many_workers_as_it_says() -> None:
    question = Question(documents=10**7, workers=64)
    best, fewest = Training(question, COSTS).best_workers()
    tried = {
        workers: Training(replace(question, workers=workers), COSTS).training().hours for workers in (1, 2, 4, 8, 64)
    }
    assert fewest <= min(tried.values())
    assert tried.get(best, fewest) == fewest
    assert plan(replace(question, train_workers=best))["training"].hours == pytest.approx(fewest)


def test_a_stage_takes_as_long_as_what_it_is_limited_by() -> None:
    rare = Question(documents=10**8, checkpoint_every=1e12)
    slow = {"disk": replace(rare, disk=0.01), "network": replace(rare, workers=4, network=1e-6)}
    for limit, question in slow.items():
        for stage in plan(question).stages:
            assert stage.limited_by == limit
            assert stage.seconds[limit] == max(stage.seconds.values())
            assert stage.hours * 3600 >= stage.seconds[limit] * 0.999


@pytest.mark.parametrize("cost", NANOSECONDS)
def test_every_cost_counts(cost: str) -> None:
    ways = [(1, False), (1, True), (2, True)]
    questions = [Question(documents=10**6, workers=workers, bigrams=bigrams) for workers, bigrams in ways]
    dearer = replace(COSTS, nanoseconds={**COSTS.nanoseconds, cost: 2 * COSTS.nanoseconds[cost] + 1})

    def spent(made: Plan) -> list[float]:
        scans = [made.search.milliseconds, made.search.milliseconds_in_a_batch]
        return [*(sum(stage.seconds.values()) for stage in made.stages), *scans]

    before, after = ([taken for one in questions for taken in spent(plan(one, costs))] for costs in (COSTS, dearer))
    assert before != after
    assert all(late >= early for early, late in zip(before, after, strict=True))


def test_curves_go_through_what_was_measured_and_on_beyond_it() -> None:
    for points in COSTS.curves.values():
        for at, value in points:
            assert on_curve(points, at) == pytest.approx(value)
    assert on_curve([(10, 100), (100, 1000), (1000, 2000)], 1) == pytest.approx(10)
    assert on_curve([(10, 100), (100, 1000), (1000, 2000)], 10_000) == pytest.approx(4000)
    assert on_curve([(10, 100), (100, 1000)], 10_000, most=0.5) == pytest.approx(10_000)
    assert on_curve([(10, 100), (100, 1000)], 50, most=0.5) == pytest.approx(500)


def test_what_is_planned_with_is_the_default_recipe() -> None:
    shape = choose_shape(bits=128)
    words, pairs = preset("default", shape), preset("default", shape, bigrams=True)
    question = Question(documents=10**6)
    assert (words.samples, pairs.samples, words.neighbours) == (SAMPLES, BIGRAM_SAMPLES, NEIGHBOURS)
    assert (words.epochs, words.batch_size) == (question.epochs, question.batch_size)
    for count in (100, 5000, 10**6):
        batch = min(words.batch_size, max(32, count // words.fewest_steps))
        assert Training(Question(documents=count), COSTS).figures.batch == batch


def test_bags_are_as_large_as_predicted(documents: list[Document], tmp_path: Path) -> None:
    for bigrams in (False, True):
        _, bags = build_bags(documents, tmp_path / str(bigrams), VocabularyRule(bigrams=bigrams, min_count=2))
        count = len(bags)
        predicted = sizes.bags(count, len(bags.tokens) / count, len(bags.features) / count, ids=14)
        assert size_of(bags.folder) == pytest.approx(predicted, rel=0.05)


def test_a_model_is_as_large_as_predicted(model: ParagraphVectors, tmp_path: Path) -> None:
    features = len(model.vocabulary_)
    for slim in (True, False):
        model.save(tmp_path / str(slim), slim=slim)
        name = (tmp_path / str(slim) / "vocabulary.parquet").stat().st_size / features
        trained = 0 if slim else model.vocabulary_.documents
        predicted = sizes.model(features, hidden=33, units=32, name=name, documents=trained)
        assert size_of(tmp_path / str(slim)) == pytest.approx(predicted, rel=0.03)


def test_an_index_is_as_large_as_predicted(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (20_000, 16), dtype=np.uint8)
    ids = [f"document{number:05}" for number in range(len(codes))]
    Index.of_codes(codes, 128, tmp_path / "flat", ids=ids, backend="flat").close()
    plain = sizes.index(len(codes), code=16, ids=13)
    assert size_of(tmp_path / "flat") == pytest.approx(plain, rel=0.02)
    Index.of_codes(codes, 128, tmp_path / "multi", ids=ids, backend="multi").close()
    assert size_of(tmp_path / "multi") == pytest.approx(plain + sizes.hashing(len(codes), 128), rel=0.02)


@pytest.mark.parametrize("bits", [16, 28, 64, 128, 256])
def test_hash_tables_are_as_large_as_predicted(bits: int) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (30_000, bits // 8 + bool(bits % 8)), dtype=np.uint8)
    if bits % 8:
        codes[:, -1] &= 0xF0
    built = (Multi if bits > 40 else Tables).build(codes, bits)
    assert sum(array.nbytes for array in built.arrays.values()) == pytest.approx(sizes.hashing(30_000, bits), rel=0.01)


def test_training_keeps_and_saves_tables_of_the_predicted_size(
    documents: list[Document], model: ParagraphVectors, tmp_path: Path
) -> None:
    _, bags = build_bags(documents, tmp_path / "bags", VocabularyRule(min_count=2))
    read = Documents(bags.features, bags.counts, bags.feature_offsets, bags.tokens, bags.token_offsets)
    shape = choose_shape(bits=32)
    checkpoints = Checkpoints(tmp_path / "training", {})
    real = RealTraining(
        read, statistics_of(model.vocabulary_), shape, preset("default", shape, neighbours=0), tmp_path, 0, "cpu",
        checkpoints, silent,
    )  # fmt: skip
    state = real._start()
    held = [tensor for table in state.tables.values() for tensor in (table.values, table.squares)]
    predicted = sizes.word_tables(len(model.vocabulary_), 33) + sizes.document_tables(len(documents), 32)
    assert sum(tensor.nbytes for tensor in [*held, *state.best.values()]) == predicted
    real.steps = 1
    real._save(state)
    assert size_of(tmp_path / "training") == pytest.approx(predicted, rel=0.01)
    question = Question(documents=len(documents), bits=32, vocabulary=len(model.vocabulary_))
    assert Training(question, COSTS).checkpoint == predicted
    [(_, batch)] = real.table.prepare([torch.arange(64)], real.sampler, real._rng("batch"))
    gradients = real.table.gradients(state.network, torch.zeros(64, 32), batch, 0, None)
    assert gradients.rows.nbytes + gradients.words.nbytes == len(gradients.rows) * sizes.row_sent(33)


def test_figures_of_the_corpus_can_be_given_or_are_those_measured() -> None:
    figures = plan(Question(documents=10**6)).figures
    assert figures.words == COSTS.about["words"]
    assert figures.characters == COSTS.about["characters"]
    given = plan(Question(documents=10**6, words=10, characters=99, vocabulary=777)).figures
    assert (given.words, given.characters, given.features) == (10, 99, 777)
    assert given.entries <= given.words
    both = plan(Question(documents=10**6, bigrams=True)).figures
    assert both.entries > figures.entries
    assert both.features > figures.features
    assert plan(Question(documents=10**8, workers=1000, train_workers=1)).figures.batch == 256  # of those that train


def test_embeddings_that_are_in_files_take_no_memory() -> None:
    small, large = (plan(Question(documents=10**7, memory=memory))["training"].memory for memory in (5, 500))
    assert large - small == pytest.approx(sizes.document_tables(10**7, 128), rel=0.25)
    few, many = (plan(Question(documents=10**7, memory=5, workers=workers))["training"].disk for workers in (1, 2))
    assert many - few > sizes.embeddings(10**7, 128)  # of all, for the first


def test_it_tells_where_a_plan_does_not_work() -> None:
    def mind(**question: object) -> str:
        return " / ".join(plan(Question(**question)).warnings)  # type: ignore[arg-type]

    large = mind(documents=10**9, workers=64)
    for said in (
        *("training needs", "what each knows of every document", "--train 10M"),
        *("exchanging rows takes", "--checkpoint-every", "--shards 100", "codes of 16 bytes are 16.0 GB"),
    ):
        assert said in large
    assert "max-size" in mind(documents=10**6, vocabulary=10**8)
    assert "one worker would be enough" in mind(documents=10**6, workers=4)
    assert mind(documents=10**5) == ""
    assert "1000 queries a second" in mind(documents=10**7, queries=1000)
    assert "each worker 1 of them" in mind(documents=10**7, workers=256)


def test_every_assumption_is_told_with_its_kind() -> None:
    told = [(one.kind, one.text) for one in plan(Question(documents=10**9, workers=64, cores=2, dim=300)).assumptions]
    assert [kind for kind, _ in told] == sorted(
        (kind for kind, _ in told), key=["measured", "derived", "assumed"].index
    )
    text = " / ".join(text for _, text in told)
    for said in (
        *(COSTS.date, COSTS.corpus, "Heaps' law", "10 Gbit/s", "16 GB", "500 MB/s", "30 epochs", "0.1 ms"),
        *("divides", "to each of 63 more", "is not counted"),
    ):
        assert said in text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"documents": 0}, "documents is 0"),
        ({"documents": 10, "bits": -1}, "bits is -1"),
        ({"documents": 10, "workers": 1.5}, "workers is 1.5"),
        ({"documents": 10, "network": 0}, "network is 0"),
        ({"documents": 10, "disk": float("nan")}, "disk is nan"),
        ({"documents": 10, "memory": float("inf")}, "memory is inf"),
        ({"documents": 10, "epochs": True}, "epochs is True"),
        ({"documents": 10, "dim": 100}, "dim 100 is less than bits 128"),
        ({"documents": 10, "train": 11}, "train on 11 of 10"),
        ({"documents": 10, "shards": 11}, "11 shards of 10"),
    ],
)
def test_a_question_that_makes_no_sense_is_told(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ParabitError, match=said) as told:
        Question(**wrong)  # type: ignore[arg-type]
    assert told.value.hint


def test_a_file_that_holds_no_costs_is_told(tmp_path: Path) -> None:
    whole = json.loads((ROOT / "benchmarks" / "results" / "stage_costs.json").read_text())
    path = tmp_path / "costs.json"
    for content in ("", "[]", "{}", json.dumps(whole | {"nanoseconds": {}}), json.dumps(whole | {"about": None})):
        (other := tmp_path / f"{len(content)}.json").write_text(content)
        with pytest.raises(ParabitError, match="does not hold the costs"):
            Costs.load(other)
    path.write_text(json.dumps(whole | {"format": 99}))
    with pytest.raises(ParabitError, match="format 99"):
        Costs.load(path)
    with pytest.raises(ParabitError, match="cannot be read"):
        Costs.load(tmp_path / "nothing")


def scaling() -> ModuleType:
    spec = spec_from_file_location("scaling", ROOT / "docs" / "scaling.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_figure_of_the_pages_is_what_the_code_gives() -> None:
    module = scaling()
    for page in module.PAGES:
        text = page.read_text()
        assert "<!-- end -->" in text
        assert module.filled(text) == text, f"fill it in anew: python docs/scaling.py ({page.name})"
