"""What becomes of a network's training that is stopped or killed, and resumed."""

import signal
from pathlib import Path

import pytest
from caught_at_work import signalled
from commands import contents, names, run

# 20 steps, with random numbers in all places and a checkpoint after each step.
TRAIN = [
    "train",
    "news.jsonl",
    "-o",
    "model",
    "--solver",
    "network",
    "--bits",
    "16",
    "--device",
    "cpu",
]
TRAIN += [
    "--checkpoint-every",
    "0",
    "--set",
    "epochs=4",
    "--set",
    "batch_size=64",
    "--set",
    "samples=64",
]
TRAIN += [
    "--set",
    "dropout=0.1",
    "--set",
    "binarization=straight-through-sigmoid",
    "--set",
    "slope_growth=0.02",
]


@pytest.fixture(scope="module")
def uninterrupted(lines: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a model whose training nobody stopped."""
    here = tmp_path_factory.mktemp("uninterrupted")
    (here / "news.jsonl").write_text(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        assert run(*TRAIN).exit_code == 0
    return contents(here / "model")


def test_a_signal_saves_all_and_the_resumed_model_is_the_same(
    here: Path, uninterrupted: dict[str, bytes]
) -> None:
    result = signalled(signal.SIGINT, "parabit.networks.training._progress", 8, here, *TRAIN)
    assert (result.returncode, result.stdout) == (128 + signal.SIGINT, "")
    assert result.stderr == (
        "parabit: interrupted in epoch 2 of 4; saved in model.training; continue with the same command and --resume\n"
    )
    assert names(here) == {"news.jsonl", "model.training"}
    other = run(*TRAIN, "--bits", "24", "--resume")
    assert other.exit_code == 1
    assert (
        "is from another training run: bits was 16, now 24; use the same corpus and parameters"
        in other.stderr
    )
    assert run(*TRAIN, "--resume").exit_code == 0
    assert contents(here / "model") == uninterrupted
    assert names(here) == {"news.jsonl", "model"}


def test_killed_anywhere_the_resumed_model_is_the_same_to_the_byte(
    here: Path, uninterrupted: dict[str, bytes]
) -> None:
    moments = {
        "parabit.networks.training._progress": 3,  # between two steps
        "parabit.networks.training.np.save": 12,  # while a checkpoint, of five files, is written for the third time
        "pathlib.Path.rename": 1,  # when a checkpoint is complete and has no name yet
        "parabit.model.encoder._card": 1,  # while the model is saved
    }
    steps: list[int] = []
    for moment, calls in moments.items():
        resume = ("--resume",) if steps else ()
        result = signalled(signal.SIGKILL, moment, calls, here, *TRAIN, *resume)
        assert result.returncode == -signal.SIGKILL, result.stderr
        assert not (here / "model").exists()
        steps.append(max(int(path.name[-12:]) for path in here.glob("model.training/checkpoint-*")))
    assert steps == [2, 4, 4, 20]  # each went on from where the one before was
    assert run(*TRAIN, "--resume").exit_code == 0
    assert contents(here / "model") == uninterrupted


@pytest.mark.parametrize(
    "moment", ["parabit.model.estimator.count_bags", "parabit.model.encoder._card"]
)
def test_interrupts_around_training_say_how_to_go_on(
    moment: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    (here / "model.training" / "checkpoint-000000000001").mkdir(parents=True)
    monkeypatch.setattr("parabit.networks.training.Checkpoints.load", lambda *_: None)
    monkeypatch.setattr(moment, stop)
    result = run(*TRAIN, "--checkpoint-every", "60", "--resume")
    assert result.exit_code == 130
    assert result.stderr == "parabit: interrupted; continue with the same command and --resume\n"
    assert names(here / "model.training") == {"checkpoint-000000000001"}
