"""`parabit train`: a model of a corpus."""

import inspect
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.choices import check_spelling, completing
from parabit.cli.corpus_options import (
    CorpusName,
    Encoding,
    Format,
    IdField,
    LabelField,
    NoQuotes,
    SkipBad,
    TextField,
    read_options,
)
from parabit.cli.device_option import Device
from parabit.cli.engine_options import Address, Engine, WorkerCores, Workers, on_ray
from parabit.cli.frame import Json, Quiet, print_json, progress, say, signal_of, verb
from parabit.cli.vocabulary_options import (
    LETTERS,
    Bigrams,
    MaxLength,
    MaxSize,
    MinBigramCount,
    MinCount,
    MinLength,
    Pattern,
    StopWords,
)
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import Interrupted, ParabitError, TrainingError
from parabit.networks.config import ARCHITECTURES, Recipe
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.encoding import ParagraphVectors

_PRESETS = ("default", "paper")
_NETWORK, _RECIPE = "The network", "The recipe (each has the preset's value unless given)"


def _with_recipe(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb that takes `**recipe` one option for each parameter of a recipe."""
    signature = inspect.signature(function)
    options = [
        inspect.Parameter(
            parameter.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                parameter.type | None,  # type: ignore[operator]
                typer.Option(help=f"{parameter.metadata['about']}.", rich_help_panel=_RECIPE, show_default=False),
            ],
        )
        for parameter in fields(Recipe)
    ]
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    function.__signature__ = signature.replace(parameters=keyword + options)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in keyword + options}
    return function


def _bits(given: str) -> int | None:
    if given == "none":
        return None
    try:
        return int(given)
    except ValueError:
        raise TrainingError(f"bits is {given!r}", hint="it must be a whole number, at least 1, or none") from None


@verb
@_with_recipe
def train(
    corpus: CorpusName,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The folder to save the model in.")],
    bits: Annotated[
        str,
        typer.Option(
            metavar="N|none",
            help="Bits of a code; none, with --dim, for real-valued vectors.",
            rich_help_panel=_NETWORK,
        ),
    ] = "128",
    dim: Annotated[
        int | None,
        typer.Option(
            help="Numbers of a real vector, beside the code or instead of it.",
            rich_help_panel=_NETWORK,
            show_default=False,
        ),
    ] = None,
    architecture: Annotated[
        str,
        typer.Option(
            metavar="|".join(ARCHITECTURES),
            autocompletion=completing(ARCHITECTURES),
            help="Predict words from the document alone, or together with the words before them.",
            rich_help_panel=_NETWORK,
        ),
    ] = "dbow",
    window: Annotated[
        int | None,
        typer.Option(help="dm: context words on a side.", rich_help_panel=_NETWORK, show_default="1"),
    ] = None,
    two_sided: Annotated[
        bool,
        typer.Option("--two-sided", help="dm: context words on both sides.", rich_help_panel=_NETWORK),
    ] = False,
    word_dim: Annotated[
        int | None,
        typer.Option(
            help="dm: numbers of a context word's embedding.",
            rich_help_panel=_NETWORK,
            show_default="as the document's",
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(metavar="|".join(_PRESETS), help="The named recipe.", autocompletion=completing([*_PRESETS]))
    ] = "default",
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    device: Device = "auto",
    slim: Annotated[
        bool, typer.Option("--slim", help="Leave the training documents' embeddings out of the model.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an old model, and forget an unfinished training.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished training.")] = False,
    checkpoint_every: Annotated[float, typer.Option(min=0.0, help="Seconds between checkpoints.")] = 60.0,
    bigrams: Bigrams = False,
    min_count: MinCount = 1,
    min_bigram_count: MinBigramCount = None,
    max_size: MaxSize = None,
    pattern: Pattern = LETTERS,
    min_length: MinLength = 2,
    max_length: MaxLength = 15,
    stop_words: StopWords = "english",
    text_field: TextField = None,
    id_field: IdField = None,
    label_field: LabelField = None,
    format: Format = None,
    encoding: Encoding = "utf-8",
    no_quotes: NoQuotes = False,
    skip_bad: SkipBad = False,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    worker_cores: WorkerCores = None,
    json: Json = False,
    quiet: Quiet = False,
    **recipe: Any,
) -> None:
    """Train a model on a corpus, without labels, and save it as a folder.

    While it runs, the state is saved in MODEL.training; after Ctrl-C, a kill or a power cut the same command with
    --resume goes on as if nothing had happened. Examples:

        parabit train 20newsgroups/train -o news-128

        parabit train articles.csv --text-field body -o articles --bits 32

        parabit train notes.jsonl.gz -o notes --bigrams --min-count 5

        parabit train papers/ -o papers --bits 28 --dim 300

        parabit train 20newsgroups/train -o paper-dm --architecture dm --preset paper

        torchrun --nproc-per-node 4 -m parabit train papers/ -o papers

        parabit train s3://bucket/articles/ -o shared/articles --engine ray --address auto --workers 4
    """
    cluster = on_ray(engine, address=address, workers=workers, worker_cores=worker_cores)
    check_spelling("preset", preset, _PRESETS)
    check_spelling("architecture", architecture, ARCHITECTURES)
    from parabit.encoding import ParagraphVectors  # here: it costs more than a second, and --help should not

    model = ParagraphVectors(
        _bits(bits), dim=dim, architecture=architecture, window=window, two_sided=two_sided, word_dim=word_dim,
        bigrams=bigrams, min_count=min_count, min_bigram_count=min_bigram_count, max_size=max_size, pattern=pattern,
        min_length=min_length, max_length=max_length, stop_words=stop_words, preset=preset, seed=seed, device=device,
        **recipe,
    )  # fmt: skip
    options = read_options(text_field, id_field, label_field, encoding, no_quotes, skip_bad)
    # As torchrun says it: the first of its workers speaks and writes, and a worker that it has started again goes on.
    first, again = os.environ.get("RANK", "0") == "0", os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    work = output.parent / f"{output.name}.training"
    if first:
        _need_output(output, overwrite)
        if not again:
            _need_work_folder(work, resume, overwrite)
    start = time.perf_counter()
    try:
        with progress(quiet or json or not first) as report:
            if cluster:
                model, skipped = _train_on_ray(
                    model, corpus, options, format, output, work, address, report, workers=workers,
                    cores=worker_cores or 1, slim=slim, resume=resume, checkpoint_every=checkpoint_every,
                )  # fmt: skip
            else:
                documents = open_corpus(corpus, options, format, report)
                goes_on = resume or again
                model.fit(documents, work=work, resume=goes_on, checkpoint_every=checkpoint_every, report=report)
                if not first:
                    return
                model.save(output, slim=slim, overwrite=overwrite)
                skipped = documents.skipped
    except (KeyboardInterrupt, SystemExit) as stop:
        if not work.exists():
            raise
        message = (
            f"{str(stop) if isinstance(stop, Interrupted) else 'interrupted'}; go on with the same command and --resume"
        )
        raise Interrupted(message, signal_of(stop)) from stop
    shutil.rmtree(work, ignore_errors=True)
    result = _summary(model, skipped, time.perf_counter() - start)
    if json:
        print_json({"corpus": corpus, "model": str(output), **result})
    else:
        _show(output, model, result)


def _train_on_ray(
    model: "ParagraphVectors",
    corpus: str,
    options: ReadOptions,
    format: str | None,
    output: Path,
    work: Path,
    address: str | None,
    report: Report,
    **how: Any,
) -> tuple["ParagraphVectors", int]:
    """The model as a cluster has trained it, and how many bad records were left out."""
    from parabit.cluster import connected, open_shards, train_on_ray

    model.planned()  # what makes no sense is told before the cluster is asked
    shards = open_shards(corpus, options, format)
    with connected(address) as ray:
        skipped = train_on_ray(ray, model, shards, output, work, report=report, **how)
    return type(model).load(output, slim=True), skipped


def _need_output(output: Path, overwrite: bool) -> None:
    """Find out before the work, not after, that its result could not be kept."""
    from parabit.encoding import is_model
    from parabit.storage import need_room_for_folder

    if (output.exists() or output.is_symlink()) and not overwrite:
        raise ParabitError(f"{output} is there already", hint="choose another name, or replace it with --overwrite")
    need_room_for_folder(output, is_model)


def _need_work_folder(work: Path, resume: bool, overwrite: bool) -> None:
    """Find out that there is an unfinished training where one is gone on with, and none where one begins."""
    from parabit.encoding import is_work_folder

    if not work.exists():
        if resume:
            raise TrainingError(f"there is no unfinished training in {work}", hint="leave out --resume to start one")
        return
    if not is_work_folder(work):
        raise ParabitError(f"{work} is there and is something else", hint="nothing was touched; choose another name")
    if not resume and not overwrite and any(work.iterdir()):
        raise TrainingError(
            f"an unfinished training is in {work}", hint="go on with --resume, or start anew with --overwrite"
        )


def _summary(model: "ParagraphVectors", skipped: int, seconds: float) -> dict[str, Any]:
    last = model.history_[model.kept_ - 1]
    return {
        "documents": model.vocabulary_.documents,
        "words": len(model.vocabulary_.words),
        "bigrams": len(model.vocabulary_.bigrams),
        "bits": model.shape_.bits,
        "dim": model.shape_.dim,
        "epochs": len(model.history_),
        "kept": model.kept_,
        "loss": last["loss"],
        "completion": last["completion"],
        "history": model.history_,
        "skipped": skipped,
        "seconds": round(seconds, 3),
    }


def _show(output: Path, model: "ParagraphVectors", result: dict[str, Any]) -> None:
    say(f"[bold]{escape(str(output))}[/bold]: {model.shape_.name}, {model.shape_.size} a document")
    if result["skipped"]:
        say(f"  {result['skipped']:,} bad records left out")
    say(
        f"  {result['documents']:,} documents, {result['words']:,} words, {result['bigrams']:,} bigrams, "
        f"{result['epochs']} epochs in {result['seconds']:.1f} s"
    )
    say(
        f"  loss a word: {result['loss']:.3f} in training"
        + ("" if result["completion"] is None else f", {result['completion']:.3f} in document completion")
        + f", after epoch {result['kept']}"
    )
