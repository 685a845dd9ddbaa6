"""PDF as text, by pypdf."""

import logging
import re
import warnings
from typing import Any, BinaryIO

from parabit.errors import CorpusError
from parabit.extras import need

_CUT_WORD = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")


def pdf_to_text(stream: BinaryIO, name: str) -> str:
    """The text of all pages of a PDF file; a CorpusError where it is locked, damaged, or holds pictures alone."""
    pypdf = need_pdf()
    errors = need("pypdf.errors", "pdf", CorpusError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is odd in other people's files is not our user's business
            pages = _pages(pypdf.PdfReader(stream), name)
    except (CorpusError, MemoryError):
        raise
    except errors.DependencyError as problem:
        raise CorpusError(
            f"{name} is encrypted with AES, which needs a library that is not installed",
            hint="pip install cryptography, or save it without encryption",
        ) from problem
    except Exception as problem:  # pypdf raises whatever comes up inside a damaged file
        raise CorpusError(
            f"{name} is not a whole PDF file: {_first_line(problem)}", hint="download or export it again"
        ) from problem
    if not any(pages):
        raise CorpusError(
            f"no text in {name}, on none of its {len(pages):,} pages; they are pictures, it seems",
            hint="put it through text recognition (OCR) first",
        )
    # Halves of surrogate pairs, which a wrong font makes, are no characters.
    text = "\n\n".join(pages).encode("utf-8", "replace").decode()
    return _CUT_WORD.sub("", text)


def need_pdf() -> Any:
    """The library; an error with what to install where it is missing."""
    library = need("pypdf", "pdf", CorpusError)
    logging.getLogger("pypdf").addHandler(logging.NullHandler())  # else its warnings go to the terminal
    return library


def _pages(reader: Any, name: str) -> list[str]:
    if reader.is_encrypted and not reader.decrypt(""):  # many are locked without a password, against changes alone
        raise CorpusError(f"{name} is encrypted", hint="save it without a password")
    return [page.extract_text().strip() for page in reader.pages]


def _first_line(problem: BaseException) -> str:
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
