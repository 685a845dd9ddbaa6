"""Documents encoded per second, and the time of one text, beside another commit of parabit and gensim in the same run.

    PARABIT_DATA=FOLDER python benchmarks/encode_speed.py [--commit fc30e91]

Each version encodes the 7,532 test posts of 20 Newsgroups with a model of its own default, learned from the training
posts, in a process of its own; versions take turns, three rounds. The other commit is checked out in a temporary
worktree. Its default needs torch to learn, for one epoch here, and none to encode.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from common import keep, machine, run

ROOT = Path(__file__).parent.parent
ROUNDS = 3
PROGRAM = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from parabit import ParagraphVectors, open_corpus
texts = [document.text for document in open_corpus("20newsgroups/test")]
folder, new = sys.argv[1], sys.argv[2] == "new"
try:
    model = ParagraphVectors.load(folder)
except Exception:
    model = ParagraphVectors() if new else ParagraphVectors(epochs=1)
    model.fit([document.text for document in open_corpus("20newsgroups/train")])
    model.save(folder)
query = "the shuttle crew repaired the Hubble telescope in orbit"
model.transform(texts[:2000]), model.transform([query])

def best(work, times):
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)

encode = model.encoder_.infer if new else model.transform
print(json.dumps({"documents per second": len(texts) / best(lambda: model.transform(texts), 3),
                  "ms per text": 1000 * best(lambda: encode([query]), 2000)}))
"""
GENSIM = """
import json, time
from gensim.models.doc2vec import Doc2Vec, TaggedDocument
from parabit import Tokenizer, open_corpus
words = Tokenizer().content_words
train = [TaggedDocument(words(d.text), [n]) for n, d in enumerate(open_corpus("20newsgroups/train"))]
model = Doc2Vec(train, dm=0, vector_size=128, epochs=20, negative=5, sample=1e-4, seed=0, workers=2)
texts = [words(d.text) for d in open_corpus("20newsgroups/test")][:1000]
start = time.perf_counter()
for text in texts:
    model.infer_vector(text)
print(json.dumps({"documents per second": len(texts) / (time.perf_counter() - start)}))
"""


def measure(source: Path, program: str, *arguments: str) -> dict[str, float]:
    """Run a program with a version of parabit."""
    command = [sys.executable, "-c", program, *arguments]
    environment = {"PYTHONPATH": str(source / "src")}

    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Measure both versions in turn, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default="fc30e91", help="the version to compare with")
    commit = parser.parse_args().commit
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "other")
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", other, commit], cwd=ROOT, check=True)
        try:
            for number in range(ROUNDS):
                old = measure(other, PROGRAM, f"{folder}/old", "old")
                new = measure(ROOT, PROGRAM, f"{folder}/new", "new")
                rounds.append({"old": old, "new": new})
                print(f"round {number + 1}: {rounds[-1]}", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=False)
    gensim = measure(ROOT, GENSIM)["documents per second"]
    rate = float(np.median([one["new"]["documents per second"] for one in rounds]))
    ratio = float(np.median([o["new"]["documents per second"] / o["old"]["documents per second"] for o in rounds]))
    result = {
        "machine": machine("numpy", "scipy", "polars", "gensim"),
        "commit": commit,
        "documents_per_second": round(rate),
        "ratio_to_commit": round(ratio, 2),
        "ms_per_text": round(float(np.median([one["new"]["ms per text"] for one in rounds])), 4),
        "gensim_documents_per_second": round(gensim),
        "ratio_to_gensim": round(rate / gensim, 1),
        "rounds": rounds,
    }
    print(json.dumps({name: value for name, value in result.items() if name not in ("machine", "rounds")}, indent=1))
    keep("encode_speed", result)


if __name__ == "__main__":
    run(main)
