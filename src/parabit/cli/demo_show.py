"""A demo for people."""

from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.text import Text

from parabit.cli.command import out, say, width_of_output
from parabit.cli.demo_answers import Answer
from parabit.cli.demo_kept import Place
from parabit.cli.index_options import readable_size

_TEXT = 160  # characters of a text, where there is no terminal to say how many fit


def show(figures: dict[str, Any], answers: list[Answer], path: str | None, place: Place, kept: bool) -> None:
    """Tell what was learned, how well it finds, what it answers and what it cost."""
    for line in (*_learned(figures, path), "", *_measured(figures, path), ""):
        say(line)
    for answer in answers:
        _show_answer(answer)
    if not answers:
        say("No document begins with a sentence that could be a question: ask your own with --ask.\n")
    for line in _cost(figures, answers, place, kept):
        say(line)


def _learned(figures: dict[str, Any], path: str | None) -> Iterator[str]:
    count, size = figures["documents"], readable_size(figures["characters"])
    if path is None:
        yield f"[bold]{count:,} pieces of documentation[/bold] of {figures['labels']:,} Python packages, {size}"
    else:
        yield f"[bold]{escape(path)}[/bold]: {count:,} documents, {size} of text"
    if figures["found"] > count + figures["left_out"]:
        yield f"  taken evenly from {figures['found']:,}, as a demo is to be quick; `parabit train` takes all"
    if figures["skipped"]:
        yield f"  {figures['skipped']:,} skipped: no readable text"
    if figures["left_out"]:
        yield f"  {figures['left_out']:,} skipped: no known words"
    part = "all of them" if figures["sampled"] >= count else f"{figures['sampled']:,} of them"
    yield (
        f"  {figures['bits']}-bit codes, {figures['bytes_a_document']} bytes per document, learned without labels from "
        f"{part} in {figures['seconds']['training']:.1f} s"
    )


def _measured(figures: dict[str, Any], path: str | None) -> Iterator[str]:
    measured = figures["figures"]
    if measured is None:
        yield "Not measured: no labels tell which documents belong together (sub-folders, or a field `label`)."
        return
    same = "package" if path is None else "label"
    alike = f"those of the same {same}" if measured["relevance"] == "shared" else "by the share of labels in common"
    yield f"[bold]Do documents find those of the same {same}?[/bold]    MAP  NDCG@10"
    rows = {"parabit": measured["ours"], "LSA + ITQ": measured["lsa_itq"]}
    for name, row in rows.items():
        told = "    -        -" if row is None else f"{row['map']:.3f}    {row['ndcg@10']:.3f}"
        yield f"  {name:<{36 + len(same)}} {told}"
    yield (
        f"  {measured['queries']:,} documents as queries, {measured['searched']:,} others searched, by the distance of "
        f"codes alone; relevant are {alike}"
    )
    yield f"  both have {figures['bits']} bits and learned from the same documents, without a label"
    if measured["lsa_itq"] is None:
        yield f"  LSA cannot make {figures['bits']} bits of so few documents or words"


def _show_answer(answer: Answer) -> None:
    say(f"[bold]{escape(answer.query)}[/bold]")
    if not answer.known:
        say("  no document has a word of it; use words of the documents\n")
        return
    widest = max((len(str(hit.distance)) for hit in answer.hits), default=0)
    for hit in answer.hits:
        labels = hit.fields.get("labels") or []
        about = f"[{', '.join(map(str, labels))}] " if labels else ""
        _print_cut(f"  {hit.distance:{widest}} bits  ", str(hit.id))
        _print_cut(f"  {'':{widest}}       ", about + hit.text[:_TEXT])
    say("")


def _print_cut(margin: str, line: str) -> None:
    """A line no wider than the terminal, without what would move its cursor or change its colours."""
    shown = Text(margin + " ".join("".join(char if char.isprintable() else " " for char in line).split()))
    shown.truncate(width_of_output() or _TEXT, overflow="ellipsis" if "utf" in out.encoding else "crop")
    out.print(shown, no_wrap=True, overflow="ignore", crop=False)


def _cost(figures: dict[str, Any], answers: list[Answer], place: Place, kept: bool) -> Iterator[str]:
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in figures["seconds"].items())
    asked = f"; {len(answers)} answers, ranked by {answers[0].rank}, in {answers[0].seconds:.2f} s" if answers else ""
    yield f"{'Learned by an earlier start' if kept else 'It took'}: {stages}{asked}"
    yield f"{readable_size(figures['bytes'])} on the disk with texts and words, in {escape(str(place.folder))}"
    if not kept:
        yield "The next start takes it from there; --again learns anew."
    yield f"\nSearch page: [bold]parabit serve {escape(str(place.index))}[/bold], or this command with --serve"
    yield "Your own documents: [bold]parabit demo FILE-OR-FOLDER[/bold]; your own question: --ask TEXT"
