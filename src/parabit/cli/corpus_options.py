"""The options of every verb that reads a corpus."""

from typing import Annotated

import typer

from parabit.cli.choices import complete_corpus, completing
from parabit.corpus import FORMATS, ReadOptions

CorpusName = Annotated[
    str,
    typer.Argument(
        metavar="CORPUS",
        help="A data set and split (20newsgroups/train), a file or folder, an address such as s3://…, or - for "
        "standard input.",
        show_default=False,
        autocompletion=complete_corpus,
    ),
]
TextField = Annotated[
    list[str] | None,
    typer.Option("--text-field", metavar="FIELD", help="The field with the text; several are joined. Default: text."),
]
IdField = Annotated[
    str | None,
    typer.Option("--id-field", metavar="FIELD", help="The field with the id. Default: id, or the position from 0."),
]
LabelField = Annotated[
    str | None,
    typer.Option(
        "--label-field", metavar="FIELD", help="The field with the label or labels. Default: labels or label."
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)}. Default: by the file's name. In a folder, only files of that ending are read.",
        autocompletion=completing(FORMATS),
    ),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of text files.")]
NoQuotes = Annotated[bool, typer.Option("--no-quotes", help="In CSV and TSV a quote is a character like any other.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Count bad records and go on, instead of stopping.")]


def read_options(
    text_field: list[str] | None,
    id_field: str | None,
    label_field: str | None,
    encoding: str,
    no_quotes: bool,
    skip_bad: bool,
) -> ReadOptions:
    """The reading options of a command line."""
    return ReadOptions(
        text_fields=tuple(text_field or ("text",)),
        id_field=id_field,
        label_field=label_field,
        encoding=encoding,
        quotes=not no_quotes,
        skip_bad=skip_bad,
    )
