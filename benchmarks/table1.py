"""The 20 Newsgroups half of the paper's Table 1, with preset "paper", and the default recipe beside it.

    python benchmarks/table1.py --prepare FOLDER           # once, where parabit is installed whole
    python benchmarks/table1.py --arrays FOLDER            # torch, numpy and scipy are enough; a GPU helps

The paper's protocol: trained on the 11,314 training posts, the 7,532 test posts query each other; a post is relevant
if it is of the same newsgroup; MAP and NDCG@10 are expected values over ties. Headers kept and stripped; the mean of 3
seeds and the standard deviation. What the paper leaves open was chosen on a validation part of the training posts: a
quarter of the stripped posts, trained on the other three quarters.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray

from arrays import Labelled, read_arrays, write_arrays
from parabit.codes import pack
from parabit.evaluation import Scores, evaluate_codes, evaluate_vectors
from parabit.recipe import preset
from parabit.shape import Shape, choose_shape
from parabit.training import Inference, WordStatistics, make_sampler, make_table, train


class Cell(NamedTuple):
    """A line of the table: a model, and the paper's figures or what is aimed at."""

    preset: str
    bits: int | None
    dim: int | None
    architecture: str
    bigrams: bool
    map: float
    ndcg: float

    @property
    def shape(self) -> Shape:
        return choose_shape(self.bits, self.dim, self.architecture)


CELLS = [
    Cell("paper", 128, None, "dbow", False, 0.34, 0.69),
    Cell("paper", 128, None, "dbow", True, 0.35, 0.69),
    Cell("paper", 32, None, "dbow", False, 0.32, 0.53),
    Cell("paper", 32, None, "dbow", True, 0.32, 0.54),
    Cell("paper", 128, None, "dm", False, 0.34, 0.65),
    Cell("paper", 32, None, "dm", False, 0.29, 0.49),
    Cell("paper", None, 128, "dbow", False, 0.40, 0.75),
    Cell("paper", None, 128, "dbow", True, 0.45, 0.75),
    Cell("paper", None, 32, "dbow", False, 0.43, 0.71),
    Cell("paper", None, 32, "dbow", True, 0.46, 0.72),
    Cell("paper", None, 128, "dm", False, 0.41, 0.73),
    Cell("paper", None, 32, "dm", False, 0.43, 0.70),
    Cell("default", 128, None, "dbow", False, 0.48, 0.73),
    Cell("default", 32, None, "dbow", False, 0.42, 0.62),
]
HEADERS = {"stripped": "20newsgroups", "kept": "20newsgroups-raw"}


def prepare(folder: Path) -> None:
    """Write the arrays that the runs read."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in HEADERS.values():
        for bigrams in (False, True):
            write_arrays(
                folder / _file(name, bigrams), [f"{name}/train", f"{name}/test"], bigrams=bigrams, order=not bigrams
            )


def trained_test_posts(
    cell: Cell, statistics: WordStatistics, posts: Labelled, queries: Labelled, seed: int, device: str
) -> tuple[NDArray[Any], float]:
    """Train, infer the test posts, and give their codes or vectors and the seconds of training."""
    shape = cell.shape
    recipe = preset(cell.preset, shape, bigrams=cell.bigrams)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        trained = train(posts.documents, statistics, shape, recipe, Path(scratch), seed, device)
    place = trained.network.words.device
    if place.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    table = make_table(queries.documents, statistics, shape, recipe, place)
    sampler = make_sampler(statistics, recipe, torch.device("cpu"))
    inference = Inference(trained.network, sampler, recipe, seed)
    vectors = torch.cat(list(inference.embed_all(table, torch.arange(len(queries.labels), device=place))))
    found = vectors.numpy(force=True)
    return (found if cell.bits is None else pack(found > 0)), seconds


def runs(cells: list[int], headers: list[str], seeds: int, folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Train every cell with every seed; scoring goes on in other processes meanwhile."""
    waiting: list[tuple[dict[str, Any], Future[Scores]]] = []
    with ProcessPoolExecutor(4) as pool:
        for header in headers:
            for bigrams in (False, True):
                chosen = [number for number in cells if CELLS[number].bigrams == bigrams]
                if not chosen:
                    continue
                statistics, (posts, queries) = read_arrays(folder / _file(HEADERS[header], bigrams))
                for number in chosen:
                    for seed in range(seeds):
                        found, seconds = trained_test_posts(CELLS[number], statistics, posts, queries, seed, device)
                        score = evaluate_vectors if CELLS[number].bits is None else evaluate_codes
                        run = {"cell": number, "headers": header, "seed": seed, "seconds": round(seconds, 2)}
                        waiting.append((run, pool.submit(score, found, queries.labels)))
                        while waiting and waiting[0][1].done():
                            yield _scored(*waiting.pop(0))
        for run, scores in waiting:
            yield _scored(run, scores)


def _scored(run: dict[str, Any], scores: Future[Scores]) -> dict[str, Any]:
    return run | {"map": round(scores.result().map, 4), "ndcg@10": round(scores.result().ndcg, 4)}


def table(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means and spreads beside the paper's figures."""
    rows = []
    for header in HEADERS:
        for number, cell in enumerate(CELLS):
            mine = [run for run in results if run["cell"] == number and run["headers"] == header]
            if not mine:
                continue
            row = {"headers": header, "model": cell.shape.name, **cell._asdict(), "seeds": len(mine)}
            row = {("wanted_" + name if name in ("map", "ndcg") else name): value for name, value in row.items()}
            for metric in ("map", "ndcg@10", "seconds"):
                values = [run[metric] for run in mine]
                row[metric] = round(fmean(values), 4)
                row[f"{metric}_spread"] = round(stdev(values), 4) if len(values) > 1 else 0.0
            rows.append(row)
    return rows


def main() -> None:
    """Prepare the arrays, or run the cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="write the arrays there")
    parser.add_argument("--arrays", type=Path, metavar="FOLDER", help="read the arrays from there")
    parser.add_argument("--cells", type=int, nargs="*", default=list(range(len(CELLS))), help="only these, from 0")
    parser.add_argument("--headers", choices=HEADERS, nargs="*", default=list(HEADERS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--runs", type=Path, nargs="*", help="put together runs that were kept, instead of running")
    parser.add_argument("--out", type=Path, help="keep the runs there, for --runs")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.prepare)
        return
    if options.runs:
        results = [json.loads(line) for path in options.runs for line in path.read_text().splitlines()]
    else:
        results = []
        for run in runs(options.cells, options.headers, options.seeds, options.arrays, options.device):
            results.append(run)
            print(json.dumps(run), flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(run) + "\n")
    rows = table(results)
    for row in rows:
        print(
            f"{row['headers']:9} {row['preset']:8} {row['model']:16} {row['bits'] or row['dim']:4} "
            f"{'bigrams' if row['bigrams'] else 'words':8} {row['map']:.3f} ±{row['map_spread']:.3f} "
            f"/ {row['ndcg@10']:.3f} ±{row['ndcg@10_spread']:.3f}   wanted {row['wanted_map']:.2f} / "
            f"{row['wanted_ndcg']:.2f}   {row['seconds']:.1f} s"
        )
    if options.runs:
        from common import keep

        keep("table1", {"command": "python benchmarks/table1.py --arrays FOLDER", "rows": rows, "runs": results})


def _file(name: str, bigrams: bool) -> str:
    return f"{name}-bigrams.npz" if bigrams else f"{name}.npz"


if __name__ == "__main__":
    main()
