"""`parabit index`, `info`, `add`, `delete`, `compact` and `retrain`: an index, what it holds, and changes to it."""

import shlex
import time
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from parabit.choices import Backend
from parabit.cli.command import Result, verb
from parabit.cli.options import CorpusNames, IndexFolder, Overwrite, Reading, argument, option
from parabit.cli.output import escape, headline, need_new, read_input, readable_size, say, say_skipped
from parabit.errors import ParabitError
from parabit.progress import Report

if TYPE_CHECKING:
    from parabit.corpus import Corpus, Document
    from parabit.index import Stored
    from parabit.model import TextEncoder

_KEEP = "What to keep"
_FEW, _LOOKED_AT = 10, 500  # documents
_UNKNOWN = 0.15  # of the words: a model does not know 8 to 12% of those of other documents like its own


def show_index(result: Result) -> None:
    """What was built, and a search to begin with."""
    count, sizes = result["documents"], result["bytes"]
    headline(result, "index", "{documents:,} documents in {seconds:.1f} s")
    if result["left_out"]:
        say(f"  {result['left_out']:,} documents skipped: no words to find them by")
    say_skipped(result)
    how = f"{result['model']}, learned" if "model" in result else f"learned in {result['learning_seconds']:.1f} s"
    say_unknown(result)
    say(f"  model: {escape(how)} from {result['learned_from']:,} documents; it knows {result['words']:,} words")
    if result["engine"] is None:
        each = {name: readable_size(sizes[name] / max(count, 1)) for name in ("codes", "words", "texts")}
        say(
            f"  per document: {each['codes']} for the code, {each['words']} for the words, {each['texts']} for text "
            f"and fields; once: {readable_size(sizes['model'])} for the model"
        )
    else:
        say(f"  {engine_line(result['engine'])}")
    if result["fields"]:
        say(f"  fields: {escape(', '.join(result['fields']))}")
    if result["examples"]:
        command = shlex.join(["parabit", "search", result["index"], result["examples"][0]])
        say(f"Try it: [bold]{escape(command)}[/bold]")


def unknown_words(model: "TextEncoder", documents: "Iterable[Document | Stored]") -> float:
    """The share of the words in the first documents that a model does not know; a few documents say too little."""
    texts = [document.text for document in islice(documents, _LOOKED_AT)]
    return round(1 - float(model.coverage(["\n".join(texts)])[0]), 3) if len(texts) >= _FEW else 0.0


def say_unknown(result: Result) -> None:
    """That a model does not suit the documents, if it knows fewer of their words than of others of its collection."""
    if result["unknown_words"] > _UNKNOWN:
        say(f"  the model does not know {result['unknown_words']:.0%} of their words; `parabit retrain` learns them")


def engine_line(engine: dict[str, Any]) -> str:
    """Where the documents of an index are, if not in its folder."""
    return escape(f"the documents are in {engine['uri']}: {engine['name']} {engine['version']}, {engine['collection']}")


@verb(show_index)
def index(
    corpus: CorpusNames,
    output: Annotated[Path, option("The folder for the index.", "--output", "-o", "INDEX")],
    model: Annotated[Path | None, option("Use this model instead of learning one from CORPUS.", "MODEL")] = None,
    bits: Annotated[int | None, option("Bits per code.", min=8, max=1024, show_default="128")] = None,
    sample: Annotated[int | None, option("Learn from N random documents.", min=1, show_default="50000")] = None,
    seed: Annotated[int | None, option("The same seed gives the same model.", min=0, show_default="0")] = None,
    overwrite: Overwrite = False,
    no_text: Annotated[bool, option("No texts: hits have none.", "--no-text", panel=_KEEP)] = False,
    no_words: Annotated[bool, option("No word index: search by codes alone.", "--no-words", panel=_KEEP)] = False,
    vectors: Annotated[bool, option("Real vectors too, for --rank cosine.", "--vectors", panel=_KEEP)] = False,
    backend: Annotated[Backend, option("Search codes by auto, flat or hashing.", "NAME", panel=_KEEP)] = "auto",
    milvus: Annotated[str | None, option("Documents on a Milvus server, or in a .db file.", "URI", panel=_KEEP)] = None,
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
    need_new(output, overwrite)
    given = {"bits": bits, "sample": sample, "seed": seed}
    learning = {name: value for name, value in given.items() if value is not None}
    if model is not None and learning:
        raise ParabitError(
            f"--{next(iter(learning))} is for learning a model, and --model gives one", hint="leave out one"
        )
    engine = None
    if milvus is not None:
        from parabit.engines.milvus import Milvus

        engine = Milvus(milvus).checked()
    documents = reading.open(corpus, report)
    return build_index(
        documents, output, report, model, learning,
        text=not no_text, words=not (no_words or no_text), vectors=vectors,
        backend=backend, engine=engine, overwrite=overwrite,
    )  # fmt: skip


def build_index(
    documents: "Corpus",
    output: Path,
    report: Report,
    model: Path | None = None,
    learning: dict[str, Any] | None = None,
    **how: Any,
) -> Result:
    """Learn a model, unless there is one, and index a corpus: what came of it, and what it takes."""
    from parabit.index import Index, typical_phrases
    from parabit.model import learn_closed_form, load_model

    start = time.perf_counter()
    encoder = load_model(model) if model else learn_closed_form(documents, report=report, **(learning or {}))
    seconds, unknown = time.perf_counter() - start, unknown_words(encoder, documents) if model else 0.0
    with Index.build(documents, output, model=encoder, report=report, **how) as built:
        info, learned = built.info(), encoder.config["training"]
        sizes = {"codes": info["bytes_a_code"] * info["documents"], "words": info["words_bytes"]}
        rest = info["bytes"] - info["model_bytes"] - sum(sizes.values())
        return {
            "index": str(output),
            "documents": info["documents"],
            "left_out": built.left_out,
            "bits": info["bits"],
            "words": learned["words"],
            "learned_from": learned["sampled"],
            "unknown_words": unknown,
            "learning_seconds": round(seconds, 3),
            "bytes": {"model": info["model_bytes"], **sizes, "texts": rest, "all": info["bytes"]},
            "backend": info["backends"][-1],
            "engine": info.get("engine"),
            "fields": info["fields"],
            "examples": typical_phrases(built.snapshot(), 3) if built.keeps_text else [],
        }


def _show_info(result: Result) -> None:
    model = f", {readable_size(result['model_bytes'])} of it the model" if result["model_bytes"] else ""
    size = f"{readable_size(result['bytes'])} on disk{model}"
    headline(result, "folder", "{documents:,} documents, {bits} bits per code, {size}", size=size)
    say(f"  it keeps {', '.join(['codes', 'ids', *result['keeps']])}")
    say(f"  fields: {escape(', '.join(result['fields'])) or 'none'}")
    say(f"  back ends: {', '.join(result['backends'])}")
    if "engine" in result:
        say(f"  {engine_line(result['engine'])}")
    say(f"  model {result['fingerprint'][:16]}" if result["fingerprint"] else "  made from codes, without a model")
    merge = result["to_merge"]
    if merge["added"] or merge["deleted"]:
        say(
            f"  {merge['added']:,} added and {merge['deleted']:,} deleted since the last merge "
            f"({readable_size(merge['bytes'])}); `parabit compact` merges them"
        )
    if result["verified"]:
        say("  all files are as they were written")


@verb(_show_info)
def info(
    index: IndexFolder,
    verify: Annotated[bool, option("Read everything, and check it against its checksums.", "--verify")] = False,
) -> Result:
    """Show what an index holds.

    Examples:
        parabit info news.index
        parabit info news.index --verify --json
    """
    from parabit.index import Index

    with Index.open(index) as opened:
        if verify:
            opened.verify()
        return {**opened.info(), "verified": verify}


def _show_added(result: Result) -> None:
    also = f", {result['replaced']:,} replaced" if result["replaced"] else ""
    headline(result, "index", "{added:,} documents added{also}, {documents:,} now; {seconds:.1f} s", also=also)
    if result["left_out"]:
        older = f"; an older version of {result['removed']:,} of them was deleted" if result["removed"] else ""
        say(f"  {result['left_out']:,} documents skipped: no words to find them by{older}")
    say_unknown(result)
    say_skipped(result)


@verb(_show_added)
def add(
    index: IndexFolder,
    corpus: CorpusNames,
    update: Annotated[bool, option("Replace documents whose ids are in the index.", "--update")] = False,
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
    from parabit.index import Index, Written

    with Index.open(index, write=True) as opened:
        documents = reading.open(corpus, report)
        unknown = unknown_words(opened.model, documents)
        if update:
            written = opened.put(documents, report)
        else:
            written = Written(added=opened.add(documents, report), left_out=opened.left_out)
        return {**asdict(written), "documents": len(opened), "unknown_words": unknown}


@verb("{deleted:,} documents deleted, {documents:,} left")
def delete(
    index: IndexFolder,
    ids: Annotated[list[str] | None, argument("Ids, or - for one per line of standard input.", "ID|-")] = None,
    where: Annotated[
        list[str] | None, option("All with labels=spam, year=..1999 or year!=2000; repeatable.", "CONDITION")
    ] = None,
) -> Result:
    """Delete documents from an index.

    They are gone at once, all or, if an id is not in the index, none; `parabit compact` frees their space.

    Examples:
        parabit delete news.index 53068 53257
        parabit delete news.index --where labels=spam --where year=..1999
        parabit dedupe news.index --print-delete | parabit delete news.index -
    """
    from parabit.index import Index

    if bool(ids) == bool(where):
        raise typer.BadParameter("give either ids, or - for standard input, or --where", param_hint="ID")
    wanted = [line for line in read_input().splitlines() if line] if ids == ["-"] else ids or []
    with Index.open(index, write=True) as opened:
        gone = opened.ids_where(where) if where else opened.ids_of(wanted)
        if gone:
            opened.delete(gone)
        return {"deleted": len(gone), "documents": len(opened)}


def _show_compacted(result: Result) -> None:
    sizes = f"{readable_size(result['bytes'])} on disk, {readable_size(result['bytes_before'])} before"
    headline(result, "index", "{documents:,} documents, {sizes}; {seconds:.1f} s", sizes=sizes)
    say(f"  {result['added']:,} additions and {result['deleted']:,} deletions merged")


@verb(_show_compacted)
def compact(index: IndexFolder, *, report: Report) -> Result:
    """Merge what was added and deleted since an index was built.

    It then opens and searches as fast as a new one. Everything is checked on the way, and searches continue meanwhile.

    Examples:
        parabit compact news.index
    """
    from parabit.index import Index

    with Index.open(index, write=True) as opened:
        before = opened.info()
        opened.compact(report)
        after = opened.info()
    return {
        **{name: after[name] for name in ("documents", "bytes", "backends")},
        **{name: before["to_merge"][name] for name in ("added", "deleted")},
        "bytes_before": before["bytes"],
    }


@verb("learned from {sampled:,} of {documents:,} documents, {words:,} words, {bits} bits; {seconds:.1f} s")
def retrain(
    index: IndexFolder,
    bits: Annotated[int | None, option("Bits per code.", show_default="as before")] = None,
    sample: Annotated[int | None, option("Learn from N documents; 0: all.", min=0, show_default="as before")] = None,
    seed: Annotated[int | None, option("The same seed gives the same model.", min=0, show_default="as before")] = None,
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
    from parabit.index import Index

    with Index.open(index, write=True) as opened:
        opened.retrain(bits=bits, sample=sample, seed=seed, report=report)
        training = opened.model.config["training"]
        return {
            "documents": len(opened),
            "bits": opened.bits,
            **{name: training[name] for name in ("sampled", "words", "bigrams")},
        }
