"""`parabit index`, `info`, `sync`, `add`, `delete`, `compact`, `retrain`: an index, what it holds, and its changes."""

import shlex
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import parabit
from parabit.choices import Backend
from parabit.cli.command import (
    Corpora,
    IndexFolder,
    Overwrite,
    Reading,
    Result,
    argument,
    option,
    progress,
    verb,
)
from parabit.cli.output import (
    complain,
    counted,
    escape,
    headline,
    read_ids,
    reading_of,
    say,
    say_json,
    say_skipped,
)
from parabit.cli.watch import follow
from parabit.corpus import Corpus, Document, ReadOptions
from parabit.errors import ParabitError, UnknownOriginError, need
from parabit.progress import Report, silent

if TYPE_CHECKING:
    from parabit.index import Stored

_KEEP = "What to keep"
_FEW, _LOOKED_AT = 10, 500  # documents


def show_index(result: Result) -> None:
    """What was built, and a search to begin with."""
    count, sizes = result["documents"], result["bytes"]
    headline(result["index"], f"{counted(count, 'document')} in {result['seconds']:.1f} s")
    say_skipped(result)
    how = (
        f"{result['model']}, learned"
        if "model" in result
        else f"learned in {result['learning_seconds']:.1f} s"
    )
    documents, words = counted(result["learned_from"], "document"), counted(result["words"], "word")
    say(f"  model: {escape(how)} from {documents}; it knows {words}")
    if result["engine"] is None:
        codes, words, texts = (
            _size(sizes[name] / max(count, 1)) for name in ("codes", "words", "texts")
        )
        each = f"{codes} for the code, {words} for the words, {texts} for text and fields"
        say(f"  per document: {each}; once: {_size(sizes['model'])} for the model")
    else:
        _say_engine(result["engine"])
    if result["fields"]:
        say(f"  fields: {escape(', '.join(result['fields']))}")
    if result["examples"]:
        command = shlex.join(["parabit", "search", result["index"], result["examples"][0]])
        say(f"Try it: [bold]{escape(command)}[/bold]")


def unknown_words(model: "parabit.TextEncoder", documents: "Iterable[Document | Stored]") -> float:
    """The share of the words in the first documents that a model does not know; a few documents say too little."""
    texts = [document.text for document in islice(documents, _LOOKED_AT)]
    return round(1 - float(model.coverage(["\n".join(texts)])[0]), 3) if len(texts) >= _FEW else 0.0


def _say_engine(engine: Result) -> None:
    place = escape(f"{engine['uri']}: {engine['name']} {engine['version']}, {engine['collection']}")
    say(f"  the documents are in {place}")


def _size(size: float) -> str:
    from rich.filesize import decimal

    return decimal(round(size))


@verb(show_index)
def index(
    corpus: Corpora,
    output: Annotated[Path, option("The folder for the index.", "--output", "-o", "INDEX")],
    model: Annotated[
        Path | None, option("Use this model instead of learning one from CORPUS.", "MODEL")
    ] = None,
    bits: Annotated[int | None, option("Bits per code.", show_default="128")] = None,
    sample: Annotated[
        int | None, option("Learn from N random documents; 0: all.", min=0, show_default="50000")
    ] = None,
    seed: Annotated[
        int | None, option("The same seed gives the same model.", min=0, show_default="0")
    ] = None,
    fold_accents: Annotated[bool, option("Remove accents: é becomes e.", "--fold-accents")] = False,
    overwrite: Overwrite = False,
    language: Annotated[
        str, option("Stem words as in en, de, fr, …, or none.", "LANGUAGE", panel=_KEEP)
    ] = "en",
    no_text: Annotated[bool, option("No texts: hits have none.", "--no-text", panel=_KEEP)] = False,
    no_words: Annotated[
        bool, option("No word index: search by codes alone.", "--no-words", panel=_KEEP)
    ] = False,
    vectors: Annotated[
        bool, option("Real vectors too, for --rank cosine.", "--vectors", panel=_KEEP)
    ] = False,
    backend: Annotated[
        Backend, option("Search codes by auto, flat or hashing.", "NAME", panel=_KEEP)
    ] = "auto",
    milvus: Annotated[
        str | None, option("Documents on a Milvus server, or in a .db file.", "URI", panel=_KEEP)
    ] = None,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Learn a model from a corpus and index its documents.

    The index is a folder with everything that searching needs, the model too.

    Examples:
        parabit index notes/ -o notes.index
        parabit index articles.csv --text-field body -o articles.index
        parabit index new-posts/ --model news-128 -o posts.index
    """
    from parabit.storage import need_new
    from parabit.text import Tokenizer, VocabularyRule
    from parabit.text.languages import check_language

    need_new(output, overwrite)
    kept = None if language == "none" else language
    check_language(kept)
    given = {"bits": bits, "sample": sample, "seed": seed, "fold-accents": fold_accents or None}
    learning: Result = {name: value for name, value in given.items() if value is not None}
    if model is not None and learning:
        what = f"--{next(iter(learning))} is for learning a model, and --model gives one"
        raise ParabitError(what, hint="leave out one")
    learning |= {"sample": None} if sample == 0 else {}
    if learning.pop("fold-accents", False):
        learning["rule"] = VocabularyRule(Tokenizer(fold_accents=True))
    engine = None
    if milvus is not None:
        from parabit.engines.milvus import Milvus

        engine = Milvus(milvus)
    return build_index(
        reading.open(corpus, report), output, report, model, learning, text=not no_text,
        words=not (no_words or no_text), language=kept, vectors=vectors, backend=backend, engine=engine,
        overwrite=overwrite,
    )  # fmt: skip


def build_index(
    documents: Corpus,
    output: Path,
    report: Report,
    model: Path | None,
    learning: Result,
    **how: Any,
) -> Result:
    """Learn a model, unless there is one, and index a corpus: what came of it, and what it takes."""
    from parabit.explore import typical_phrases
    from parabit.model import learn_closed_form, load_model

    start = time.perf_counter()
    encoder = (
        load_model(model) if model else learn_closed_form(documents, report=report, **learning)
    )
    seconds, unknown = (
        time.perf_counter() - start,
        unknown_words(encoder, documents) if model else 0.0,
    )
    with parabit.Index.build(documents, output, model=encoder, report=report, **how) as built:
        info, learned = built.info(), encoder.config["training"]
        sizes = {"codes": info["bytes_a_code"] * info["documents"], "words": info["words_bytes"]}
        rest = info["bytes"] - info["model_bytes"] - sum(sizes.values())
        return {
            "index": str(output),
            **{name: info[name] for name in ("documents", "bits", "fields")},
            "left_out": built.left_out,
            "words": learned["words"],
            "learned_from": learned["sampled"],
            "unknown_words": unknown,
            "learning_seconds": round(seconds, 3),
            "bytes": {"model": info["model_bytes"], **sizes, "texts": rest, "all": info["bytes"]},
            "backend": info["backends"][-1],
            "engine": info.get("engine"),
            "examples": typical_phrases(built.snapshot(), 3) if built.keeps_text else [],
        }


def _show_info(result: Result) -> None:
    model = f", {_size(result['model_bytes'])} of it the model" if result["model_bytes"] else ""
    codes = f"{counted(result['documents'], 'document')}, {result['bits']} bits per code"
    headline(result["folder"], f"{codes}, {_size(result['bytes'])} on disk{model}")
    say(f"  it keeps {', '.join(['codes', 'ids', *result['keeps']])}")
    say(f"  fields: {escape(', '.join(result['fields'])) or 'none'}")
    say(f"  back ends: {', '.join(result['backends'])}")
    if "engine" in result:
        _say_engine(result["engine"])
    if result["corpus"]:
        origin = f"  made of {escape(', '.join(result['corpus']))}"
        if not result["trusted"]:
            origin += ", where nothing is read until you agree (--trust)"
        say(origin)
    say(
        f"  model {result['fingerprint'][:16]}"
        if result["fingerprint"]
        else "  made from codes, without a model"
    )
    merge = result["to_merge"]
    if merge["added"] or merge["deleted"]:
        changes = f"{merge['added']:,} added and {merge['deleted']:,} deleted since the last merge"
        say(f"  {changes} ({_size(merge['bytes'])}); `parabit compact` merges them")
    if result["verified"]:
        say("  all files are as they were written")


@verb(_show_info)
def info(
    index: IndexFolder,
    verify: Annotated[
        bool, option("Read everything, and check it against its checksums.", "--verify")
    ] = False,
    trust: Annotated[
        bool, option("Follow what it says about where its files and documents are.", "--trust")
    ] = False,
) -> Result:
    """Show what an index holds.

    What an index says that was moved or copied, or that somebody else made, is not followed: where
    its files are, and on which server its documents. With --trust it is, from now on.

    Examples:
        parabit info news.index
        parabit info news.index --verify --json
    """
    if trust:
        parabit.Index.trust(index)
    with parabit.Index.open(index) as opened:
        if verify:
            opened.verify()
        return {**opened.info(), "verified": verify}


def _show_added(result: Result) -> None:
    done = f"{counted(result['added'], 'document')} added"
    done += f", {result['replaced']:,} replaced" if result["replaced"] else ""
    headline(result["index"], f"{done}, {result['documents']:,} now; {result['seconds']:.1f} s")
    say_skipped(result)
    if result["removed"]:
        say(
            f"  an older version of {counted(result['removed'], 'document')} without such words was deleted"
        )


@verb(_show_added)
def add(
    index: IndexFolder,
    corpus: Corpora,
    update: Annotated[
        bool, option("Replace documents whose ids are in the index.", "--update")
    ] = False,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Add documents to an index.

    Nothing is changed if an id is in the index already (without --update) or comes twice. If it is interrupted, what
    was added stays, and the same command with --update continues.

    Examples:
        parabit add news.index more.jsonl
        zcat today.jsonl.gz | parabit add news.index - --update
    """
    from parabit.index.writing import write

    with parabit.Index.open(index, write=True) as opened:
        documents = reading.open(corpus, report)
        unknown = unknown_words(opened.model, documents)
        written = write(opened, documents, new=not update, report=report)
        return {**asdict(written), "documents": len(opened), "unknown_words": unknown}


def _show_deleted(result: Result) -> None:
    headline(
        result["index"],
        f"{counted(result['deleted'], 'document')} deleted, {result['documents']:,} left",
    )


@verb(_show_deleted)
def delete(
    index: IndexFolder,
    ids: Annotated[
        list[str] | None, argument("Ids, or - for one per line of standard input.", "ID|-")
    ] = None,
    where: Annotated[
        list[str] | None, option("All with labels=spam, year!=2000; repeatable.", "CONDITION")
    ] = None,
    null: Annotated[
        bool, option("Ids on standard input end with NUL, as of dedupe --print0.", "--null", "-0")
    ] = False,
) -> Result:
    """Delete documents from an index.

    They are gone at once, all or, if an id is not in the index, none; `parabit compact` frees their space.

    Examples:
        parabit delete news.index 53068 53257
        parabit delete news.index --where labels=spam --where year=..1999
        parabit dedupe news.index --print0 | parabit delete news.index - -0
    """
    if bool(ids) == bool(where):
        raise typer.BadParameter(
            "give either ids, or - for standard input, or --where", param_hint="ID"
        )
    if null and ids != ["-"]:
        raise typer.BadParameter("--null is for ids on standard input, -", param_hint="ID")
    if ids == ["-"]:
        ids = read_ids(ended_by_nul=null)
    with parabit.Index.open(index, write=True) as opened:
        deleted_ids = opened.ids_where(where) if where else opened.ids_of(ids or [])
        if deleted_ids:
            opened.delete(deleted_ids)
        return {"deleted": len(deleted_ids), "documents": len(opened)}


def _show_compacted(result: Result) -> None:
    sizes = f"{_size(result['bytes'])} on disk, {_size(result['bytes_before'])} before"
    headline(
        result["index"],
        f"{counted(result['documents'], 'document')}, {sizes}; {result['seconds']:.1f} s",
    )
    say(
        f"  {counted(result['added'], 'addition')} and {counted(result['deleted'], 'deletion')} merged"
    )


@verb(_show_compacted)
def compact(index: IndexFolder, *, report: Report) -> Result:
    """Merge what was added and deleted since an index was built.

    It then opens and searches as fast as a new one. Everything is checked on the way, and searches continue meanwhile.

    Examples:
        parabit compact news.index
    """
    with parabit.Index.open(index, write=True) as opened:
        before = opened.info()
        opened.compact(report)
        after = {name: opened.info()[name] for name in ("documents", "bytes", "backends")}
    merged = {name: before["to_merge"][name] for name in ("added", "deleted")}
    return {**after, **merged, "bytes_before": before["bytes"]}


def _show_retrained(result: Result) -> None:
    documents, words = counted(result["documents"], "document"), counted(result["words"], "word")
    learned = f"learned from {result['sampled']:,} of {documents}, {words}, {result['bits']} bits"
    headline(result["index"], f"{learned}; {result['seconds']:.1f} s")


@verb(_show_retrained)
def retrain(
    index: IndexFolder,
    bits: Annotated[int | None, option("Bits per code.", show_default="as before")] = None,
    sample: Annotated[
        int | None, option("Learn from N documents; 0: all.", min=0, show_default="as before")
    ] = None,
    seed: Annotated[
        int | None, option("The same seed gives the same model.", min=0, show_default="as before")
    ] = None,
    *,
    report: Report,
) -> Result:
    """Learn a new model from the documents of an index.

    They are then encoded again. The index changes in one step when all is done. Searches continue meanwhile, and an
    interrupt leaves the index as it was.

    Examples:
        parabit retrain notes.index
        parabit retrain notes.index --bits 256
    """
    with parabit.Index.open(index, write=True) as opened:
        opened.retrain(bits=bits, sample=sample, seed=seed, report=report)
        training = opened.model.config["training"]
        learned = {name: training[name] for name in ("sampled", "words", "bigrams")}
        return {"documents": len(opened), "bits": opened.bits, **learned}


def _show_synced(result: Result) -> None:
    changes = result["changes"]
    if result["dry_run"]:
        for mark, kind in (("+", "added"), ("~", "replaced"), ("-", "deleted")):
            for identity in changes[kind]:
                say(f"{mark} {escape(identity)}")
        for old, new in changes["renamed"]:
            say(f"> {escape(old)} -> {escape(new)}")
    done = ", ".join(f"{len(ids):,} {kind}" for kind, ids in changes.items())
    done = f"would be {done}" if result["dry_run"] else done
    headline(
        result["index"], f"{done}, {result['unchanged']:,} unchanged; {result['seconds']:.1f} s"
    )
    for one in result["kept"]:
        say(
            f"  {escape(one['place'])} cannot be read now, its documents stay: {escape(one['reason'])}"
        )
    say_skipped(result)
    if result["retrain"]:
        say(f"  {result['retrain']}: parabit retrain {escape(result['index'])}")


def _agrees_to(problem: UnknownOriginError) -> bool:
    """Ask whether to read the files that an index names; without a terminal the answer is no."""
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    complain(problem.problem)
    return typer.confirm(f"Read {', '.join(problem.paths)}?", err=True)


@verb()
def sync(
    index: IndexFolder,
    corpus: Annotated[
        list[str] | None, argument("Other files and folders than before.", "CORPUS")
    ] = None,
    origin: Annotated[
        list[str] | None,
        option("The same, if the index was moved or copied; repeatable.", "--from", "CORPUS"),
    ] = None,
    dry_run: Annotated[bool, option("Only list what would be done.", "--dry-run", "-n")] = False,
    watch: Annotated[bool, option("Go on: sync again whenever a file changes.", "--watch")] = False,
    allow_empty: Annotated[
        bool, option("Go on if a whole folder is missing or empty.", "--allow-empty")
    ] = False,
    *,
    reading: Reading,
    json: bool,
    quiet: bool,
) -> None:
    """Bring an index up to date with its files.

    It adds what is new, replaces what changed and deletes what is gone. Files with the size and time that they had are
    not read, and a renamed file is not encoded again. Documents that did not come from these files stay. Options of
    reading are for a CORPUS; without them files are read as before.

    An index that was moved or copied, or that somebody else made, says where its files are, but
    nothing is read there until you agree: it asks, or needs --from.

    Examples:
        parabit sync notes.index
        parabit sync notes.index --dry-run
        parabit sync moved/notes.index --from moved/notes
        parabit sync notes.index --watch
    """
    if watch and dry_run:
        raise ParabitError("--watch with --dry-run", hint="choose one of them")
    if watch:
        need("watchfiles", "watch")
    paths = [*(corpus or []), *(origin or [])]
    has_options = reading.options != ReadOptions()
    if has_options and not paths:
        raise ParabitError(
            "options of reading, but no CORPUS", hint=f"name it: parabit sync {index} CORPUS …"
        )
    files: Any = paths or None  # None: those that the index was made of
    if has_options:
        files = reading.open(paths, silent)

    def once(always: bool = False) -> list[str]:
        start = time.perf_counter()
        with (
            progress(quiet or json) as report,
            parabit.Index.open(index, write=not dry_run) as opened,
        ):
            done = opened.sync(files, dry_run=dry_run, allow_empty=allow_empty, report=report)
            total = len(opened)
            unknown = 0.0
            written_ids = done.added + done.replaced
            if written_ids and opened.keeps_text and not dry_run:
                documents = opened.stored(written_ids[:_LOOKED_AT])
                unknown = unknown_words(opened.model, documents)
        changes: Result = {
            name: getattr(done, name) for name in ("added", "replaced", "renamed", "deleted")
        }
        result = {
            "index": str(index),
            "dry_run": dry_run,
            **{name: len(ids) for name, ids in changes.items()},
            **{name: getattr(done, name) for name in ("unchanged", "left_out", "retrain")},
            "changes": changes,
            "kept": [skipped._asdict() for skipped in done.kept],
            **reading_of([done]),
            "documents": total,
            "unknown_words": unknown,
            "seconds": round(time.perf_counter() - start, 3),
        }
        if json:
            say_json(result)
        elif always or done.changed or done.kept:
            _show_synced(result)
        return done.roots

    try:
        roots = once(always=True)
    except UnknownOriginError as problem:
        if quiet or json or not _agrees_to(problem):
            raise
        files = problem.paths
        roots = once(always=True)
    if watch:
        try:
            follow(roots, index, once, quiet or json)
        except KeyboardInterrupt:  # the way to end it
            if not (quiet or json):
                say("stopped")
