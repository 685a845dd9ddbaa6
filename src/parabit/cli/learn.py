"""`parabit train`, `encode`, `evaluate` and `reproduce`: a model, its codes, how good they are, and the paper's."""

import json
import shlex
import shutil
import sys
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from parabit.choices import RELEVANCE, Architecture, Preset, Relevant, Solver
from parabit.cli.app import COLLAPSED
from parabit.cli.command import (
    CORPUS,
    Corpora,
    Counting,
    Overwrite,
    Reading,
    Result,
    argument,
    option,
    resumable,
    verb,
)
from parabit.cli.output import check_file, counted, escape, headline, say, say_skipped
from parabit.errors import EvaluationError, ParabitError, TrainingError, need
from parabit.networks.config import Recipe
from parabit.progress import Report

ModelFolder = Annotated[Path, argument("The folder of a model.", "MODEL")]
Device = Literal["auto", "cpu", "cuda"]
Engine = Literal["local", "ray"]
# Written out, as importing the experiments takes long; a test compares it with what there is.
What = Literal["table1", "table2", "table3", "table4", "figures", "claims", "peers", "all"]
_DEPTH = 100  # of the precision that is measured
_net = partial(option, panel=f"{COLLAPSED}: networks")
_cluster = partial(option, panel=f"{COLLAPSED}: a cluster", show_default=False)
_ADDRESS = "HOST:PORT of its head, or auto on a node. Default: RAY_ADDRESS, or this machine."
_PARAMETERS = f"One of {', '.join(parameter.name for parameter in fields(Recipe))}, window, two_sided, word_dim"


def _show_model(result: Result) -> None:
    headline(result["model"], f"{result['name']}, {result['size']} per document")
    say_skipped(result)
    documents, words = counted(result["documents"], "document"), counted(result["words"], "word")
    sampled = (
        "" if result["sampled"] == result["documents"] else f" (learned from {result['sampled']:,})"
    )
    bigrams = f", {counted(result['bigrams'], 'bigram')}" if result["bigrams"] else ""
    say(f"  {documents}{sampled}, {words}{bigrams}, {result['seconds']:.1f} s")
    if history := result.get("history"):
        say(f"  {counted(len(history), 'epoch')}, loss per word {history[-1]['loss']:.3f}")


@verb(_show_model)
def train(
    corpus: Corpora,
    output: Annotated[Path, option("The folder for the model.", "--output", "-o", "MODEL")],
    bits: Annotated[str, option("Bits per code, 8 to 1024, or none.", "N|none")] = "128",
    dim: Annotated[int | None, option("Numbers per real vector, beside or without a code.")] = None,
    levels: Annotated[
        str | None, option("Bits of each level of the code, finest first.", "N+N+…")
    ] = None,
    sample: Annotated[int, option("Learn from N random documents; 0: all.", min=0)] = 50_000,
    seed: Annotated[int, option("The same seed gives the same model.", min=0)] = 0,
    solver: Annotated[
        Solver, option("closed-form, or network (needs torch).", "NAME")
    ] = "closed-form",
    preset: Annotated[Preset, option("default, or paper: its network.", "NAME")] = "default",
    overwrite: Overwrite = False,
    architecture: Annotated[
        Architecture, _net("dbow, or dm: with the words before.", "dbow|dm")
    ] = "dbow",
    settings: Annotated[
        list[str] | None, _net(f"{_PARAMETERS}; repeatable.", "--set", "NAME=VALUE")
    ] = None,
    device: Annotated[Device, _net("Where to train.", "auto|cpu|cuda")] = "auto",
    resume: Annotated[bool, _net("Continue an interrupted training.", "--resume")] = False,
    checkpoint_every: Annotated[
        float, _net("How often to save the state.", "SECONDS", min=0.0)
    ] = 60.0,
    *,
    reading: Reading,
    counting: Counting,
    report: Report,
) -> Result:
    """Learn a model from a corpus, without labels.

    `parabit index` does this too; a model of its own encodes several collections. An interrupted training of a network
    continues with the same command and --resume.

    Examples:
        parabit train 20newsgroups/train -o news-128
        parabit train articles.csv --text-field body -o articles --bits 32
        parabit train papers/ -o dm --solver network --architecture dm --set epochs=9
    """
    from parabit.model import (
        ParagraphVectors,
        is_model,
    )  # here: it costs more than a second, and --help should not
    from parabit.storage import need_new, need_room

    if (settings or architecture == "dm") and (solver, preset) == ("closed-form", "default"):
        what = "--set" if settings else "--architecture dm"
        raise TrainingError(f"{what} is for networks", hint="add --solver network")
    model = ParagraphVectors(
        None if bits == "none" else _whole(bits, "--bits", "128, or none"), dim=dim,
        levels=None if levels is None else [_whole(level, "--levels", "96+24+8") for level in levels.split("+")],
        solver=solver, preset=preset, architecture=architecture, network_params=_network_params(settings) or None,
        sample=sample or None, random_state=seed, device=device, **counting(preset == "paper"),
    )  # fmt: skip
    work = None if model.network() is None else output.parent / f"{output.name}.training"
    need_new(output, overwrite)
    need_room(output, folder=True, replaces=is_model)
    _check_work_folder(work, resume, overwrite)
    with resumable("continue with the same command and --resume", work) if work else nullcontext():
        documents = reading.open(corpus, report)
        model.fit(
            documents, work=work, resume=resume, checkpoint_every=checkpoint_every, report=report
        )
        model.save(output, overwrite=overwrite)
    if work is not None:
        shutil.rmtree(work, ignore_errors=True)
    encoder = model.encoder_
    training = encoder.config["training"]
    return {
        "model": str(output),
        **{name: training[name] for name in ("documents", "sampled", "words", "bigrams")},
        **{name: getattr(encoder, name) for name in ("solver", "name", "size", "bits", "dim")},
        "levels": list(model.levels_),
        **({"history": training["history"]} if "history" in training else {}),
    }


def _whole(given: str, option: str, example: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise TrainingError(f"{option} {given}", hint=f"write it as {example}") from None


def _network_params(given: list[str] | None) -> dict[str, Any]:
    """Parameters written as name=value, each value as the number, the truth or the word that it looks like."""
    params: dict[str, Any] = {}
    for assignment in given or ():
        name, equals, value = assignment.partition("=")
        if not equals:
            raise TrainingError(
                f"--set {assignment}", hint="write it as name=value, such as --set epochs=20"
            )
        try:
            params[name] = json.loads(value)
        except ValueError:
            params[name] = value
    return params


def _check_work_folder(work: Path | None, resume: bool, overwrite: bool) -> None:
    """Find out whether there is a training to continue, or none if one begins."""
    from parabit.model.estimator import check_work_folder

    if work is not None and work.exists():
        check_work_folder(work)
        if not resume and not overwrite and any(work.iterdir()):
            hint = "continue it with --resume, or start over with --overwrite"
            raise TrainingError(f"an interrupted training is in {work}", hint)
    elif resume:
        what = (
            "the closed form takes seconds and keeps nothing"
            if work is None
            else f"nothing is in {work}"
        )
        raise TrainingError(f"there is no interrupted training: {what}", hint="leave out --resume")


def _show_codes(result: Result) -> None:
    bits, dim, seconds = result["bits"], result["dim"], max(result["seconds"], 0.001)
    documents, total = (
        counted(result["documents"], "document"),
        result["bytes"] * result["documents"],
    )
    size = (
        f"{dim} numbers"
        if bits is None
        else f"{bits} bits" + (" and a vector" if result["vectors"] else "")
    )
    headline(result["output"], f"{documents}, {size} each, {total:,} bytes in all")
    say(f"  {seconds:.1f} s, {result['encoded'] / seconds:,.0f} documents per second")
    if result.get("resumed"):
        say(f"  {result['resumed']:,} of {counted(result['shards'], 'shard')} were finished before")
    if result["without_words"]:
        say(
            f"  {counted(result['without_words'], 'document')} without known words; their codes are zeros"
        )
    say_skipped(result)
    if "reading" not in result and result["skipped"]:
        say(f"  skipped files and records: {result['skipped']:,}")


@verb(_show_codes)
def encode(
    model: ModelFolder,
    corpus: Corpora,
    output: Annotated[
        str, option("A file, .npy or .parquet; on a cluster, a folder.", "--output", "-o", "CODES")
    ],
    vectors: Annotated[bool, option("Add the real vectors; .parquet only.", "--vectors")] = False,
    overwrite: Overwrite = False,
    engine: Annotated[
        Engine, _cluster("Here, or on a Ray cluster that sees CORPUS.", "local|ray")
    ] = "local",
    address: Annotated[str | None, _cluster(_ADDRESS, "ADDRESS")] = None,
    workers: Annotated[
        int | None, _cluster("Processes that load the model. Default: one per core.", min=1)
    ] = None,
    worker_cores: Annotated[
        int | None, _cluster("Cores of each worker. Default: 1.", min=1)
    ] = None,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Encode a corpus with a model, to a file of codes.

    An .npy file has one row of packed bytes per document (np.unpackbits gives the bits), or the vectors of a
    real-valued model; a .parquet file has the columns id, code and vector. It appears when it is complete. On a cluster
    each shard has its own file, and the same command again encodes what is missing.

    Examples:
        parabit encode news-128 20newsgroups/test -o test.npy
        parabit encode articles articles.csv -o articles.parquet --vectors
        parabit encode articles s3://bucket/in/ -o s3://bucket/out --engine ray
    """
    from parabit.model import encode_to_file, load_model

    loaded = load_model(model)
    how: dict[str, Any] = {"vectors": vectors, "overwrite": overwrite, "report": report}
    if engine == "local":
        for name, value in (
            ("address", address),
            ("workers", workers),
            ("worker-cores", worker_cores),
        ):
            if value is not None:
                raise ParabitError(f"--{name} is for a cluster", hint="add --engine ray")
        encoded = encode_to_file(loaded, reading.open(corpus, report), output, **how)
        counts = {**encoded._asdict(), "encoded": encoded.documents}
    else:
        from parabit.engines.ray import connected, encode_shards, open_shards

        shards = open_shards(corpus, reading.options)
        how |= {"workers": workers, "cores": worker_cores or 1}
        again = f"the finished shards are in {output}; run the same command again to continue"
        with resumable(again), connected(address) as ray:
            counts = encode_shards(ray, loaded, corpus, shards, output, **how)
    return {"output": output, "vectors": vectors, "bits": loaded.bits, "dim": loaded.dim, **counts}


def _show_scores(result: Result) -> None:
    where = f" against {escape(result['searched'])}" if result["searched"] else ""
    say(
        f"[bold]{escape(result['model'])}[/bold] on {escape(result['corpus'])}{where}, by {result['rank']}"
    )
    for name, value in result.items():
        if name.startswith(("map", "ndcg@", "precision@")):
            say(f"  {name if name.startswith('p') else name.upper():<13}  {value:.4f}")
    say(f"  {result['queries']:,} queries; two documents are {RELEVANCE[result['relevance']]}")
    if result["queries_skipped"]:
        say(f"  {result['queries_skipped']:,} queries skipped: no relevant document")
    if result["unlabelled"]:
        say(f"  {counted(result['unlabelled'], 'document')} skipped: no label")
    say_skipped(result)
    if "plot" in result:
        say(f"  precision-recall curve: {escape(result['plot'])}")


@verb(_show_scores)
def evaluate(
    model: ModelFolder,
    corpus: Annotated[str, argument(f"{CORPUS}.", "CORPUS")],
    searched: Annotated[str | None, option("Search this corpus, not CORPUS.", "CORPUS")] = None,
    relevance: Annotated[
        Relevant | None, option("By a shared label, or the share of them.", "shared|overlap")
    ] = None,
    rank: Annotated[
        Literal["hamming", "asymmetric", "cosine"] | None,
        option(
            "As in `parabit search`. Default: hamming, or cosine if there are no codes.", "NAME"
        ),
    ] = None,
    k: Annotated[int, option("Documents that NDCG looks at.", "-k", min=1)] = 10,
    least: Annotated[int, option("Drop labels of fewer documents.", min=1)] = 1,
    plot: Annotated[
        Path | None, option("Draw the precision-recall curve, as .svg or .png.", "FILE")
    ] = None,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Measure how well a model finds documents with the same labels.

    The documents of a labelled corpus query each other, as in the paper, or another corpus (--searched), as usual for
    hashing. Scores are expected values over all orders of documents at the same distance.

    Examples:
        parabit evaluate news-128 20newsgroups/test
        parabit evaluate news-128 posts.csv --searched old-posts.csv --plot curve.svg
    """
    from parabit.evaluation import (
        HammingRanking,
        Ranking,
        Relevance,
        asymmetric_ranking,
        cosine_ranking,
    )
    from parabit.evaluation import evaluate as score
    from parabit.evaluation.relevance import labelled, relevance_of
    from parabit.model import load_model

    if plot is not None:
        check_file(plot, overwrite=True, endings=(".svg", ".png"))
        need("matplotlib", "plot", EvaluationError)
    loaded = load_model(model)
    by = rank or ("cosine" if loaded.bits is None else "hamming")
    if by != "cosine" and loaded.bits is None:
        raise EvaluationError(
            "this model has no codes to rank by", hint="it is real-valued: leave out --rank"
        )
    kind = relevance or relevance_of(corpus)
    names = [corpus, *([searched] if searched is not None else [])]
    corpora = [reading.open(name, report) for name in names]
    queries, *others = [
        labelled(documents, name, least) for documents, name in zip(corpora, names, strict=True)
    ]
    inferred: Any = loaded.infer(queries.documents, report)
    found: Any = loaded.infer(others[0].documents, report) if others else None
    relevant = Relevance(queries.labels, kind, others[0].labels if others else None)
    ranking: Ranking
    if by == "cosine":
        ranking = cosine_ranking(inferred.vectors, found and found.vectors)
    elif by == "hamming":
        ranking = HammingRanking(inferred.codes, found and found.codes)
    else:
        ranking = asymmetric_ranking(
            inferred.activations, (found or inferred).codes, itself=found is None
        )
    scores = score(ranking, relevant, k, _DEPTH, report)
    if plot is not None:
        from parabit.paper.plots import Curve, draw, precision_recall

        label = f"{model.absolute().name} on {corpus}"
        curve = Curve(label, "Binary PV-DBOW", scores.curve.recall, scores.curve.precision)
        draw(plot, lambda axes: precision_recall(axes, [curve]))
    return {
        "searched": searched,
        "rank": by,
        "relevance": kind,
        "documents": len(queries.labels),
        "unlabelled": queries.unlabelled,
        "map": scores.map,
        f"ndcg@{k}": scores.ndcg,
        f"precision@{_DEPTH}": scores.precision,
        "queries": scores.queries,
        "queries_skipped": scores.skipped,
        "curve": scores.curve._asdict(),
        **({} if plot is None else {"plot": str(plot)}),
    }


def _show_report(result: Result) -> None:
    stale = f", {result['stale']} of them stale" if result["stale"] else ""
    headline(result["report"], f"{counted(result['runs'], 'run')}{stale}")
    counts = ", ".join(f"{result[name]} {name}" for name in ("above", "equal", "below"))
    say(f"  20 Newsgroups beside the paper's figures: {counts}")


@verb(_show_report)
def reproduce(
    what: Annotated[What, argument(f"One of {', '.join(get_args(What))}.", "WHAT")],
    output: Annotated[Path, option("The folder of the report.", "--output", "-o", "REPORT")] = Path(
        "report"
    ),
    quick: Annotated[
        bool, option("One seed, fewer documents and epochs of two collections.", "--quick")
    ] = False,
    seeds: Annotated[int, option("Runs of each cell; the report has mean and spread.", min=1)] = 3,
    corpus: Annotated[list[str] | None, option("Only this collection; repeatable.", "NAME")] = None,
    job: Annotated[list[str] | None, option("Only this job; repeatable.", "NAME")] = None,
    device: Annotated[Device, option("Where to train.", "auto|cpu|cuda")] = "auto",
    only_report: Annotated[
        bool, option("Run nothing; report what is finished.", "--only-report")
    ] = False,
    *,
    report: Report,
) -> Result:
    """Run the paper's experiments again.

    REPORT gets report.html with figures/, results.jsonl with every figure, and runs.jsonl with what made it. Finished
    runs are kept, so the same command continues after an interrupt; runs of older code are repeated. RCV1 and English
    Wikipedia are used if they are here (`parabit datasets`); otherwise stand-ins are, and named as such. Claims are
    what the paper says that it tried, peers what one would try instead.

    Examples:
        parabit reproduce table2 --quick
        parabit reproduce all -o results
    """
    need("torch", "networks")
    from parabit.paper.report import reproduce as run

    command = shlex.join(["parabit", *sys.argv[1:]])
    with resumable(f"finished runs are kept; continue with: {command}"):
        return run(
            what, output, command, quick=quick, seeds=seeds, corpora=corpus or (), jobs=job or (), device=device,
            only_report=only_report, report=report,
        )  # fmt: skip
