"""`parabit train` and `encode`: a model of a corpus, and the codes of a corpus as a file."""

import json
import shutil
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from parabit.choices import Architecture, Preset, Solver
from parabit.cli.app import COLLAPSED
from parabit.cli.command import Result, signal_of, verb
from parabit.cli.options import CorpusNames, Counting, Device, ModelFolder, Overwrite, Reading, option
from parabit.cli.output import headline, need_new, say, say_skipped
from parabit.errors import Interrupted, ParabitError, TrainingError
from parabit.networks.config import Recipe
from parabit.progress import Report

Engine = Literal["local", "ray"]
_net = partial(option, panel=f"{COLLAPSED}: networks")
_cluster = partial(option, panel=f"{COLLAPSED}: a cluster", show_default=False)
_ADDRESS = "HOST:PORT of its head, or auto on a node. Default: RAY_ADDRESS, or this machine."
_PARAMETERS = f"One of {', '.join(parameter.name for parameter in fields(Recipe))}, window, two_sided, word_dim"


def _show_model(result: Result) -> None:
    headline(result, "model", "{name}, {size} per document")
    say_skipped(result)
    sampled = "" if result["sampled"] == result["documents"] else f" (learned from {result['sampled']:,})"
    bigrams = f", {result['bigrams']:,} bigrams" if result["bigrams"] else ""
    say(f"  {result['documents']:,} documents{sampled}, {result['words']:,} words{bigrams}, {result['seconds']:.1f} s")
    if history := result.get("history"):
        say(f"  {len(history)} epochs, loss per word {history[-1]['loss']:.3f}")


@verb(_show_model)
def train(
    corpus: CorpusNames,
    output: Annotated[Path, option("The folder for the model.", "--output", "-o", "MODEL")],
    bits: Annotated[str, option("Bits per code, 8 to 1024, or none.", "N|none")] = "128",
    dim: Annotated[int | None, option("Numbers per real vector, beside or without a code.")] = None,
    levels: Annotated[str | None, option("Bits of each level of the code, finest first.", "N+N+…")] = None,
    sample: Annotated[int, option("Learn from N random documents; 0: all.", min=0)] = 50_000,
    seed: Annotated[int, option("The same seed gives the same model.", min=0)] = 0,
    solver: Annotated[Solver, option("closed-form, or network (needs torch).", "NAME")] = "closed-form",
    preset: Annotated[Preset, option("default, or paper: its network.", "NAME")] = "default",
    overwrite: Overwrite = False,
    architecture: Annotated[Architecture, _net("dbow, or dm: with the words before.", "dbow|dm")] = "dbow",
    settings: Annotated[list[str] | None, _net(f"{_PARAMETERS}; repeatable.", "--set", "NAME=VALUE")] = None,
    device: Annotated[Device, _net("Where to train.", "auto|cpu|cuda")] = "auto",
    resume: Annotated[bool, _net("Continue an interrupted training.", "--resume")] = False,
    checkpoint_every: Annotated[float, _net("How often to save the state.", "SECONDS", min=0.0)] = 60.0,
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
    from parabit.model import ParagraphVectors, is_model  # here: it costs more than a second, and --help should not
    from parabit.storage import need_room

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
    try:
        documents = reading.open(corpus, report)
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
    return {
        "model": str(output),
        **{name: training[name] for name in ("documents", "sampled", "words", "bigrams")},
        "solver": encoder.solver,
        "name": encoder.name,
        "size": encoder.size,
        "bits": encoder.bits,
        "dim": encoder.dim,
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
            raise TrainingError(f"--set {assignment}", hint="write it as name=value, such as --set epochs=20")
        try:
            params[name] = json.loads(value)
        except ValueError:
            params[name] = value
    return params


def _check_work_folder(work: Path | None, resume: bool, overwrite: bool) -> None:
    """Find out whether there is a training to continue, or none if one begins."""
    from parabit.model.estimator import check_work_folder

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


def _show_codes(result: Result) -> None:
    bits, dim, seconds = result["bits"], result["dim"], max(result["seconds"], 0.001)
    total = result["bytes"] * result["documents"]
    size = f"{dim} numbers" if bits is None else f"{bits} bits" + (" and a vector" if result["vectors"] else "")
    headline(result, "output", "{documents:,} documents, {size} each, {total:,} bytes in all", size=size, total=total)
    say(f"  {seconds:.1f} s, {result['encoded'] / seconds:,.0f} documents per second")
    if result.get("resumed"):
        say(f"  {result['resumed']:,} of {result['shards']:,} shards were finished before")
    if result["without_words"]:
        say(f"  {result['without_words']:,} documents without known words; their codes are zeros")
    say_skipped(result)
    if "reading" not in result and result["skipped"]:
        say(f"  {result['skipped']:,} files or records skipped")


@verb(_show_codes)
def encode(
    model: ModelFolder,
    corpus: CorpusNames,
    output: Annotated[str, option("A file, .npy or .parquet; on a cluster, a folder.", "--output", "-o", "CODES")],
    vectors: Annotated[bool, option("Add the real vectors; .parquet only.", "--vectors")] = False,
    overwrite: Overwrite = False,
    engine: Annotated[Engine, _cluster("Here, or on a Ray cluster that sees CORPUS.", "local|ray")] = "local",
    address: Annotated[str | None, _cluster(_ADDRESS, "ADDRESS")] = None,
    workers: Annotated[int | None, _cluster("Processes that load the model. Default: one per core.", min=1)] = None,
    worker_cores: Annotated[int | None, _cluster("Cores of each worker. Default: 1.", min=1)] = None,
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
    from parabit.model import check_output, encode_to_file, load_model

    if engine == "local":
        for name, value in (("address", address), ("workers", workers), ("worker-cores", worker_cores)):
            if value is not None:
                raise ParabitError(f"--{name} is for a cluster", hint="add --engine ray")
        check_output(Path(output), overwrite)
    loaded = load_model(model)
    how: dict[str, Any] = {"vectors": vectors, "overwrite": overwrite, "report": report}
    if engine == "local":
        encoded = encode_to_file(loaded, reading.open(corpus, report), output, **how)
        counts = {**encoded._asdict(), "encoded": encoded.documents}
    else:
        from parabit.engines.ray import connected, encode_shards, open_shards

        shards = open_shards(corpus, reading.options, reading.format)
        how |= {"workers": workers, "cores": worker_cores or 1}
        try:
            with connected(address) as ray:
                counts = encode_shards(ray, loaded, corpus, shards, output, **how)
        except (KeyboardInterrupt, SystemExit) as stop:
            message = f"interrupted; the finished shards are in {output}; run the same command again to continue"
            raise Interrupted(message, signal_of(stop)) from stop
    return {"output": output, "vectors": vectors, "bits": loaded.bits, "dim": loaded.dim, **counts}
