"""MediaWiki markup taken down to the text that a reader of the page sees, and its categories.

Every step is one pass over the markup: nesting is resolved with a stack over markers, never with a pattern that
could go back over what it has read, so that the time grows with the length of an article whatever is in it.
"""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import NamedTuple


class Namespaces(NamedTuple):
    """What a wiki calls its namespaces of files and of categories; the English names are good on every wiki."""

    files: tuple[str, ...] = ("File", "Image")
    categories: tuple[str, ...] = ("Category",)


ENGLISH = Namespaces()

# Their content is no prose; nowiki and pre are prose, but what is in them is no markup.
_OPAQUE = (
    "ref|math|chem|ce|gallery|source|syntaxhighlight|timeline|score|hiero|imagemap|graph|mapframe|maplink|inputbox"
    "|categorytree|templatedata|includeonly"
)
_VERBATIM = "nowiki|pre"
_BLOCK = "blockquote|br|caption|center|dd|div|dl|dt|h[1-6]|hr|li|ol|p|poem|pre|table|td|th|tr|ul"
_INLINE = (
    "abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|indicator|ins|kbd|mark|noinclude|nowiki|onlyinclude|q|rb"
    "|references|rp|rt|rtc|ruby|s|samp|section|small|span|strike|strong|sub|sup|tbody|templatestyles|tfoot|thead|time"
    "|tt|u|var|wbr"
)

_OPENING = re.compile(rf"<!--|<({_OPAQUE}|{_VERBATIM})(?![\w-])([^<>]*+)>", re.IGNORECASE)
_CLOSING = {name: re.compile(rf"</{name}\s*+>", re.IGNORECASE) for name in f"{_OPAQUE}|{_VERBATIM}".split("|")} | {
    "": re.compile("-->")
}
_BRACES = re.compile(r"\{\{+|\}\}+")
_TABLE = re.compile(r"^[ \t:*#]*+(?:(\{\|)|\|\}(?!\}))", re.MULTILINE)
_BRACKETS = re.compile(r"\[\[+|\]\]+")
# Most links: nothing within them is special, and what is shown is all that counts.
_PLAIN_LINK = re.compile(r"\[\[(?:[^\[\]|\n:]++\|)?+([^\[\]|\n:#]++)\]\](?!\])")
# Neither a bracket nor a line's end within a label: a search for the end never passes the next link's start.
_EXTERNAL = re.compile(r"\[(?:(?:[a-z]{3,6}:)?//|mailto:)[^\s\[\]<>\"]*+[^\S\n]*+([^\[\]\n]*+)\]", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ftp)://[^\s\[\]<>\"{}|]*+", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:({_BLOCK})|{_INLINE}|{_OPAQUE})(?![\w-])[^<>]*+>", re.IGNORECASE)
# Of four quotes the fourth is an apostrophe: l''''amour''' is l' and a bold word.
_QUOTES = re.compile("'''''|'''|''")
_MAGIC_WORD = re.compile(r"__[^\W\da-z]{2,40}__")
_EMPTY_PARENTHESES = re.compile(r"\([\s,;:]*+\)")
_LEFTOVERS = re.compile(r"-->|\{\{+|\}\}+|\[\[+|\]\]+")

_TARGET = re.compile(r"\s*+([^\[\]|\n:]*+):([^\[\]|\n]*+)")

# The Wikipedias' own codes: [[de:Biene]] is hidden, but [[re:publica]] is an article.
_WIKIPEDIAS = """
    aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar
    bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug bxr ca cbk-zam cdo ce ceb
    ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz ee el eml en eo es et eu ext fa
    fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gu guc gur guw gv ha hak
    haw he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd
    kbp kcg kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln
    lo lrc lt ltg lv mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na nah
    nap nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nv ny oc olo om or os pa pag pam pap pcd pcm pdc pfl pi pih
    pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rw sa sah sat sc scn sco sd se sg sh shi shn si
    simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl tly
    tn to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za zea zgh
    zh zh-classical zh-min-nan zh-yue zu
"""
_LANGUAGES = frozenset(_WIKIPEDIAS.split())
# A wiki's older names for its file namespace ("Bild" beside "Datei") are not in its dump, but the files' endings are.
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|gif|svg|tiff?|og[gvai]|webm|webp|djvu|pdf|xcf|midi?|wav|flac|mp3)\s*$", re.IGNORECASE
)
_DIRECTION_MARKS = dict.fromkeys([0x200E, 0x200F, *range(0x202A, 0x202F)])
# Entities are read last, so that what is written as one is never taken for markup.
_AS_ENTITIES = {ord(char): f"&#{ord(char)};" for char in "[]{}|<>'=*#:;_-/"}


def plain_text(markup: str, names: Namespaces = ENGLISH) -> str:
    """Strip MediaWiki markup to readable text, a paragraph, heading or list item a line.

    Templates, tables, files with their captions, references and formulas are left out, and so is a marker that
    is never closed, without what follows it.

    Example:
        >>> plain_text("'''Bees''' are [[insect]]s {{citation needed}} of the [[clade|group]] ''Anthophila''.")
        'Bees are insects of the group Anthophila.'
    """
    text = uncommented(markup)
    text = _without(text, _templates(text))
    if "{|" in text:
        text = _without(text, _tables(text))
    text = _links(text, names)
    if "[" in text:
        text = "".join(_EXTERNAL.split(text))
    if "://" in text:
        text = _URL.sub("", text)
    if "<" in text:
        text = _TAG.sub(_tag_text, text)
    text = _EMPTY_PARENTHESES.sub("", _MAGIC_WORD.sub("", _QUOTES.sub("", text)))
    return "\n".join(_lines(_LEFTOVERS.sub("", text)))


def categories(markup: str, names: Namespaces = ENGLISH) -> tuple[str, ...]:
    """The categories that a page puts itself in, in order, without their sort keys.

    Example:
        >>> categories("[[Category:Bees| ]] [[category:insects_of_Europe]] [[:Category:Only linked]]")
        ('Bees', 'Insects of Europe')
    """
    found = _category_links(names.categories).findall(uncommented(markup))
    tidied = (" ".join(unescape(name).translate(_DIRECTION_MARKS).replace("_", " ").split()) for name in found)
    return tuple(dict.fromkeys(name[:1].upper() + name[1:] for name in tidied if name))


def uncommented(markup: str) -> str:
    """Markup without comments, references, formulas and the like; what is in nowiki becomes entities.

    Example:
        >>> uncommented("kept <!-- {{disambig}} --> <nowiki>[[text]]</nowiki>")
        'kept  &#91;&#91;text&#93;&#93;'
    """
    if "<" not in markup:
        return markup
    kept: list[str] = []
    end = 0
    never_closed: set[str] = set()
    opening = _OPENING.search(markup)
    while opening:
        kept.append(markup[end : opening.start()])
        end = opening.end()
        name = (opening[1] or "").lower()
        self_closing = (opening[2] or "").rstrip().endswith("/")
        if not self_closing and name not in never_closed:
            closing = _CLOSING[name].search(markup, end)
            if closing:
                if name in ("nowiki", "pre"):
                    kept.append(markup[end : closing.start()].translate(_AS_ENTITIES))
                end = closing.end()
            else:
                never_closed.add(name)  # the search ran to the end of the article once; not again for each opening
        opening = _OPENING.search(markup, end)
    kept.append(markup[end:])
    return "".join(kept)


def _templates(text: str) -> Iterator[tuple[int, int]]:
    """Where templates {{..}} and parameters {{{..}}} begin and end, inner before outer."""
    opened: list[tuple[int, int]] = []  # where a run of braces begins, and how many of it are still open
    for run in _BRACES.finditer(text):
        at, left = run.start(), run.end() - run.start()
        if text[at] == "{":
            opened.append((at, left))
            continue
        while left >= 2 and opened:
            start, braces = opened.pop()
            matched = min(braces, left, 3)
            braces, left, at = braces - matched, left - matched, at + matched
            yield start + braces, at
            if braces >= 2:
                opened.append((start, braces))


def _tables(text: str) -> Iterator[tuple[int, int]]:
    """Where tables {|..|} begin and end, inner before outer."""
    opened: list[int] = []
    for marker in _TABLE.finditer(text):
        if marker[1]:
            opened.append(marker.start())
        elif opened:
            yield opened.pop(), marker.end()


def _without(text: str, regions: Iterator[tuple[int, int]]) -> str:
    """Text without the given regions, which come in the order of their ends and may contain one another."""
    outermost: list[tuple[int, int]] = []
    for region in regions:
        while outermost and outermost[-1][0] >= region[0]:
            outermost.pop()
        outermost.append(region)
    kept: list[str] = []
    end = 0
    for start, after in outermost:
        kept.append(text[end:start])
        end = after
    kept.append(text[end:])
    return "".join(kept)


def _links(text: str, names: Namespaces) -> str:
    """Text with [[links]] replaced by what is shown for them."""
    text = "".join(_PLAIN_LINK.split(text))  # what is between the links, and each link's group: its label
    out: list[str] = []
    # For each open [[ the length of `out` to go back to when its ]] comes, or -1 where nothing is to be taken back.
    # Only files may have links within them; another link that does is shown as it stands, without its target.
    opened: list[int] = []
    end = 0
    link = False  # is the text since `end` within a link that may still be an ordinary one?
    for run in _BRACKETS.finditer(text):
        between = text[end : run.start()]
        odd = (run.end() - run.start()) % 2
        pairs = (run.end() - run.start()) // 2
        end = run.end()
        if run[0][0] == "[":
            out.append(between.partition("|")[2] if link and "|" in between else between)
            out.append("[" * odd)
            opened.extend([-1] * (pairs - 1))
            link = not _is_file(text, end, names)
            opened.append(-1 if link else len(out))
            continue
        if odd and "[" in between:  # [[a|see [b]]]
            between, odd = between + "]", 0
        out.append(_label(between, names) if link else between)
        link = False
        for _ in range(min(pairs, len(opened))):
            back_to = opened.pop()
            if back_to >= 0:
                del out[back_to:]
        out.append("]" * odd)
    out.append(text[end:])
    return "".join(out)


def _is_file(text: str, at: int, names: Namespaces) -> bool:
    """Whether the link whose target begins here shows a file."""
    target = _TARGET.match(text, at)
    if target is None or not target[1]:  # [[:File:x.jpg]] only links to the file
        return False
    return _canonical(target[1]) in _prefixes(names.files) or _MEDIA.search(target[2]) is not None


def _label(link: str, names: Namespaces) -> str:
    """What is shown for the ordinary link with this content."""
    target, _, label = link.partition("|")
    if "\n" in target:  # MediaWiki takes no such link; the brackets were likely left open by mistake
        return link
    prefix, colon, _ = target.partition(":")
    if colon and (prefix.strip() in _LANGUAGES or _canonical(prefix) in _prefixes(names.categories)):
        return ""
    return label if label.strip() else target.strip().lstrip(":#")


def _tag_text(tag: re.Match[str]) -> str:
    return "\n" if tag[1] else ""


def _lines(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        line = line.strip()
        if not line:
            continue
        match line[0]:
            case "=" if line[-1] == "=":
                line = line.strip("=")
            case "*" | "#" | ":" | ";":
                line = line.lstrip("*#:; \t")
            case "-" if line.startswith("----"):
                line = line.lstrip("-")
            case "{" | "|" if line.startswith(("{|", "|-", "|}")):  # of a table that is never closed, or never opened
                continue
            case "|":
                line = line.lstrip("|+")
        if "&" in line:
            line = unescape(line)
        line = " ".join(line.split())
        if line:
            yield line


def _canonical(prefix: str) -> str:
    return prefix.replace("_", " ").strip().lower()


@cache
def _prefixes(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(_canonical, names))


@cache
def _category_links(names: tuple[str, ...]) -> re.Pattern[str]:
    either = "|".join("[ _]++".join(map(re.escape, re.split("[ _]+", name))) for name in names)
    return re.compile(rf"\[\[\s*+(?:{either})[ _]*+:([^\[\]|{{}}<>\n]++)(?=\||\]\])", re.IGNORECASE)
