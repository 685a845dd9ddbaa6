"""`parabit train`: a model of a corpus."""

import shutil
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import Architecture, Preset, Solver
from parabit.cli.app import COLLAPSED
from parabit.cli.command import Json, Quiet, print_json, progress, say, signal_of, verb
from parabit.cli.options import CorpusNames, Device, Overwrite, counts_words, reads_corpus
from parabit.cli.output import reading_of, say_skipped
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import Interrupted, ParabitError, TrainingError, did_you_mean
from parabit.networks.config import Recipe

if TYPE_CHECKING:
    from parabit.text import Tokenizer

_NETWORK = f"{COLLAPSED}: networks"
_PARAMETERS = (*(parameter.name for parameter in fields(Recipe)), "window", "two_sided", "word_dim")


@verb
@reads_corpus
@counts_words
def train(
    corpus: CorpusNames,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The folder for the model.")],
    bits: Annotated[str, typer.Option(metavar="N|none", help="Bits per code, 8 to 1024, or none.")] = "128",
    dim: Annotated[
        int | None, typer.Option(help="Numbers per real vector, beside or without a code.", show_default=False)
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(metavar="N+N+…", help="Bits of each level of the code, finest first.", show_default=False),
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Learn from N random documents; 0: all.")] = 50_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    solver: Annotated[
        Solver, typer.Option(metavar="NAME", help="closed-form, or network (needs torch).")
    ] = "closed-form",
    preset: Annotated[Preset, typer.Option(metavar="NAME", help="default, or paper: its network.")] = "default",
    overwrite: Overwrite = False,
    architecture: Annotated[
        Architecture,
        typer.Option(
            help="Predict words from the document alone (dbow), or with the words before them (dm).",
            rich_help_panel=_NETWORK,
        ),
    ] = "dbow",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"A parameter of the network; repeatable. There are {', '.join(_PARAMETERS)}.",
            rich_help_panel=_NETWORK,
            show_default=False,
        ),
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to train.", rich_help_panel=_NETWORK)] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted training.", rich_help_panel=_NETWORK)
    ] = False,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0, help="How often to save the state.", rich_help_panel=_NETWORK)
    ] = 60.0,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
    tokenizer: "Callable[[bool], Tokenizer]",
    counts: dict[str, Any],
) -> None:
    """Learn a model from a corpus, without labels.

    `parabit index` does this too; a model of its own encodes several collections. An interrupted training of a network
    continues with the same command and --resume.

    Examples:
        parabit train 20newsgroups/train -o news-128
        parabit train articles.csv --text-field body -o articles --bits 32
        parabit train papers/ -o dm --solver network --architecture dm --set epochs=9
    """
    if (settings or architecture == "dm") and (solver, preset) == ("closed-form", "default"):
        raise TrainingError(
            f"{'--set' if settings else '--architecture dm'} is for networks", hint="add --solver network"
        )
    from parabit.model import ParagraphVectors  # here: it costs more than a second, and --help should not

    model = ParagraphVectors(
        _bits(bits), dim=dim, levels=_levels(levels), solver=solver, preset=preset, architecture=architecture,
        network_params=_network_params(settings or []) or None, sample=sample or None,
        tokenizer=tokenizer(preset == "paper"), random_state=seed, device=device, **counts,
    )  # fmt: skip
    work = None if model.network() is None else output.parent / f"{output.name}.training"
    _need_output(output, overwrite)
    _need_work_folder(work, resume, overwrite)
    start = time.perf_counter()
    try:
        with progress(quiet or json) as report:
            documents = open_corpus(corpus, options, format, report)
            model.fit(documents, work=work, resume=resume, checkpoint_every=checkpoint_every, report=report)
            model.save(output, overwrite=overwrite)
    except (KeyboardInterrupt, SystemExit) as stop:
        if work is None or not work.exists():
            raise
        reason = str(stop) if isinstance(stop, Interrupted) else "interrupted"
        raise Interrupted(f"{reason}; continue with the same command and --resume", signal_of(stop)) from stop
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    encoder = model.encoder_
    training = encoder.config["training"]
    result = {
        "corpus": " ".join(corpus),
        "model": str(output),
        **{name: training[name] for name in ("documents", "sampled", "words", "bigrams")},
        "solver": encoder.solver,
        "bits": encoder.bits,
        "dim": encoder.dim,
        "levels": list(model.levels_),
        **({"history": training["history"]} if "history" in training else {}),
        "skipped": len(documents.skipped),
        "reading": reading_of(documents),
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
    else:
        _show(result, f"{encoder.name}, {encoder.size} per document")


def _bits(given: str) -> int | None:
    if given == "none":
        return None
    try:
        return int(given)
    except ValueError:
        raise TrainingError(f"bits is {given!r}", hint="it must be a whole number, or none") from None


def _levels(given: str | None) -> tuple[int, ...] | None:
    try:
        return None if given is None else tuple(int(level) for level in given.split("+"))
    except ValueError:
        raise TrainingError(f"levels are {given!r}", hint="write them as 96+24+8") from None


def _network_params(given: list[str]) -> dict[str, Any]:
    """Parameters written as name=value, each value as the number, the truth or the word that it looks like."""
    params: dict[str, Any] = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise TrainingError(f"--set {assignment}", hint="write it as name=value, such as --set epochs=20")
        if name not in _PARAMETERS:
            hint = did_you_mean(name, _PARAMETERS) or f"there are {', '.join(_PARAMETERS)}"
            raise TrainingError(f"no network parameter {name!r}", hint=hint)
        params[name] = _value(value)
    return params


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _need_output(output: Path, overwrite: bool) -> None:
    """Find out before the work, not after, that its result could not be saved."""
    from parabit.model import is_model
    from parabit.storage import need_room_for_folder

    if (output.exists() or output.is_symlink()) and not overwrite:
        raise ParabitError(f"{output} exists already", hint="choose another name, or replace it with --overwrite")
    need_room_for_folder(output, is_model)


def _need_work_folder(work: Path | None, resume: bool, overwrite: bool) -> None:
    """Find out whether there is a training to continue, or none if one begins."""
    from parabit.model.learning import check_work_folder

    if work is None or not work.exists():
        if resume:
            what = "the closed form takes seconds and keeps nothing" if work is None else f"nothing is in {work}"
            raise TrainingError(f"there is no interrupted training: {what}", hint="leave out --resume")
        return
    check_work_folder(work)
    if not resume and not overwrite and any(work.iterdir()):
        raise TrainingError(
            f"an interrupted training is in {work}", hint="continue it with --resume, or start over with --overwrite"
        )


def _show(result: dict[str, Any], about: str) -> None:
    say(f"[bold]{escape(result['model'])}[/bold]: {about}")
    say_skipped(result["reading"])
    sampled = "" if result["sampled"] == result["documents"] else f" (learned from {result['sampled']:,})"
    bigrams = f", {result['bigrams']:,} bigrams" if result["bigrams"] else ""
    say(f"  {result['documents']:,} documents{sampled}, {result['words']:,} words{bigrams}, {result['seconds']:.1f} s")
    if history := result.get("history"):
        say(f"  {len(history)} epochs, loss per word {history[-1]['loss']:.3f}")
