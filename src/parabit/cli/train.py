"""`parabit train`: a model of a corpus."""

import shutil
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import PRESETS, SOLVERS
from parabit.cli.command import Json, Quiet, check_spelling, completing, print_json, progress, say, signal_of, verb
from parabit.cli.device_option import Device
from parabit.cli.options import (
    Bigrams,
    CorpusNames,
    FoldAccents,
    MaxLength,
    MaxSize,
    MinBigramCount,
    MinCount,
    MinLength,
    Pattern,
    StopWords,
    make_tokenizer,
    name_of,
    reading_of,
    reads_corpus,
    say_skipped,
)
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import Interrupted, ParabitError, TrainingError
from parabit.networks.config import ARCHITECTURES, Recipe

if TYPE_CHECKING:
    from parabit.model import ParagraphVectors

_NETWORK = "The network (--solver network)"
_PARAMETERS = (*(parameter.name for parameter in fields(Recipe)), "window", "two_sided", "word_dim")


def _bits(given: str) -> int | None:
    if given == "none":
        return None
    try:
        return int(given)
    except ValueError:
        raise TrainingError(f"bits is {given!r}", hint="it must be a whole number, or none") from None


def _levels(given: str | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    try:
        return tuple(int(level) for level in given.split("+"))
    except ValueError:
        raise TrainingError(f"levels are {given!r}", hint="write them as 96+24+8") from None


def _network_params(given: list[str]) -> dict[str, Any]:
    """Parameters written as name=value, each value as the number, the truth or the word that it looks like."""
    params: dict[str, Any] = {}
    for assignment in given:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise TrainingError(f"--set {assignment}", hint="write it as name=value, such as --set epochs=20")
        check_spelling("network parameter", name, _PARAMETERS)
        if name not in _PARAMETERS:
            raise TrainingError(f"no network parameter {name!r}", hint=f"there are {', '.join(_PARAMETERS)}")
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


@verb
@reads_corpus
def train(
    corpus: CorpusNames,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The folder to save the model in.")],
    bits: Annotated[
        str, typer.Option(metavar="N|none", help="Bits per code, 8 to 1024; none, with --dim, for real-valued vectors.")
    ] = "128",
    dim: Annotated[
        int | None,
        typer.Option(help="Numbers per real vector, beside the code or instead of it.", show_default=False),
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(
            metavar="N+N+…", help="Bits of each level of the code, finest first.", show_default="by the number of bits"
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(min=0, help="Learn from this many documents, drawn at random; 0 for all.")
    ] = 50_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    solver: Annotated[
        str,
        typer.Option(
            metavar="|".join(SOLVERS),
            autocompletion=completing(SOLVERS),
            help="parabit's closed form, in seconds, or the paper's networks, which need torch.",
        ),
    ] = "closed-form",
    preset: Annotated[
        str,
        typer.Option(
            metavar="|".join(PRESETS),
            autocompletion=completing(PRESETS),
            help="paper: the paper's network and recipe, whatever the solver.",
        ),
    ] = "default",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an old model, and forget an unfinished training.")
    ] = False,
    architecture: Annotated[
        str,
        typer.Option(
            metavar="|".join(ARCHITECTURES),
            autocompletion=completing(ARCHITECTURES),
            help="Predict words from the document alone, or together with the words before them.",
            rich_help_panel=_NETWORK,
        ),
    ] = "dbow",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help=f"A parameter of the network, as often as needed: {', '.join(_PARAMETERS)}.",
            rich_help_panel=_NETWORK,
            show_default=False,
        ),
    ] = None,
    device: Device = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished training.", rich_help_panel=_NETWORK)
    ] = False,
    checkpoint_every: Annotated[
        float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=_NETWORK)
    ] = 60.0,
    bigrams: Bigrams = False,
    min_count: MinCount = 1,
    min_bigram_count: MinBigramCount = None,
    max_size: MaxSize = None,
    pattern: Pattern = None,
    fold_accents: FoldAccents = False,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    stop_words: StopWords = "english",
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Learn a model from a corpus, without labels, and save it as a folder.

    The closed form takes seconds. While a network trains, its state is saved in MODEL.training; after Ctrl-C, a kill or
    a power cut the same command with --resume goes on. Examples:

        parabit train 20newsgroups/train -o news-128

        parabit train articles.csv --text-field body -o articles --bits 32

        parabit train papers/ -o papers --bits 28 --dim 300

        parabit train 20newsgroups/train -o paper-dm --preset paper --architecture dm --set epochs=20
    """
    check_spelling("solver", solver, SOLVERS)
    check_spelling("preset", preset, PRESETS)
    check_spelling("architecture", architecture, ARCHITECTURES)
    if (settings or architecture == "dm") and (solver, preset) == (SOLVERS[0], PRESETS[0]):
        raise TrainingError(
            f"{'--set' if settings else '--architecture dm'} is for networks", hint="add --solver network"
        )
    from parabit.model import ParagraphVectors  # here: it costs more than a second, and --help should not

    model = ParagraphVectors(
        _bits(bits), dim=dim, levels=_levels(levels), solver=solver, preset=preset, architecture=architecture,
        network_params=_network_params(settings or []) or None, sample=sample or None, bigrams=bigrams,
        tokenizer=make_tokenizer(pattern, fold_accents, min_length, max_length, stop_words, preset == "paper"),
        min_count=min_count, min_bigram_count=min_bigram_count, max_size=max_size, random_state=seed, device=device,
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
        message = f"{reason}; go on with the same command and --resume"
        raise Interrupted(message, signal_of(stop)) from stop
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    result = _summary(model, len(documents.skipped), time.perf_counter() - start)
    result["reading"] = reading_of(documents)
    if json:
        print_json({"corpus": name_of(corpus), "model": str(output), **result})
    else:
        _show(output, model, result)


def _need_output(output: Path, overwrite: bool) -> None:
    """Find out before the work, not after, that its result could not be saved."""
    from parabit.model import is_model
    from parabit.storage import need_room_for_folder

    if (output.exists() or output.is_symlink()) and not overwrite:
        raise ParabitError(f"{output} exists already", hint="choose another name, or replace it with --overwrite")
    need_room_for_folder(output, is_model)


def _need_work_folder(work: Path | None, resume: bool, overwrite: bool) -> None:
    """Find out that there is an unfinished training to go on with, or none if one begins."""
    from parabit.model.learning import check_work_folder

    if work is None or not work.exists():
        if resume:
            what = "the closed form takes seconds and keeps nothing" if work is None else f"nothing is in {work}"
            raise TrainingError(f"there is no unfinished training: {what}", hint="leave out --resume")
        return
    check_work_folder(work)
    if not resume and not overwrite and any(work.iterdir()):
        raise TrainingError(
            f"an unfinished training is in {work}", hint="go on with --resume, or start over with --overwrite"
        )


def _summary(model: "ParagraphVectors", skipped: int, seconds: float) -> dict[str, Any]:
    encoder = model.encoder_
    training = encoder.config["training"]
    return {
        "documents": training["documents"],
        "sampled": training["sampled"],
        "words": training["words"],
        "bigrams": training["bigrams"],
        "solver": encoder.solver,
        "bits": encoder.bits,
        "dim": encoder.dim,
        "levels": list(model.levels_),
        **({"history": training["history"]} if "history" in training else {}),
        "skipped": skipped,
        "seconds": round(seconds, 3),
    }


def _show(output: Path, model: "ParagraphVectors", result: dict[str, Any]) -> None:
    say(f"[bold]{escape(str(output))}[/bold]: {model.encoder_.name}, {model.encoder_.size} per document")
    say_skipped(result["reading"])
    sampled = "" if result["sampled"] == result["documents"] else f" (learned from {result['sampled']:,})"
    bigrams = f", {result['bigrams']:,} bigrams" if result["bigrams"] else ""
    say(f"  {result['documents']:,} documents{sampled}, {result['words']:,} words{bigrams}, {result['seconds']:.1f} s")
    if history := result.get("history"):
        say(f"  {len(history)} epochs, loss per word {history[-1]['loss']:.3f}")
