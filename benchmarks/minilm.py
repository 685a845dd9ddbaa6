"""The vectors that all-MiniLM-L6-v2 gives token ids, for benchmarks/sentence_vectors.py; needs torch and numpy alone.

    python benchmarks/minilm.py model.safetensors IDS.npz VECTORS

As in sentence-transformers: the mean over a text's tokens, scaled to length one. On a GPU if there is one. The vectors
are written in half precision as VECTORS-0.npy, VECTORS-1.npy and so on, of 15 MB each.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HEADS, LAYERS, WIDTH, BATCH, PART = 12, 6, 384, 512, 20_000


def load(path: Path) -> dict[str, Tensor]:
    """The weights in a safetensors file: a length of 8 bytes, a JSON header, and the numbers."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    kinds = {"F16": np.float16, "F32": np.float32}
    weights = {}
    for name, about in header.items():
        if about.get("dtype") in kinds:
            first, last = (start + place for place in about["data_offsets"])
            array = np.frombuffer(raw[first:last], dtype=kinds[about["dtype"]]).reshape(
                about["shape"]
            )
            weights[name] = torch.from_numpy(array.astype(np.float32)).to(DEVICE)
    return weights


def embed(weights: dict[str, Tensor], ids: Tensor, lengths: Tensor) -> Tensor:
    """One vector of length one per row of `ids`, (batch, longest), of which the first `lengths` count."""

    def dense(name: str, x: Tensor) -> Tensor:
        return linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(name: str, x: Tensor) -> Tensor:
        return layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-12)

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)  # (batch, heads, tokens, width / heads)

    there = torch.arange(ids.shape[1], device=DEVICE) < lengths[:, None]  # (batch, tokens)
    table = "embeddings.{}_embeddings.weight".format
    x = (
        weights[table("word")][ids]
        + weights[table("position")][: ids.shape[1]]
        + weights[table("token_type")][0]
    )
    x = norm("embeddings.LayerNorm", x)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            split(dense(f"{layer}.attention.self.{part}", x)) for part in ("query", "key", "value")
        )
        seen = scaled_dot_product_attention(query, key, value, attn_mask=there[:, None, None])
        seen = dense(f"{layer}.attention.output.dense", seen.transpose(1, 2).flatten(2))
        x = norm(f"{layer}.attention.output.LayerNorm", x + seen)
        wide = gelu(dense(f"{layer}.intermediate.dense", x))
        x = norm(f"{layer}.output.LayerNorm", x + dense(f"{layer}.output.dense", wide))
    mean = (x * there[:, :, None]).sum(1) / lengths[:, None]
    return mean / mean.norm(dim=1, keepdim=True)


@torch.no_grad()
def embed_all(
    weights: dict[str, Tensor], ids: NDArray[np.uint16], lengths: NDArray[np.int64]
) -> NDArray[np.float16]:
    """The vectors of texts whose token ids follow each other in `ids`."""
    starts = np.cumsum(lengths) - lengths
    vectors = np.empty((len(lengths), WIDTH), dtype=np.float16)
    order = np.argsort(-lengths, kind="stable")
    for first in range(0, len(order), BATCH):
        rows = order[first : first + BATCH]
        padded = np.zeros((len(rows), int(lengths[rows[0]])), dtype=np.int64)
        for place, row in enumerate(rows):
            padded[place, : lengths[row]] = ids[starts[row] : starts[row] + lengths[row]]
        found = embed(
            weights, torch.from_numpy(padded).to(DEVICE), torch.from_numpy(lengths[rows]).to(DEVICE)
        )
        vectors[rows] = found.cpu().numpy()
    return vectors


def main() -> None:
    """Read token ids, and write vectors."""
    model, source, target = sys.argv[1:]
    weights = load(Path(model))
    with np.load(source) as file:
        ids, lengths = file["ids"], file["lengths"].astype(np.int64)
    start = time.perf_counter()
    vectors = embed_all(weights, ids, lengths)
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE
    seconds = time.perf_counter() - start
    print(
        f"{len(lengths)} texts, {len(ids)} tokens, {seconds:.1f} s, {name}, torch {torch.__version__}"
    )
    for place, part in enumerate(range(0, len(vectors), PART)):
        np.save(f"{target}-{place}.npy", vectors[part : part + PART])


if __name__ == "__main__":
    main()
