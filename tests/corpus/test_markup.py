import codecs
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parabit.corpus.markdown import markdown_to_text
from parabit.corpus.markup import decoded_html, html_to_text

# What broken pages are made of.
PIECES = [
    *("<p>", "</p>", "<div", ">", "<", "</", "<!", "<!--", "-->", "<![", "<![if IE]>", "<![endif]>", "<![CDATA["),
    *("]]>", "<?", "<?xml version='1.0'?>", "<head>", "</head>", "<title>", "</title>", "<body>", "<div hidden>"),
    *("</div>", "<br/>", "<pre>", "</pre>", "<style>", "</style>", "<noscript>", "</noscript>", "<svg>", "<tr><td>"),
    *("&amp;", "&#x41;", "&#xD800;", "&#99999999;", "&nosuch;", "&", "'", '"', "=", "/>", "\0", "\n", "boats", "é"),
    "\ud800",
]  # fmt: skip
SECRET = "steal(cookies)"


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text())
@example("<p>a<![x y]>b")
@example("<a " * 2000)
def test_no_page_is_too_broken_to_be_read(html: str) -> None:
    assert isinstance(html_to_text(html), str)


@given(
    st.lists(st.sampled_from([piece for piece in PIECES if "xml" not in piece]), max_size=20).map("".join),
    st.sampled_from(["script", "SCRIPT", "style"]),
    st.sampled_from(["", " defer", ' type="module"', "/", " src='x' /", "\n"]),
    st.lists(st.sampled_from(["</p>", "<b>", "<!--", "&lt;", "</", "\n", "</scr", '"', "<script"]), max_size=5),
    st.sampled_from(["</{}>", "</{} >", "</{}\n>", ""]),
)
def test_what_a_script_says_is_never_shown(before: str, tag: str, attributes: str, around: list[str], end: str) -> None:
    """Wherever it stands: in a head, in a page that is broken, without an end."""
    # A tag that is still open would swallow that of the script, which then is none.
    before = before.rpartition(">")[0] + "'\">"
    script = f"<{tag}{attributes}>" + "".join([*around, SECRET, *around]) + end.format(tag)
    assert SECRET not in html_to_text(f"{before}{script}<p>after</p>")


def test_a_page_is_read_as_it_is_shown() -> None:
    page = """<!DOCTYPE html><html lang=en><head><meta charset="utf-8"><title>Boats &amp; oars</title>
        <style>p { color: red }</style><script>if (a < b) { alert("</p>") }</script><base href="/"></head>
        <body class=x><nav><ul><li><a href="/home">Home</a></li><li>About</li></ul></nav>
        <h1>On <em>boats</em></h1><p>A boat&nbsp;floats,
        mo&shy;stly.<br>Some<b>times</b> not.</p>
        <table><tr><th>kind</th><th>oars</th></tr><tr><td>skiff</td><td>2</td></tr></table>
        <pre>  row()
          steer()</pre><!-- a remark --><noscript>Turn scripts on!</noscript>
        <div hidden>not <div>this</div> either</div><div style="color: red; display:none">nor this</div>
        <template><p>x</p></template><p>&lt;end&gt; &#8364; &eacute;"""
    assert html_to_text(page).split("\n") == [
        "Boats & oars",
        "Home",
        "About",
        "On boats",
        "A boat floats, mostly.",
        "Sometimes not.",
        "kind oars",
        "skiff 2",
        "row()",
        "steer()",
        "<end> € é",
    ]


def test_what_is_left_out_of_a_page_is_left_out_as_in_a_browser() -> None:
    cases = {
        "<title>Boats<body>float": "Boats\nfloat",  # no end tag
        "<head><title>T</title><p>text": "T\ntext",  # no end of the head
        "<script/>x()</script>shown": "shown",  # the slash says nothing in HTML
        "<?xml version='1.0'?><html><script src='x'/><p>shown</p></html>": "shown",  # and much in XHTML
        "<p>shown<script>never closed": "shown",
        "<p>a<![if IE]>b<![endif]>c</p>": "abc",
        "<p>shown <a href='": "shown",
        "<object><p>instead</p></object>shown": "shown",
        "no markup at all": "no markup at all",
        "": "",
    }
    assert {html: html_to_text(html) for html in cases} == cases


@pytest.mark.parametrize(
    ("start", "encoding"),
    [
        ("", "utf-8"),
        ('<meta charset="windows-1251">', "windows-1251"),
        ("<META http-equiv=Content-Type content='text/html; charset=koi8-r'>", "koi8-r"),
        ('<?xml version="1.0" encoding="iso-8859-5"?>', "iso-8859-5"),
        ('<meta charset="no-such-encoding">', "utf-8"),
        ('<meta charset="rot13">', "utf-8"),
        ('<meta charset="idna">', "utf-8"),
    ],
)
def test_a_page_says_how_it_is_encoded(start: str, encoding: str) -> None:
    assert html_to_text(decoded_html(f"{start}<p>чай".encode(encoding))) == "чай"


def test_a_mark_at_the_start_says_it_better() -> None:
    page = '<meta charset="latin-1"><p>чай'
    assert decoded_html(codecs.BOM_UTF8 + page.encode()) == page
    for encoding in ("utf-16", "utf-32"):
        assert decoded_html(page.encode(encoding)) == page


def test_latin_1_is_what_browsers_take_it_for_and_wrong_bytes_are_replaced() -> None:
    assert decoded_html(b'<meta charset="iso-8859-1">\x80\xe9').endswith("€é")
    assert decoded_html(b"caf\xe9") == "caf\ufffd"
    assert decoded_html(b"caf\xe9", otherwise="latin-1") == "café"


MARKDOWN = """---
title: Boats
tags: [water]
---
# All *about* boats #

Setext
------

> A **boat** floats, ~~mostly~~. See [the *sea*](https://sea.example/(a)_b "Sea"), [ref][1], [own][].

- [x] oars ![an oar](oar.png)
* snake_case_name and 2 * 3 * 4
1. [![badge](https://badge.example/x.svg)](https://ci.example) `**code**` &amp; \\*star\\*

[1]: https://example.com/target "A title"

```python
def row(boat):  # *as it is*
    return boat[0](oars)
```

~~~
# not a heading
~~~

| kind | oars |
|------|:----:|
| skiff | `a|b` |

<div align="center">half<b>way</b></div> <!-- unseen
--> <https://auto.example> note[^1].

[^1]: The note.

***
end
"""


def test_markdown_is_read_as_it_is_shown() -> None:
    lines = [" ".join(line.split()) for line in markdown_to_text(MARKDOWN).split("\n")]
    assert [line for line in lines if line] == [
        "All about boats",
        "Setext",
        "A boat floats, mostly. See the sea, ref, own.",
        "oars an oar",
        "snake_case_name and 2 * 3 * 4",
        "badge **code** & *star*",
        "def row(boat): # *as it is*",
        "return boat[0](oars)",
        "# not a heading",
        "kind oars",
        "skiff a|b",
        "halfway note.",
        "The note.",
        "end",
    ]


def test_only_front_matter_is_taken_for_front_matter() -> None:
    assert markdown_to_text("\ufeff---\r\ntitle: x\r\n---\r\ntext") == "text"
    assert markdown_to_text("+++\ntitle = 'x'\n+++\ntext") == "text"
    assert markdown_to_text("---\nA text between two rules.\n\n---\ntext").split() == [
        *("A", "text", "between", "two", "rules.", "text")
    ]
    assert "title: x" in markdown_to_text("---\ntitle: x\nnever closed")


@given(st.text(alphabet="`~#*_[]()<>!|-:\\ \n\tab1.&;", max_size=200))
def test_all_words_of_markdown_without_links_and_tags_stay(text: str) -> None:
    assert isinstance(markdown_to_text(text), str)
    words = "\n\n".join(["alpha", "*beta* __gamma__", "# delta", "- epsilon"])
    kept = markdown_to_text(words + "\n\n" + "".join(char for char in text if char not in "[]()<>`~&;"))
    assert all(word in kept for word in ("alpha", "beta", "gamma", "delta", "epsilon"))


@pytest.mark.parametrize(
    "piece", ["<a x='", "<a ", "<!--", "` `` ", "[a](", "*a ", " ", "| ", "&#", "<div hidden>", "> "]
)
def test_no_markup_takes_ages(piece: str) -> None:
    start = time.perf_counter()
    html_to_text(piece * 5_000)
    markdown_to_text(piece * 5_000)
    assert (
        time.perf_counter() - start < 5
    )  # a tenth of that on an idle machine; minutes where it is read again and again
