"""Markdown and HTML become what a reader sees of them, whatever state their markup is in."""

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parabit.corpus.extract import Page, from_html, from_markdown

# Markdown as in real files, its text, and its title if it has one.
MARKDOWN: dict[str, tuple[str, ...]] = {
    "readme": (
        "# boatlib [![CI](https://ci.example/b.svg)](https://ci.example) ![downloads](https://d.example/x.svg)\n\n"
        "> Rowing for **Python**: *fast*, ~~heavy~~ and `light_weight`.\n\n"
        'See the [documentation](https://docs.example/(a)_b "Docs"), the [changes][log] or [PyPI][].\n\n'
        '[log]: https://example.com/log "All changes"\n[PyPI]: https://pypi.example\n',
        "boatlib CI downloads\n\nRowing for Python: fast, heavy and light_weight.\n\n"
        "See the documentation, the changes or PyPI.",
        "boatlib CI downloads",
    ),
    "centred readme": (
        '<p align="center"><img src="logo.png" width="200"></p>\n<h1 align="center">Keel &amp; Co</h1>\n\n'
        '<div align="center">\n\nThe *heavy* part.\n\n</div>\n',
        "Keel & Co\n\nThe heavy part.",
        "Keel & Co",
    ),
    "inline code with a tag": (
        "# Scripts\n\nUse the `<script>` tag and more text, or `<!--` for a comment.\n\nThe end.",
        "Scripts\n\nUse the <script> tag and more text, or <!-- for a comment.\n\nThe end.",
        "Scripts",
    ),
    "front matter of a blog": (
        '---\ntitle: "Knots: a guide"\ndate: 2024-05-01\ntags: [rope]\n---\n\nTie a *bowline*.\n\n# Later heading\n',
        "Tie a bowline.\n\nLater heading",
        "Knots: a guide",
    ),
    "front matter of Hugo": (
        "+++\ntitle = 'Tides'\ndraft = true\n+++\nHigh and low.",
        "High and low.",
        "Tides",
    ),
    "front matter of Windows": (
        "\ufeff---\r\nTitle: Wind \r\n---\r\none\r\ntwo",
        "one\ntwo",
        "Wind",
    ),
    "text between rules": (
        "---\nA text between two rules.\n\n---\ntext",
        "A text between two rules.\n\ntext",
    ),
    "front matter without an end": ("---\ntitle: x\nnever closed", "title: x\nnever closed"),
    "underlined headings": ("Sea\n===\n\nSalt\n----\nwater", "Sea\n\nSalt\n\nwater", "Sea"),
    "nested lists": (
        "1. first\n   - *deep*\n     more\n     - [ ] deeper\n   - [x] done\n"
        "2. second\n\n* loose\n\n* items\n\n  of two",
        "first\ndeep\nmore\ndeeper\ndone\nsecond\n\nloose\n\nitems\n\nof two",
    ),
    "table": (
        "| kind | `oars` |\n|:-----|-------:|\n| [skiff](a.md) | 2 |\n| `a\\|b` | **8** |\n\nAfter it.",
        "kind  oars\nskiff  2\na|b  8\n\nAfter it.",
    ),
    "code blocks": (
        "Run:\n\n    row(boat)  # *as is*\n\n"
        '```python title="x"\ndef row(boat):\n    return boat[0](1)\n```\n~~~\n# no heading\n~~~',
        "Run:\n\nrow(boat)  # *as is*\n\ndef row(boat):\n    return boat[0](1)\n\n# no heading",
    ),
    "fence without an end": ("text\n```\n<b>code</b>", "text\n\n<b>code</b>"),
    "entities and escapes": (
        "Fish &amp; chips, 5&nbsp;km, &#8364;3, \\*stars\\*, 2 * 3 * 4, snake_case_name",
        "Fish & chips, 5\u00a0km, €3, *stars*, 2 * 3 * 4, snake_case_name",
    ),
    "comments, scripts and styles": (
        "a <!-- unseen\n*still* --> b <script>steal(cookies)</script>c\n\n<style>\np { color: red }\n\n</style>\n\n"
        "<!--\n\nlong\n\n-->\nd",
        "a  b c\n\nd",
    ),
    "inline HTML": (
        'Press <kbd>Ctrl</kbd>+<kbd>C</kbd>, H<sub>2</sub>O<br>next <a href="https://x.example">line</a>.',
        "Press Ctrl+C, H2O\nnext line.",
    ),
    "details": (
        "<details>\n<summary>More &hellip;</summary>\n\nHidden **text**.\n\n</details>\n\nend",
        "More …\n\nHidden text.\n\nend",
    ),
    "footnotes": (
        "A claim[^1] and another[^long-note].\n\n[^1]: The first note.\n[^long-note]: The second.",
        "A claim and another.\n\n The first note.\n The second.",
    ),
    "addresses": (
        "Mail <me@boats.example> or see <https://boats.example/a>, not <b>. ![](empty.png)![A *tall* mast](m.png)",
        "Mail  or see , not . A tall mast",
    ),
    "links of a wiki": ("See [[Home]] and [[boats/Oars|the oars]].", "See Home and the oars."),
    "quotation": ("> > deep\n> words\n\nreply", "deep\nwords\n\nreply"),
    "broken": (
        "[open *and **never `closed\n\n|not|a table\n<div\n",
        "[open *and **never `closed\n\n|not|a table",
    ),
    "empty": ("", ""),
}

# HTML as in real pages, its text, and its title if it has one.
HTML: dict[str, tuple[str, ...]] = {
    "page of documentation": (
        """<!DOCTYPE html><html lang=en><head><meta charset="utf-8"><title>Boats &amp; oars</title>
        <style>p { color: red }</style><script>if (a < b) { alert("</p>") }</script><base href="/"></head>
        <body class=x><nav><ul><li><a href="/home">Home</a></li><li>About</li></ul></nav>
        <h1>On <em>boats</em></h1><p>A boat&nbsp;floats,
        mo&shy;stly, from <code>left</code> to right.<br>Some<b>times</b> not.</p></body></html>""",
        "Boats & oars\nHome\nAbout\nOn boats\nA boat floats, mostly, from left to right.\nSometimes not.",
        "Boats & oars",
    ),
    "code": (
        "<p>Run:</p><pre><code>  row()\n    steer(<span class=n>boat</span>)</code></pre><textarea>a\nb</textarea>",
        "Run:\nrow()\nsteer(boat)\na\nb",
    ),
    "table": (
        "<table><caption>Kinds</caption><tr><th>kind<th>oars<tr><td>skiff<td>2</table>",
        "Kinds\nkind oars\nskiff 2",
    ),
    "blog without a title": (
        "<article><header><h1>A <i>windy</i>\n day</h1><time>1 May</time></header>"
        "<p>It blew.</p></article><h1>Other</h1>",
        "A windy day\n1 May\nIt blew.\nOther",
        "A windy day",
    ),
    "what is not shown": (
        "<p>one</p><template><p>t</p></template><div hidden>not <div>this</div> either</div><iframe>i</iframe>"
        "<div style='color:#fff; DISPLAY : none'>Preview</div><img src=pixel.gif alt=''>"
        "<p style='visibility:hidden'>nor this<p>two<video><p>get a browser</p></video><object><p>flash</object> three",
        "one\ntwo three",
    ),
    "noscript around paragraphs": (
        "<head><noscript><p>Turn scripts on!</p></noscript><title>App</title></head>"
        "<p>a <noscript><p>b</p></noscript>c",
        "App\na c",
        "App",
    ),
    "comments": ("<p>a<!-- b --> c<!-- <p>d</p> --><![if IE]>e<![endif]><!-->f", "a cef"),
    "definitions and lists": (
        "<dl><dt>oar<dd>moves it<dt>sail<dd>too</dl><ol><li>one<ul><li>deep</ul><li>two</ol>"
        "<select><option>x<option>y</select>",
        "oar\nmoves it\nsail\ntoo\none\ndeep\ntwo\nx\ny",
    ),
    "entities": (
        "&lt;end&gt; &#8364; &eacute; &#x41;&amp;amp; &nosuch; AT&T &copy 2024",
        "<end> € é A&amp; &nosuch; AT&T © 2024",
    ),
    "invisible characters": (
        "<p>soft&shy;ware zero\u200bwidth join\u2060er\ufeff",
        "software zerowidth joiner",
    ),
    "unclosed tags": ("<div><p>one<p>two <b>three<div>four <a href='", "one\ntwo three\nfour"),
    "misnested tags": (
        "<b>one <i>two</b> three</i> <p>four</div>five</p></span>six",
        "one two three\nfourfive\nsix",
    ),
    "no end of the head": ("<head><title>T</title><p>text", "T\ntext", "T"),
    "script without an end": ("<p>shown<script>never closed", "shown"),
    "a slash in HTML": ("<script/>x()</script>shown", "shown"),
    "a slash in XHTML": (
        "<?xml version='1.0'?><html><head><title/><script src='x'/></head><body><p>shown</p></body></html>",
        "shown",
    ),
    "picture with a title": (
        "<svg><title>An icon</title><text>label</text></svg><p>text",
        "An icon\nlabel\ntext",
    ),
    "two titles": (
        "<title>First</title><p>a<title>Second</title>b",
        "First\na\nSecond\nb",
        "First",
    ),
    "frames": ("<frameset cols='*,*'><frame src=a><noframes>Old browser</noframes></frameset>", ""),
    "no markup": ("no markup\nat all", "no markup at all"),
    "empty": ("", ""),
}


@pytest.mark.parametrize("case", MARKDOWN)
def test_markdown_becomes_what_a_reader_sees(case: str) -> None:
    markdown, text, *title = MARKDOWN[case]
    assert from_markdown(markdown) == Page(text, title[0] if title else None)


@pytest.mark.parametrize("case", HTML)
def test_a_page_becomes_what_a_reader_sees(case: str) -> None:
    html, text, *title = HTML[case]
    assert from_html(html.encode()) == Page(text, title[0] if title else None)


def test_a_page_says_how_it_is_encoded() -> None:
    for start, encoding in (
        ("", "utf-8"),
        ('<meta charset="windows-1251">', "windows-1251"),
        ("<META http-equiv=Content-Type content='text/html; charset=koi8-r'>", "koi8-r"),
        ('<?xml version="1.0" encoding="iso-8859-5"?>', "iso-8859-5"),
        ('<meta charset="no-such-encoding">', "utf-8"),
        ('<meta charset="rot13">', "utf-8"),
        (
            '<meta charset="latin-1">',
            "utf-8-sig",
        ),  # the byte order mark counts more than what the page says
        ('<meta charset="latin-1">', "utf-16"),
        ('<meta charset="latin-1">', "utf-32"),
    ):
        assert from_html(f"{start}<p>чай".encode(encoding))[0] == "чай"


def test_a_page_that_does_not_say_it_is_utf_8_or_windows_1252() -> None:
    assert from_html(b'<meta charset="iso-8859-1"><p>\x80\xe9')[0] == "€é"  # as browsers take it
    assert from_html("<p>žába".encode("iso-8859-2"), "iso-8859-2")[0] == "žába"
    assert from_html("<p>žába".encode(), "utf-8")[0] == "žába"
    assert from_html(codecs.BOM_UTF8 + b"<p>caf\xe9", "latin-1")[0] == "caf\ufffd"


# What broken pages are made of.
PIECES = [
    *("<p>", "</p>", "<div", ">", "<", "</", "<!", "<!--", "-->", "<![", "<![if IE]>", "<![endif]>", "<![CDATA["),
    *("]]>", "<?", "<?xml version='1.0'?>", "<head>", "</head>", "<title>", "</title>", "<body>", "<div hidden>"),
    *("</div>", "<br/>", "<pre>", "</pre>", "<style>", "</style>", "<noscript>", "</noscript>", "<svg>", "<tr><td>"),
    *("&amp;", "&#x41;", "&#xD800;", "&#99999999;", "&nosuch;", "&", "'", '"', "=", "/>", "\0", "\n", "boats", "é"),
]  # fmt: skip
SECRET = "steal(cookies)"


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text())
@example("<p>a<![x y]>b")
def test_no_page_is_too_broken_to_be_read(html: str) -> None:
    text = from_html(html.encode())[0]
    text.encode()
    assert "\n\n" not in text


@given(
    st.lists(
        st.sampled_from(sorted({*PIECES} - {"<svg>", "<?xml version='1.0'?>"})), max_size=20
    ).map("".join),
    st.sampled_from(["script", "SCRIPT", "style"]),
    st.sampled_from(["", " defer", ' type="module"', "/", " src='x' /", "\n"]),
    st.lists(st.sampled_from(["</p>", "<b>", "&lt;", "</", "\n", "</scr", '"']), max_size=5),
    st.sampled_from(["</{}>", "</{} >", "</{}\n>", ""]),
)
def test_what_a_script_says_is_never_shown(
    before: str, tag: str, attributes: str, around: list[str], end: str
) -> None:
    """Wherever it stands: in a head, in a broken page, without an end."""
    # A tag or a title that is still open would swallow that of the script, which then is none; in a picture or in XML
    # a script is markup like any other.
    before = before.rpartition(">")[0] + "'\"></title>"
    script = f"<{tag}{attributes}>" + "".join([*around, SECRET, *around]) + end.format(tag)
    assert SECRET not in from_html(f"{before}{script}<p>after</p>".encode())[0]


@given(st.text(alphabet="`~#*_[]()<>!|-:\\ \n\tab1.&;", max_size=200))
def test_all_words_of_markdown_without_links_and_tags_stay(text: str) -> None:
    from_markdown(text)
    words = "\n\n".join(["alpha", "*beta* __gamma__", "# delta", "- epsilon"])
    kept = from_markdown(
        words + "\n\n" + "".join(char for char in text if char not in "[]()<>`~&;")
    )[0]
    assert all(word in kept for word in ("alpha", "beta", "gamma", "delta", "epsilon"))


# No clock: a step that is quadratic in these sizes would take minutes.
@pytest.mark.parametrize(
    "piece", ["[a\\", "<a x='", "<!--", "` `` ", "[a](", "*a ", "| ", "&#", "<div hidden>", "> "]
)
def test_markdown_takes_time_in_proportion_to_its_length(piece: str) -> None:
    from_markdown(piece * (100_000 // len(piece)))
    from_markdown(f"```\n{piece * 100_000}\n```")


@pytest.mark.parametrize(
    "piece",
    ["<div>", "<ul><li>", "<x-y>", "<b>", "<a x='", "<a ", "<!--", "<p>", "&#", "<noscript>"],
)
def test_html_may_be_nested_deeper_than_the_stack(piece: str) -> None:
    text = from_html(f"<p>first</p>{piece * 5_000}last".encode())[0]
    assert text.startswith("first")
    assert text.endswith("last") == (
        piece not in ("<a x='", "<a ", "<!--", "<noscript>")
    )  # which never end
