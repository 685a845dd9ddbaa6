"""The paper's figures by the names of ours: collection, job, part and metric."""

COLLECTIONS = ("20 Newsgroups", "RCV1", "English Wikipedia")

# MAP and NDCG@10 of each collection, by job and part: Table 1, and Table 2 with 32-bit codes made of vectors.
_PAIRS = {
    ("pv-dbow-128-words", "vectors"): ((0.40, 0.75), (0.25, 0.79), (0.25, 0.59)),
    ("pv-dbow-128-bigrams", "vectors"): ((0.45, 0.75), (0.27, 0.80), (0.26, 0.60)),
    ("binary-pv-dbow-128-words", "codes"): ((0.34, 0.69), (0.22, 0.74), (0.18, 0.48)),
    ("binary-pv-dbow-128-bigrams", "codes"): ((0.35, 0.69), (0.24, 0.77), (0.18, 0.49)),
    ("pv-dm-128", "vectors"): ((0.41, 0.73), (0.23, 0.78), (0.24, 0.59)),
    ("binary-pv-dm-128", "codes"): ((0.34, 0.65), (0.18, 0.69), (0.16, 0.46)),
    ("pv-dbow-32-words", "vectors"): ((0.43, 0.71), (0.26, 0.75), (0.23, 0.55)),
    ("pv-dbow-32-bigrams", "vectors"): ((0.46, 0.72), (0.27, 0.77), (0.25, 0.58)),
    ("binary-pv-dbow-32-words", "codes"): ((0.32, 0.53), (0.22, 0.60), (0.16, 0.41)),
    ("binary-pv-dbow-32-bigrams", "codes"): ((0.32, 0.54), (0.25, 0.66), (0.17, 0.44)),
    ("pv-dm-32", "vectors"): ((0.43, 0.70), (0.23, 0.77), (0.23, 0.55)),
    ("binary-pv-dm-32", "codes"): ((0.29, 0.49), (0.17, 0.53), (0.15, 0.41)),
    ("pv-dbow-32-bigrams", "hyperplanes"): ((0.27, 0.53), (0.21, 0.66), (0.16, 0.44)),
    ("pv-dbow-32-bigrams", "itq"): ((0.31, 0.58), (0.23, 0.68), (0.17, 0.46)),
}
# Table 3: 128-bit codes of a network trained on English Wikipedia.
_TRANSFER = {"20 Newsgroups": {"map": 0.24, "ndcg@10": 0.51}, "RCV1": {"map": 0.18, "ndcg@10": 0.66}}
# Table 4, NDCG@10 by code size and radius: variants A and B of each collection.
_TABLE_4 = {
    (28, 1): ((0.79, 0.85), (0.77, 0.85), (0.66, 0.70)),
    (28, 2): ((0.72, 0.80), (0.73, 0.81), (0.62, 0.65)),
    (24, 2): ((0.65, 0.79), (0.70, 0.76), (0.56, 0.59)),
    (24, 3): ((0.63, 0.76), (0.69, 0.74), (0.50, 0.55)),
}
# The newsgroups of the t-SNE picture, in the colours that the paper's appendix names, in shades that print.
NEWSGROUPS = {
    "soc.religion.christian": "#1B9E3E",
    "talk.politics.guns": "#E31A1C",
    "rec.sport.hockey": "#1F5FD6",
    "talk.politics.mideast": "#8C5A1E",
    "comp.graphics": "#E815C4",
    "sci.crypt": "#1A1A1A",
}


def published() -> dict[tuple[str, str, str, str], float]:
    """The figures of the paper's tables, by collection, job, part and metric."""
    figures = {
        ("English Wikipedia", "transfer", target, metric): value
        for target, scores in _TRANSFER.items()
        for metric, value in scores.items()
    }
    for number, collection in enumerate(COLLECTIONS):
        for (job, part), pairs in _PAIRS.items():
            for metric, value in zip(("map", "ndcg@10"), pairs[number], strict=True):
                figures[collection, job, part, metric] = value
        for (bits, radius), variants in _TABLE_4.items():
            for job, value in zip((f"real-binary-{bits}", "separate"), variants[number], strict=True):
                figures[collection, job, f"{bits} bits, radius {radius}", "ndcg@10"] = value
    return figures
