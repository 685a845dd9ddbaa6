"""`parabit plan`: what a corpus of any size would take."""

from pathlib import Path
from typing import Annotated

import typer

from parabit.cli.frame import Json, Quiet, print_json, say, verb, width_of_output
from parabit.cli.plan_table import plan_lines

_CORPUS, _MACHINES, _TRAINING, _SEARCH = "The corpus", "The machines", "Training", "Searching"


@verb
def plan(
    documents: Annotated[
        str, typer.Option(metavar="N", help="Documents of the corpus: 1e9, 7M, 250k or 1_000_000.", show_default=False)
    ],
    bits: Annotated[int, typer.Option(help="Bits of a code.")] = 128,
    dim: Annotated[
        int | None, typer.Option(help="Numbers of a real vector beside the code.", show_default="none")
    ] = None,
    words: Annotated[
        float | None,
        typer.Option(
            help="Words of a document that count: no stop words, none too rare.",
            show_default="as measured",
            rich_help_panel=_CORPUS,
        ),
    ] = None,
    characters: Annotated[
        float | None,
        typer.Option(
            help="Characters of a document.", show_default="as many to a word as measured", rich_help_panel=_CORPUS
        ),
    ] = None,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Words and bigrams that are kept, as --max-size of train limits them.",
            show_default="by Heaps' law, those that occur 5 times",
            rich_help_panel=_CORPUS,
        ),
    ] = None,
    bigrams: Annotated[
        bool,
        typer.Option("--bigrams/--no-bigrams", help="Take pairs of neighbouring words too.", rich_help_panel=_CORPUS),
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes that share the work.", rich_help_panel=_MACHINES)] = 1,
    cores: Annotated[int, typer.Option(help="Cores of a worker.", rich_help_panel=_MACHINES)] = 1,
    memory: Annotated[float, typer.Option(help="Memory of a worker, in GB.", rich_help_panel=_MACHINES)] = 16.0,
    network: Annotated[float, typer.Option(help="Network of a worker, in Gbit/s.", rich_help_panel=_MACHINES)] = 10.0,
    disk: Annotated[float, typer.Option(help="Disk of a worker, in MB/s.", rich_help_panel=_MACHINES)] = 500.0,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Documents to train on; all are encoded.", show_default="all", rich_help_panel=_TRAINING
        ),
    ] = None,
    train_workers: Annotated[
        int | None, typer.Option(help="Workers that train.", show_default="all", rich_help_panel=_TRAINING)
    ] = None,
    epochs: Annotated[int, typer.Option(help="Times that each is trained on.", rich_help_panel=_TRAINING)] = 30,
    batch_size: Annotated[
        int, typer.Option(help="Documents in a step, of all workers.", rich_help_panel=_TRAINING)
    ] = 256,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints.", rich_help_panel=_TRAINING)
    ] = 60.0,
    shards: Annotated[int, typer.Option(help="Indexes that the codes are divided among.", rich_help_panel=_SEARCH)] = 1,
    queries: Annotated[
        float | None,
        typer.Option(help="Queries a second to be served.", show_default="not asked", rich_help_panel=_SEARCH),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Costs that `python benchmarks/stage_costs.py` measured on another machine.",
            show_default="those that parabit comes with",
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell what a corpus would take: hours, memory, disk and traffic of each stage, and what that rests on.

    Nothing is read and nothing is run: the figures follow from costs that were measured on one core with a real corpus.
    What was measured, what is derived and what is only assumed stands below them, and before it where the plan does
    not work. Examples:

        parabit plan --documents 10M

        parabit plan --documents 1e9 --bits 128 --workers 64

        parabit plan --documents 1e9 --workers 64 --train 10M --train-workers 1 --shards 100

        parabit plan --documents 7M --words 160 --cores 16 --memory 64 --queries 50 --json
    """
    from parabit.planning import Costs, Question, read_count
    from parabit.planning import plan as make_plan

    question = Question(
        documents=read_count(documents),
        bits=bits,
        dim=dim,
        workers=workers,
        cores=cores,
        memory=memory,
        words=words,
        characters=characters,
        vocabulary=None if vocabulary is None else read_count(vocabulary, "vocabulary"),
        train=None if train is None else read_count(train, "train"),
        train_workers=train_workers,
        epochs=epochs,
        batch_size=batch_size,
        checkpoint_every=checkpoint_every,
        bigrams=bigrams,
        network=network,
        disk=disk,
        shards=shards,
        queries=queries,
    )
    made = make_plan(question, Costs.shipped() if costs is None else Costs.load(costs))
    if json:
        print_json(made.to_json())
        return
    for line in plan_lines(made, width_of_output()):
        say(line)
