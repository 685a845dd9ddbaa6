"""Small collections in the forms of the true ones, below a data folder: posts, newswire and articles about topics."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from topics import Topics, make_topics

GROUPS = (
    "sci.crypt",
    "comp.graphics",
    "rec.boats",
    "misc.kettles",
)  # two of the paper's picture, two of no picture
TOPICS = ("tin", "wool", "tea", "rope")
CATEGORIES = ("Harbours", "Harbours", "Mountains", "Mountains")

# How many documents each has of the texts, one collection after the other. Precision of the first hundred says
# something only where more than a hundred are searched.
POSTS = {"train": 120, "test": 40}
STORIES = {"train": 140, "test": 40}
ARTICLES = 120  # halved by a hash of the title


def all_texts() -> Topics:
    """The texts of all collections, in one made-up language, so that they have words in common."""
    return make_topics(460)


def lay_out(data: Path, *names: str) -> None:
    """Write collections below a data folder: 20newsgroups, reuters21578, enwiki, arxiv."""
    texts = all_texts()
    for name in names:
        {"20newsgroups": write_posts, "reuters21578": write_stories}.get(name, write_articles)(
            data / name, texts
        )


def write_posts(folder: Path, texts: Topics) -> None:
    """20 Newsgroups as its archive."""
    files = {}
    place = 0
    for split, count in POSTS.items():
        for number in range(count):
            post = f"From: a@b\nSubject: {number}\n\n{texts.texts[place]}\n"
            files[f"20news-bydate-{split}/{GROUPS[texts.labels[place]]}/{number}"] = post.encode(
                "latin-1"
            )
            place += 1
    write_archive(folder / "20news-bydate.tar.gz", files)


def write_stories(folder: Path, texts: Topics) -> None:
    """Reuters-21578 as its SGML: every fifth story has no topic, every third two."""
    stories = ""
    place = sum(POSTS.values())
    for split, count in STORIES.items():
        for number in range(count):
            names = story_topics(number, texts.labels[place])
            codes = "".join(f"<D>{name}</D>" for name in names)
            stories += (
                f'<REUTERS TOPICS="YES" LEWISSPLIT="{split.upper()}" NEWID="{place}">\n<TOPICS>{codes}</TOPICS>\n'
                f"<TEXT>\n<TITLE>{number}</TITLE>\n<BODY>{texts.texts[place]}\n</BODY></TEXT>\n</REUTERS>\n"
            )
            place += 1
    write_archive(folder / "reuters21578.tar.gz", {"reut2-000.sgm": stories.encode("latin-1")})


def story_topics(number: int, label: int) -> Sequence[str]:
    """The topics of a story."""
    if number % 5 == 0:
        return ()
    return (TOPICS[label], TOPICS[(label + 1) % 4]) if number % 3 == 0 else (TOPICS[label],)


def write_articles(folder: Path, texts: Topics) -> None:
    """The sample of Wikipedia, or that of arXiv, as JSON lines."""
    start = sum(POSTS.values()) + sum(STORIES.values())
    articles = []
    for place in range(start, start + ARTICLES):
        categories = [CATEGORIES[texts.labels[place]], f"Things of {place}"]
        articles.append(
            {"title": f"article {place}", "text": texts.texts[place], "categories": categories}
        )
    write_sample(folder, articles)


def write_sample(folder: Path, articles: Sequence[Mapping[str, object]]) -> None:
    """JSON lines as the samples of Wikipedia and arXiv are."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(map(json.dumps, articles))
    (folder / f"{folder.name}-sample.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


def write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    """A tar archive, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
