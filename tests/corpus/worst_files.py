"""A folder of the worst files known, and ordinary files around them: `python worst_files.py FOLDER` writes it.

Each of them stopped, slowed down or ended the reading of a whole folder once, or belongs to a kind that did.
"""

import base64
import bz2
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from made_up_files import make_pdf

# A table of 200 rows with one changed byte, which makes polars abort the process: compressed, in letters.
_MUTATED_PARQUET = (
    "c-"
    "jka3^EjD5ZyJGQFIT7j_5*WAcswqO~#BtL$@fuT*1;(AwNx_B(<VM0Y6tl3nXBGB8`j3z`&rfRsU~7tlClm2Bve05)0H{+V?H`DZ"
    "X}9oQGzxmnP@EMgMO3C^NbiPoKPK=V{N2cb+cEcvlo;Qf{d^Yxf+Hv$1|%&-"
    "B!x(kCTAj6e|K2qFwY#7B@s0Z?Pg7NAa}2%uI;ZJ=Hju;%8*0}CY#L>6lp2net+I%voUumo~6g{>%hdi_6dQ-8`#W}zKStz23v-"
    "Yw}K?>KI%K4RE4z5ed&_{(=oFTJU9nk<<nyL4}h=H3uJ2lKyelU7b~ke26>bWP=0^y@{=0=vJwOIN1UnpvNb^1Ce&{O4qZlkYFyr"
    "NN$`*X)~P)p1K`>642$S!#Dldo928+NW-"
    "2%A7BTUB4FZ<k<Dae9E#(CnDciJQet=>Tz?av1HXt^C^Bych0<Hbi!bzvdq@>B%!S@^E7-"
    "_LpT2_ykvOUTVj)cit>}o`5LxYAEy0~&-"
    "L~?>735_>#}w2FKMq}!FTPm71Lz1PUuVKcCEj?RaQ&QU2oY&Z`Pl633p{eJ^eZliS}ETt#sJOzed_!_oU{+f~SVZ{j^SeZ+!V|g="
    "(Rf$T}Oa@+zt*zq!P3lk<zi##d@$5Bz3|*Z;7W@jb6i{DIeOa^gR><d-"
    "z;%y=8cD9R(L%D^Tm!2(JyqC8>~n8g;&XB1n)rN&`H<CH1NBHAD+dV|GBbOJChKohD1t0*T!nxvboz>a%-"
    "fBr+k+{jQQkfUkIV9(&d@bTW(=;`lbb{0O|S9*Ke+o-"
    "LX7w4HqPkR%wG4WvC*IQFxhpmm=7`HWQ>Z_2IfeY<QZ%ug_wA6E=oNRcAp{t0$$wn6;cM(Gu0sAi-ocYYJ7&!CjZ`t6)r9Q>Li9^"
    "0*gCm=Gh=C&uzsUv%CUy}62ZsN@-"
    "kvUBe{av;H<M25ZapJ(T6^u9NvAZI_6VI)pPMu3r0P^3p_9tJI+IQ)w(<y_kgt6+@wja18NuVyxoajKlT7UqJSHBSGtu?Gn`CUrM"
    "HfNaD;JzNWkW7FF#f%K-"
    "tOm};PW;g_gp?_^>R+|Ig5uim(QBrj0rw#a?$4U8KaXj!DkE({t;?89>T=H%m^$y7BP!%Vb%eKodB#H;W*9!0TLVx2mlIKg^QhR4"
    "9q~z1ZGAKV+KYhW)@a9b`DN1ZXRAfegQ!tVG&U=aS2H&X&G5Lc?Cr!WffI5bq!4|Z5>@beFH-yV-"
    "r&|a|=r=Ya3fTdk04+XBSsDcMnf5Zy#Sj|A4@t;E>R;@QBE$=$P2J_=Loy<doF3^o-"
    "1`?3~=Z{DQ)w;*!#`@`}o;>YCcR`i91)=9bpB_Kwc3?w;Ph{s|K&O`bA!+VmMSXU(27ci#L33l}Y3vUJ(<6)RV*UbA-"
    "H`VAX5ZQinV+x8thckSM@ci;X42M--Sa`f17Q5H#41~vgn3C27~(w!wM*21YaOHgeQ56<ua2HhM5(G5&Gq6^p%MKEKM1Y;sB5%RH"
    "@vM_|*k`~;c+RC>>)zfd|nFj|q1av4^OEHK5;q7g?D9Ef+f>Gfl2ajh9x(o<m6H^t$6y<L0Um^G*`wiQ}^^8IX_W%FCpYd$k)ip~"
    "Fgx}nC1)5JS7;{*1GK)*tQ*%;tQ}aMMb^)8%4F$0`OllLvY!Dui6l9VlB|Az=ke1a&86?G^w!p&{$UF`YWVkeAA`mA*1!TlHM3-"
    "=hF@Tw~1VwvTpzH}^qHmZ$Y*8l391oVF{QMG8HU?21RVGN$q{`qU1CnI{3NYp|m;%WhQ6^C~9~+>kDT@R+R79B|I$)s#)dWl#k}{"
    "GuYHPS;2C%pj>yQx@6T2fRdWMlfZJv}2S&3I{o{Xr3*a~S;I|j8s5;CNw3bAb<?a!n|l^DdP++_sXs>UHUMN9+~1rj`tK|%iER>j"
    "E~skw;~H<<LnAlnfLTtS3I8IW5M2<3x?yd52j9i72+prdvGP`<nzB<|_xm=0Cv3#6REn!-"
    "VZBZ%pg4>CCj#C3tG2ZEqbm{njR17u!BI!qJD9*|V1BNTw;%faRqq_~HbfCarmfPxlIAZ8MX@W}%4^Wla<+~owJfFJ;*-"
    "qI27G@t~~wXR@wAilc^$dSb$_xd0l5eac`Ajl*~*L0wI5FH5dhYQqbeW?4KpjHFjXp-XSXv-ks7m%NmSX8W_QBYZuk)NljP?lO$o"
    "SC1eV5DcLXP}^wRGOKSqF|n8X<(F;Vw{$iVq~6{W?__KXkuh;k!WC<Xk=-cmS&V@o|u|qX{0G>15D)*#9$9B<O6^$O#siaf9C"
)

BIG = 4_000_000_000  # what some small files become when decompressed

# Each file that is named, and how the reason begins. The limits of time in it are met by any machine.
NAMED = {
    "bomb.csv.gz": "over a limit",
    "bomb.html.gz": "over a limit",
    "bomb.json.gz": "over a limit",
    "bomb.jsonl.gz": "over a limit",
    "bomb.md.gz": "over a limit",
    "bomb.pdf.gz": "over a limit",
    "bomb.txt.gz": "over a limit",
    "archive.tar.gz": "archive",
    "brackets.md": "over a limit: took",
    "columns-45-million.csv.bz2": "over a limit",
    "columns-20-thousand.csv": "over a limit",
    "columns-20-thousand.parquet": "over a limit: 20,000 columns",
    "control-characters.jsonl": "control character in the id",
    "cut-off.csv.gz": "damaged or cut off",
    "cut-off.parquet": "damaged or cut off",
    "deep.json": "not valid JSON",
    "deep.jsonl": "over a limit: nested more than 200 deep",
    "digits.jsonl": "not valid JSON",
    "empty.parquet": "empty file",
    "fonts.html": "over a limit",
    "huge-string.parquet": "over a limit: a row with more than",
    "mutated.parquet": "",  # polars aborts: by what, depends on its version
    "nothing.html": "empty file",
    "one-page-100-thousand-times.pdf": "over a limit",
    "page-in-itself.pdf": "not readable as PDF",
    "pictures.md": "",
    "quote-never-closed.csv": "",
    "stream-bomb.pdf": "",
    "zeros.html": "binary file",
}
# Files that were as bad, and are read now.
READ = (
    "codec-idna.html", "codec-unicode-escape.html", "front-matter.md", "good-1.txt", "good-2.html", "good-3.md",
    "good-4.pdf", "good-5.csv:2", "good-6.jsonl:1", "good-7.parquet:1", "scripts.md", "surrogate.jsonl:1",
)  # fmt: skip


def _gzip_of(start: bytes, repeated: bytes, end: bytes, size: int) -> bytes:
    """A small file that becomes one of this size."""
    block = gzip.compress(repeated * (1_000_000 // len(repeated)))
    # Files of gzip one after the other are one file.
    return gzip.compress(start) + block * (size // 1_000_000) + gzip.compress(end)


def _bzip2_of(repeated: bytes, size: int) -> bytes:
    return bz2.compress(repeated * size)


def _parquet(frame: pl.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def _pages_of_one(times: int) -> bytes:
    """A PDF that lists its only page again and again."""
    pdf = make_pdf("again")
    start, _, end = pdf.partition(b"/Kids [")
    page, _, rest = end.partition(b"]")
    return start + b"/Kids [" + (page + b" ") * times + b"]" + rest


def _page_in_itself() -> bytes:
    """A PDF whose pages are a page of themselves."""
    return make_pdf("x").replace(b"/Type /Page /Parent 2 0 R", b"/Type /Pages /Kids [2 0 R]")


def _stream_bomb(big: int) -> bytes:
    """A PDF whose only page is drawn by a small stream that becomes a gigabyte."""
    packer = zlib.compressobj(9)
    packed = (
        b"".join(packer.compress(b"(x) Tj " * 150_000) for _ in range(big // 4_000_000))
        + packer.flush()
    )
    drawn = f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode()
    pdf = make_pdf("x")
    start, _, end = pdf.partition(b"<< /Length ")
    return start + drawn + packed + b"\nendstream" + end.partition(b"endstream")[2]


def contents(big: int = BIG) -> Iterator[tuple[str, bytes]]:
    """The name and the content of each file."""
    yield "archive.tar.gz", gzip.compress(bytes(10_000))
    yield "bomb.csv.gz", _gzip_of(b"text\n", b"x", b"", big)
    yield "bomb.html.gz", _gzip_of(b"<p>", b" ", b"x", big)
    yield "bomb.json.gz", _gzip_of(b'["', b"x", b'"]', big)
    yield "bomb.jsonl.gz", _gzip_of(b'{"text": "', b"x", b'"}', big)
    yield "bomb.md.gz", _gzip_of(b"# ", b"x", b"", big)
    yield "bomb.pdf.gz", _gzip_of(b"%PDF-1.4\n", b"0", b"", big)
    yield "bomb.txt.gz", _gzip_of(b"x", b" ", b"x", big)
    yield "brackets.md", b"[" * 200_000
    yield "codec-idna.html", b'<meta charset="idna"><p>idna \xff'
    yield "codec-unicode-escape.html", b'<meta charset="unicode_escape"><p>escape \\U \xff'
    yield "columns-20-thousand.csv", ",".join(map(str, range(20_000))).encode() + b"\n"
    yield (
        "columns-20-thousand.parquet",
        _parquet(pl.DataFrame({f"c{n}": [1] for n in range(20_000)})),
    )
    yield "columns-45-million.csv.bz2", _bzip2_of(b",", 45_000_000)
    yield "control-characters.jsonl", b'{"id": "\\u001b[2J", "text": "clears the screen"}'
    yield "cut-off.parquet", _parquet(pl.DataFrame({"text": ["a text"] * 1_000}))[:-100]
    yield "cut-off.csv.gz", gzip.compress(b"text\n" + b"a\n" * 1_000)[:-9]
    yield "deep.json", b"[" * 1_000_000
    yield "deep.jsonl", b'{"text": "deep", "x": ' + b"[" * 260 + b"]" * 260 + b"}"
    yield "digits.jsonl", b'{"text": "x", "n": ' + b"9" * 1_000_000 + b"}"
    yield "empty.parquet", b""
    fonts = "".join(f"<font a={number}><p>" for number in range(6_000))
    yield "fonts.html", fonts.encode()
    yield "front-matter.md", b"---\ntitle: a" + b" " * 100_000 + b"b\n---\nfront"
    yield "good-1.txt", b"the first good text"
    yield "good-2.html", b"<title>good</title><p>the second"
    yield "good-3.md", b"# good\n\nthe *third*"
    yield "good-4.pdf", make_pdf("the fourth")
    yield "good-5.csv", b"text,n\nthe fifth,5\n"
    yield "good-6.jsonl", json.dumps({"text": "the sixth"}).encode()
    yield "good-7.parquet", _parquet(pl.DataFrame({"text": ["the seventh"]}))
    yield "huge-string.parquet", _parquet(pl.DataFrame({"text": ["x" * (big // 20)]}))
    yield "mutated.parquet", zlib.decompress(base64.b85decode(_MUTATED_PARQUET))
    yield "nothing.html", b""
    yield "one-page-100-thousand-times.pdf", _pages_of_one(100_000)
    yield "page-in-itself.pdf", _page_in_itself()
    yield "pictures.md", b"![" * 100_000 + b"](x)" * 100_000
    yield "quote-never-closed.csv", b'text\n"' + b"a line\n" * 1_000_000
    yield "scripts.md", b"a " + b"<script> b " * 20_000
    yield "stream-bomb.pdf", _stream_bomb(big)
    yield "surrogate.jsonl", b'{"text": "\\ud800"}'
    yield "zeros.html", bytes(10_000)


def write_worst_files(folder: Path, big: int = BIG) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents(big):
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    write_worst_files(Path(sys.argv[1]))
