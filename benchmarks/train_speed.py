"""Training beside gensim's Doc2Vec on the same words, beside what the machine can do at most, and as everything grows.

    python benchmarks/train_speed.py [--rounds 3]

Both train on the posts of 20 Newsgroups without headers, from the same word ids, on all cores, and both are judged by
the MAP of the test posts that query each other. gensim trains 20 epochs of PV-DBOW, its vocabulary counted before the
clock starts. parabit trains Binary PV-DBOW anew for 1, 2, 3, 4, 6, ... epochs, each time from bags to encoder with
all that belongs to it, until its codes pass the MAP of gensim's vectors; that is run several times for the median.
gensim reads at most 10,000 words of a post; the result says how many it left.

The whole default training, with its start and its neighbours, is timed beside one of as many epochs without either.

What the machine can do at most is a floor of bytes and products, whose formula is in epoch_time.py, as is the growth.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
from gensim.models.word2vec import MAX_WORDS_IN_BATCH

from common import keep, machine, run
from epoch_time import BITS, Counted, beside_floor, growth
from parabit import Bags, Tokenizer, Vocabulary, VocabularyRule, build_bags, open_corpus, write_bags
from parabit.codes import pack
from parabit.evaluation import evaluate_codes, evaluate_vectors
from parabit.linear_encoder import LinearEncoder
from parabit.networks import Documents, Trained, distill, train
from parabit.networks.exact import statistics_of
from parabit.networks.recipe import Recipe, preset
from parabit.networks.shape import choose_shape
from parabit.parallel import cores

RACED_EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 20)


class Posts(NamedTuple):
    vocabulary: Vocabulary
    train: Bags
    test: Bags
    labels: list[str]  # of the test posts

    @classmethod
    def read(cls, folder: Path) -> "Posts":
        """The posts of 20 Newsgroups, their bags written to a folder."""
        rule = VocabularyRule(Tokenizer(pattern="[a-z]+"))
        vocabulary, bags = build_bags(open_corpus("20newsgroups/train"), folder / "train", rule)
        posts = list(open_corpus("20newsgroups/test"))
        test = write_bags(posts, vocabulary, folder / "test")
        return cls(vocabulary, bags, test, [post.labels[0] for post in posts])

    @property
    def counted(self) -> Counted:
        bags = Documents.of_counts(self.train.features, self.train.counts, self.train.feature_offsets)
        return Counted(bags, statistics_of(self.vocabulary))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def run_gensim(posts: Posts) -> dict[str, Any]:
    """Train gensim's model, infer the test posts with it, score them."""
    names = np.array(posts.vocabulary.words.to_list(), dtype=object)

    def texts(bags: Bags) -> list[list[str]]:
        words = names[bags.tokens].tolist()
        return [words[start:end] for start, end in pairwise(bags.token_offsets.tolist())]

    tagged, unseen = [TaggedDocument(text, [i]) for i, text in enumerate(texts(posts.train))], texts(posts.test)
    options = {"vector_size": BITS, "epochs": 20, "negative": 5, "sample": 0, "workers": cores(), "seed": 0}
    model = Doc2Vec(dm=0, dbow_words=0, hs=0, min_count=1, **options)
    model.build_vocab(tagged)
    seconds, _ = timed(lambda: model.train(tagged, total_examples=model.corpus_count, epochs=model.epochs))
    vectors = np.stack([model.infer_vector(text) for text in unseen])
    scores = evaluate_vectors(vectors, posts.labels)
    return {
        "seconds": round(seconds, 2),
        "map": round(scores.map, 4),
        "ndcg10": round(scores.ndcg, 4),
        "tokens_left_out": sum(max(0, len(post.words) - MAX_WORDS_IN_BATCH) for post in tagged),
        "options": options,
    }


def race(posts: Posts, peer: dict[str, Any], scratch: Path, rounds: int, **changes: int) -> dict[str, Any]:
    """Train with more and more epochs until the codes pass the peer's MAP; then again, for the median of the time."""
    shape, corpus = choose_shape(bits=BITS), posts.counted
    unseen = posts.test.features, posts.test.counts, posts.test.feature_offsets

    def learn(recipe: Recipe) -> tuple[Trained, LinearEncoder]:
        trained = train(*corpus, shape, recipe, scratch, device="cpu")
        return trained, distill(*corpus, trained.network.words, trained.embeddings)

    tries = []
    for epochs in RACED_EPOCHS:
        recipe = preset("default", shape, epochs=epochs, **changes)
        seconds, (trained, encoder) = timed(lambda recipe=recipe: learn(recipe))
        scores = evaluate_codes(pack(encoder.embed(*unseen) > 0), posts.labels, BITS)
        told = {"epochs": epochs, "kept": trained.kept, "seconds": round(seconds, 2), "map": round(scores.map, 4)}
        tries.append(told)
        print(f"  {epochs:2} epochs: {seconds:6.2f} s, MAP {scores.map:.3f}, NDCG@10 {scores.ndcg:.3f}")
        passed = scores.map > peer["map"]
        if passed or len(trained.history) < epochs:  # the recipe's patience ended it, as it would with more epochs
            break
    more = [timed(lambda: learn(recipe))[0] for _ in range(rounds - 1)]
    ratios = [took / peer["seconds"] for took in (seconds, *more)]
    ratio = {"median": round(median(ratios), 3), "least": round(min(ratios), 3), "most": round(max(ratios), 3)}
    print(f"  {'passed' if passed else 'NOT passed'}; {ratio['median']} of gensim's time", end=" ")
    print(f"({ratio['least']} to {ratio['most']})")
    return {
        "passed": passed,
        "epochs": epochs,
        "seconds": round(median([seconds, *more]), 2),
        "ratio_to_gensim": ratio,
        "map": round(scores.map, 4),
        "ndcg10": round(scores.ndcg, 4),
        "tries": tries,
    }


def whole(corpus: Counted, scratch: Path) -> dict[str, Any]:
    """The default training with its start and its neighbours, beside one without them."""
    shape = choose_shape(bits=BITS)
    recipe = preset("default", shape, patience=0)
    plain = replace(recipe, start="random", neighbours=0, warm_up=0)
    seconds, without = (timed(lambda r=r: train(*corpus, shape, r, scratch, device="cpu"))[0] for r in (recipe, plain))
    return {
        "epochs": recipe.epochs,
        "seconds": round(seconds, 2),
        "plain_seconds": round(without, 2),
        "ratio": round(seconds / without, 2),
    }


def main() -> None:
    """Run the race, the floor and the growth, print the tables, keep the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="trainings that the time is the median of")
    rounds = parser.parse_args().rounds

    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        posts = Posts.read(scratch)
        corpus = posts.counted
        print(f"{len(posts.train):,} posts, {len(posts.train.tokens):,} words of {len(posts.vocabulary):,} kinds\n")
        # Everything is imported and warm before a clock starts.
        shape = choose_shape(bits=BITS)
        train(*corpus.part(every=20), shape, preset("default", shape, epochs=1), scratch, device="cpu")

        peer = run_gensim(posts)
        print(f"gensim Doc2Vec, {peer['options']['epochs']} epochs: {peer['seconds']} s, MAP {peer['map']:.3f}")
        print("parabit, default")
        default = race(posts, peer, scratch, rounds)
        print("parabit, default without neighbours")
        plain = race(posts, peer, scratch, rounds, neighbours=0)
        both = whole(corpus, scratch)
        epoch = beside_floor(corpus, scratch)
        grown = growth(corpus, scratch)

    print(
        f"\n{both['epochs']} epochs: {both['seconds']} s, without start and neighbours {both['plain_seconds']} s",
        end=", ",
    )
    print(f"{both['ratio']} times as long")
    print(f"an epoch takes {epoch['seconds']} s, its steps {epoch['seconds_of_steps']} s", end=", ")
    print(f"at least {epoch['floor_seconds']} s: {epoch['megabytes']:,} MB and {epoch['gigaflop']} Gflop")
    for what, rows in grown.items():
        cells = "  ".join(f"{row['value']}: {row['seconds']:.2f} s" for row in rows)
        print(f"an epoch's steps by {what:10} {cells}")
    keep(
        "train_speed",
        {
            "command": f"python benchmarks/train_speed.py --rounds {rounds}",
            "corpus": "20newsgroups",
            "documents": len(posts.train),
            "unseen": len(posts.test),
            "tokens": len(posts.train.tokens),
            "words": len(posts.vocabulary),
            "gensim": peer,
            "default": default,
            "default_without_neighbours": plain,
            "whole": both,
            "epoch": epoch,
            "growth": grown,
            "machine": machine("torch", "numpy", "scipy", "gensim"),
        },
    )


if __name__ == "__main__":
    run(main)
