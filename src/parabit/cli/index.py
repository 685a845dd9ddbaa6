"""`parabit index`: from documents to an index, in one command."""

import shlex
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from parabit.choices import Backend
from parabit.cli.command import Result, verb
from parabit.cli.options import CorpusNames, Overwrite, Reading, option
from parabit.cli.output import escape, headline, need_new, readable_size, say, say_skipped
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
    bits: Annotated[int, option("Bits per code.", min=8, max=1024)] = 128,
    sample: Annotated[int, option("Learn from N random documents.", min=1)] = 50_000,
    seed: Annotated[int, option("The same seed gives the same model.", min=0)] = 0,
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
    engine = None
    if milvus is not None:
        from parabit.engines.milvus import Milvus

        engine = Milvus(milvus).checked()
    documents = reading.open(corpus, report)
    return build_index(
        documents, output, report, model, {"bits": bits, "sample": sample, "seed": seed},
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
