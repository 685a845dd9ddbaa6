"""MediaWiki markup becomes what a reader sees, and broken markup loses no article."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit.corpus.datasets.wikipedia import ENGLISH, read_article

VIETNAMESE = ENGLISH | {"tập tin": "file", "thể loại": "category"}


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("'''bold''' and ''italic'' and '''''both'''''", "bold and italic and both"),
        ("l''''amour'''", "l'amour"),
        (
            "a [[link]], a [[target|label]], [[bus]]es, [[Foo#Bar|part]]",
            "a link, a label, buses, part",
        ),
        ("[[Cat]] [[Foo (bar)|]] [[#History]]", "Cat Foo (bar) History"),
        ("[[a|b: c]] [[a|b|c]]", "b: c b|c"),
        ("[[Star Trek: Voyager]]", "Star Trek: Voyager"),
        ("bee[[de:Bienen]] [[zh-min-nan:Phang]][[simple:Bee]]s", "bee s"),
        (
            "[[:de:Biene|in German]], [[:Category:Bees]], [[:File:x.jpg|picture]]",
            "in German, Category:Bees, picture",
        ),
        ("[[wikt:bee|bee]]", "bee"),
        ("text[[Category:Bees]][[category : Insects|*]]", "text"),
        ("a [[File:x.jpg|thumb|of [[b|c]] and [[d]]]] e", "a e"),
        ("a [[image:x.png|50px]]b [[FILE:y z.svg]]", "a b"),
        ("[[File:x.jpg|[[File:y.jpg|[[z]]]] w]] rest", "rest"),
        ("[[Bild:x.JPG|mini|ein [[b]] c]] rest", "rest"),  # an alias that no dump names
        ("[[a|b [[c]] d]] e", "b c d e"),
        ("[[a|see [b]]] [sic]", "see [b] [sic]"),
        (
            "[http://x.org a label], [https://x.org], [//x.org b], [mailto:a@b.org c]",
            "a label, , b, c",
        ),
        ("[http://x.org [[link]]] [[a|[http://x.org b]]]", "link b"),
        ("see http://x.org/a?b=c and HTTPS://Y.ORG", "see and"),
        ("a{{b}} {{c|d={{e|f}}|{{{g|}}}}}h {{{1|}}}", "a h"),
        ("{{{{{1}}}}} a {{\n| b = [[c]]\n}}", "a"),
        ("{{Infobox\n| a = {|\n| b\n|}\n}}text", "text"),
        ('before\n{| class="x"\n! a\n|-\n| b\n:{|\n| c\n|}\n| d\n|}\nafter', "before\nafter"),
        ("a<ref>b</ref> c<ref name=d/> e<REF group='f'>{{g}}\n</Ref > h", "a c e h"),
        ("a<!-- b\n{{ -->c <math>x_{{1}}</math>d", "ac d"),
        (
            "<gallery>\nFile:x.jpg|[[y]]\n</gallery><source lang=py>a = [[1]]</source><timeline>b</timeline>c",
            "c",
        ),
        ("<syntaxhighlight>{{</syntaxhighlight>x<references />", "x"),
        ("<nowiki>[[a]] ''b'' {{c}}</nowiki> <pre>* [[d]]</pre>", "[[a]] ''b'' {{c}} * [[d]]"),
        ("a<nowiki />b", "ab"),
        ("H<sub>2</sub>O, a<br />b, <span style='x'>c</span>", "H2O, a\nb, c"),
        ("1 < 2, x<y and z>w", "1 < 2, x<y and z>w"),
        ("5&nbsp;km &ndash; &lt;ref&gt; &amp;amp; &#91;&#91;", "5 km \u2013 <ref> &amp; [["),
        ("== Heading ==\n===Sub===\ntext = x", "Heading\nSub\ntext = x"),
        ("* a\n** b\n# c\n; d : e\n:: f", "a\nb\nc\nd : e\nf"),
        ("a\n----\nb\n-5 degrees", "a\nb\n-5 degrees"),
        ("__NOTOC__a __KEIN_INHALTSVERZEICHNIS__ __init__", "a __init__"),
        ("Bees ({{IPA|x}}; {{lang|y}}) fly", "Bees fly"),
        ("a\n\n\n\n  b \t c\n", "a\nb c"),
        ("", ""),
        # A marker without its partner loses only itself.
        ("{{open and the [[rest]]", "open and the rest"),
        ("{{a}} {{open\n\nfirst\n\n{{b}} second", "open\nfirst\nsecond"),
        ("closed }} rest }}}", "closed rest"),
        ("{|\n| cell\n|-\nrest", "cell\nrest"),
        ("|}\nrest", "rest"),
        ("[[open and the [[rest]]", "open and the rest"),
        ("[[open\n\nnext paragraph ]] rest", "open\nnext paragraph rest"),
        ("closed ]] rest", "closed rest"),
        ("[[File:x.jpg|thumb|open [[a]]\nrest", "File:x.jpg|thumb|open a\nrest"),
        ("rest <!-- open", "rest"),
        ("a<ref>open rest", "aopen rest"),
        ("a</ref> rest", "a rest"),
        ("<math>open <ref>b</ref> rest", "open rest"),
        ("[http://x.org open rest", "[ open rest"),
        ("'''open rest", "open rest"),
        ("<nowiki>open [[rest]]", "open rest"),
    ],
)
def test_markup_becomes_what_a_reader_sees(markup: str, text: str) -> None:
    assert read_article(markup)[0] == text


def test_a_wiki_has_its_own_names_for_namespaces() -> None:
    assert read_article("[[Thể_loại:Ong]] [[thể  loại:Côn trùng]]", VIETNAMESE)[1] == (
        "Ong",
        "Côn trùng",
    )
    assert read_article("[[Tập_tin:x|y]]ong", VIETNAMESE)[0] == "ong"


def test_categories_are_named_as_their_pages_are() -> None:
    for markup, found in (
        (
            "[[Category:Bees|sort key]] [[ category : insects_of_Europe ]]",
            ("Bees", "Insects of Europe"),
        ),
        ("[[Category:B]][[Category:A]][[Category:B|x]][[category:b]]", ("B", "A")),
        ("[[:Category:Bees]] [[Categories:Bees]] Category:Bees", ()),
        ("<!-- [[Category:Bees]] --><nowiki>[[Category:Bees]]</nowiki>", ()),
        ("[[Category:Bees &amp; wasps]] [[Category:\u200eBirds\u200f]]", ("Bees & wasps", "Birds")),
        ("[[Category:]] [[Category: |x]] [[Category:open", ()),
        ("[[Category:1990s films]][[Category:éclairs]]", ("1990s films", "Éclairs")),
    ):
        assert read_article(markup)[1] == found


MARKERS = (
    "{{ }} {{{ }}} { } {| |} [[ ]] [ ] | : = * # ; ' '' ''' ''''' <!-- --> <ref> </ref> <ref/> <ref <nowiki> </nowiki> "
    "<math> </math> <br> < > & &amp; &#91; __TOC__ __ ( ) ---- File: Category: de: http:// http://x.org .jpg a b c"
)
PIECES = st.sampled_from([*MARKERS.split(), "\n", " ", "\n{|", "\n|}", "\n|-\n", "\n== "])


@given(st.lists(PIECES | st.characters(), max_size=40).map("".join))
def test_any_markup_has_a_text(markup: str) -> None:
    text = read_article(markup)[0]
    assert "\n\n" not in text
    assert text == text.strip()


BALANCED = [
    "{{{{t|{}}}}}",
    "{{{{{{p|{}}}}}}}",
    "\n{{|\n| {}\n|}}\n",
    "[[File:x.jpg|thumb|{}]]",
    "[[target|{}]]",
    "{}",
]
BALANCED += ["<ref>{}</ref>", "<!-- {} -->", "''{}''", "\n== {} ==\n", "[http://x.org {}]"]
WORDS = st.sampled_from(["bee", "wasp", "ant", "[[hive]]", "[[hive|home]]s", "{{fact}}"])


def balanced(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        str.format, st.sampled_from(BALANCED), st.lists(inner, max_size=4).map(" ".join)
    )


@given(st.recursive(WORDS, balanced, max_leaves=25))
def test_balanced_markup_leaves_no_markers(markup: str) -> None:
    text = read_article(f"first {markup} last")[0]
    assert not re.search(r"\{\{|\}\}|\[\[|\]\]|\{\||<!--|-->|</?ref|''", text)
    assert text.startswith("first")
    assert text.endswith("last")


@given(st.lists(st.sampled_from(["bee", "wasp", "ant", "hive"]), min_size=1), st.data())
def test_words_outside_of_markup_stay_in_order(words: list[str], data: st.DataObject) -> None:
    hidden = st.sampled_from(
        ["", "{{x|{{y}}}}", "<ref>x</ref>", "<!-- x -->", "[[File:x|[[y]]]]", "[[de:x]]"]
    )
    markup = " ".join(f"[[x|{word}]]{data.draw(hidden)}" for word in words)
    assert read_article(markup)[0].split() == words


@pytest.mark.parametrize(
    ("opening", "closing"), [("{{x|", "}}"), ("\n{|", "\n|}"), ("[[File:x|", "]]")]
)
def test_depth_is_no_limit(opening: str, closing: str) -> None:
    text = read_article(f"first {opening * 2_000}{closing * 2_000}\nlast")[0]
    assert text.split() == ["first", "last"]
