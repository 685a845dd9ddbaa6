"""Files that tests need and nobody keeps: JSON lines, and PDF written by hand."""

import io
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a wheel is tried from an environment without parabit
    from parabit import Document


def make_pdf(*pages: str) -> bytes:
    """A PDF file with these pages, a line of text for each line."""
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for page in pages:
        shown = " ".join(f"({line}) Tj T*" for line in page.split("\n"))
        drawn = f"BT /F1 12 Tf 72 720 Td 14 TL {shown} ET"
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    content, places = b"%PDF-1.4\n", []
    for number, value in enumerate(objects, start=1):
        places.append(len(content))
        content += f"{number} 0 obj\n{value}\nendobj\n".encode("latin-1")
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        content
        + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
        + table
        + f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n".encode()
    )


def encrypted_pdf(password: str) -> bytes:
    """A PDF file that opens with a password; with an empty one it opens for everybody."""
    import pypdf

    writer = pypdf.PdfWriter(
        clone_from=pypdf.PdfReader(io.BytesIO(make_pdf("a secret about boats")))
    )
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def as_lines(documents: "list[Document]") -> str:
    """Documents as a corpus of JSON lines."""
    return "".join(
        json.dumps({"id": one.id, "text": one.text, "labels": list(one.labels), **one.fields})
        + "\n"
        for one in documents
    )
