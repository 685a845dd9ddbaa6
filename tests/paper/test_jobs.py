"""Runs: what each trains, and what a kept result must have been made with."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from parabit.paper.corpora import paper_corpora
from parabit.paper.jobs import JOBS, PICTURED, QUICK_EPOCHS, RADII, SIZES, Job, Network, Run
from parabit.paper.published import TABLE_1, TABLE_4
from parabit.paper.reproduce import EXPERIMENTS
from parabit.paper.tables import _job
from parabit.paper.work import runs_of

CORPORA = paper_corpora(["enwiki", "arxiv"])
NEWS = CORPORA[0]


def identity(job: Job, seed: int = 0, quick: bool = False, data: str = "some data") -> str:
    return json.dumps(Run(job, NEWS, seed, quick).identity(data), sort_keys=True)


def test_every_job_of_every_experiment_exists_and_every_job_is_in_one() -> None:
    wanted = {name for experiment in EXPERIMENTS.values() for name in experiment.jobs}
    assert wanted == JOBS.keys()
    assert all(name == job.name for name, job in JOBS.items())
    assert PICTURED in EXPERIMENTS["figures"].jobs


def test_every_row_of_the_papers_tables_has_its_job() -> None:
    assert {_job(*row) for row in TABLE_1} <= set(EXPERIMENTS["table1"].jobs)
    assert {size for _, size, _ in TABLE_1} == set(SIZES)
    assert [(bits, radius) for bits, radii in RADII.items() for radius in radii] == list(TABLE_4)


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.networks])
def test_a_networks_name_says_what_is_trained(name: str) -> None:
    job = JOBS[name]
    for network in job.networks:
        # Distributed memory reads words in their order, and has no bigrams.
        assert network.architecture == ("dm" if "-dm-" in name else "dbow")
        assert not (network.architecture == "dm" and job.bigrams)
        kind = network.shape.name
        if (found := re.search(r"-(\d+)(?:-(words|bigrams))?$", name)) and "real-binary" not in name:
            assert int(found[1]) == (network.dim if name.startswith("pv-") else network.bits)
            assert job.bigrams == (found[2] == "bigrams")
        if name.startswith(("binary-pv", "pv-")):
            assert name.startswith(kind.lower().replace(" ", "-"))


def test_the_networks_of_table_4_are_those_of_its_two_variants() -> None:
    for bits in RADII:
        [network] = JOBS[f"real-binary-{bits}"].networks
        assert (network.shape.name, network.bits, network.dim) == ("Real-Binary PV-DBOW", bits, 300)
    *codes, vectors = JOBS["separate"].networks
    assert [network.bits for network in codes] == list(RADII)
    assert {network.shape.name for network in codes} == {"Binary PV-DBOW"}
    assert (vectors.shape.name, vectors.dim) == ("PV-DBOW", 300)
    assert all(JOBS[name].bigrams for name in ("real-binary-28", "real-binary-24", "separate", "transfer"))


def test_an_identity_changes_with_all_that_decides_the_result() -> None:
    job = JOBS["binary-pv-dbow-32-words"]
    identities = [
        identity(job),
        identity(job, seed=1),
        identity(job, data="other data"),
        identity(job, quick=True),
        identity(JOBS["binary-pv-dbow-32-bigrams"]),
        identity(JOBS["default-32"]),
        identity(JOBS["pv-dbow-32-words"]),
        identity(JOBS["lsa-32"]),
        identity(JOBS["lsa-128"]),
    ]
    assert len(set(identities)) == len(identities)
    assert identity(replace(job, name="another name")) == identity(job)


def test_an_identity_changes_with_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOBS["pv-dm-32"]
    before = identity(job), identity(job, quick=True)
    monkeypatch.setitem(QUICK_EPOCHS, "dm", 1)
    assert identity(job) == before[0]
    assert identity(job, quick=True) != before[1]


@pytest.mark.parametrize("job", JOBS.values(), ids=lambda job: job.name)
def test_an_identity_is_the_same_after_it_was_kept_as_json(job: Job) -> None:
    for quick in (False, True):
        made = Run(job, NEWS, 2, quick).identity("some data")
        assert json.loads(json.dumps(made)) == made


def test_quick_means_fewer_epochs_and_samples_and_nothing_else() -> None:
    for job in JOBS.values():
        for network in job.networks:
            whole, quick = network.recipe(quick=False), network.recipe(quick=True)
            assert quick.epochs == QUICK_EPOCHS[network.architecture] < whole.epochs
            assert 0 < quick.samples <= whole.samples
            assert replace(quick, epochs=whole.epochs, samples=whole.samples) == whole


def test_no_two_runs_have_one_file() -> None:
    runs = [run for quick in (False, True) for run in runs_of(CORPORA, JOBS.values(), range(3), quick)]
    assert len({run.file for run in runs}) == len(runs)


def test_the_quick_version_does_not_write_over_the_runs_of_the_whole() -> None:
    job = JOBS["transfer"]
    assert Run(job, NEWS, 0).file != Run(job, NEWS, 0, quick=True).file


def test_chance_has_seeds_and_what_has_none_runs_once() -> None:
    runs = runs_of([NEWS], JOBS.values(), range(3))
    seeds = {name: [run.seed for run in runs if run.job.name == name] for name in JOBS}
    assert seeds.pop("transfer") == []
    assert seeds.pop("tf-idf") == seeds.pop("bm25") == seeds.pop("sentences") == [0]
    assert all(found == [0, 1, 2] for found in seeds.values())


def test_a_network_is_transferred_from_wikipedia_alone() -> None:
    runs = runs_of(paper_corpora(["wikipedia"]), [JOBS["transfer"]], [0])
    assert [run.corpus.name for run in runs] == ["wikipedia"]
    assert [run.corpus.name for run in runs_of(CORPORA, [JOBS["transfer"]], [0])] == ["enwiki"]


def test_runs_of_the_same_arrays_follow_each_other() -> None:
    arrays = [(run.corpus.name, run.job.bigrams) for run in runs_of(CORPORA, JOBS.values(), range(2))]
    changes = sum(one != other for one, other in pairwise(arrays))
    assert changes == len(set(arrays)) - 1


def test_a_network_without_a_size_is_refused() -> None:
    with pytest.raises(ValueError, match="neither bits nor dim"):
        _ = Network().shape
