"""The figures that the paper reports, as (MAP, NDCG@10) for each of its collections."""

COLLECTIONS = ("20 Newsgroups", "RCV1", "English Wikipedia")

Pair = tuple[float, float]
Triple = tuple[Pair, Pair, Pair]  # of the three collections

# Table 1, by model, code size and whether bigrams are predicted too.
TABLE_1: dict[tuple[str, int, bool], Triple] = {
    ("PV-DBOW", 128, False): ((0.40, 0.75), (0.25, 0.79), (0.25, 0.59)),
    ("PV-DBOW", 128, True): ((0.45, 0.75), (0.27, 0.80), (0.26, 0.60)),
    ("Binary PV-DBOW", 128, False): ((0.34, 0.69), (0.22, 0.74), (0.18, 0.48)),
    ("Binary PV-DBOW", 128, True): ((0.35, 0.69), (0.24, 0.77), (0.18, 0.49)),
    ("PV-DM", 128, False): ((0.41, 0.73), (0.23, 0.78), (0.24, 0.59)),
    ("Binary PV-DM", 128, False): ((0.34, 0.65), (0.18, 0.69), (0.16, 0.46)),
    ("PV-DBOW", 32, False): ((0.43, 0.71), (0.26, 0.75), (0.23, 0.55)),
    ("PV-DBOW", 32, True): ((0.46, 0.72), (0.27, 0.77), (0.25, 0.58)),
    ("Binary PV-DBOW", 32, False): ((0.32, 0.53), (0.22, 0.60), (0.16, 0.41)),
    ("Binary PV-DBOW", 32, True): ((0.32, 0.54), (0.25, 0.66), (0.17, 0.44)),
    ("PV-DM", 32, False): ((0.43, 0.70), (0.23, 0.77), (0.23, 0.55)),
    ("Binary PV-DM", 32, False): ((0.29, 0.49), (0.17, 0.53), (0.15, 0.41)),
}

# Table 2: 32-bit codes made of 32-dimensional PV-DBOW vectors by a separate algorithm.
TABLE_2: dict[str, Triple] = {
    "Random hyperplane projection": ((0.27, 0.53), (0.21, 0.66), (0.16, 0.44)),
    "Iterative quantization": ((0.31, 0.58), (0.23, 0.68), (0.17, 0.46)),
}

# Table 3: 128-bit codes of a network trained on English Wikipedia.
TABLE_3: dict[str, Pair] = {"20 Newsgroups": (0.24, 0.51), "RCV1": (0.18, 0.66)}

# Table 4, NDCG@10 by code size and radius: variants A and B for each collection.
TABLE_4: dict[tuple[int, int], Triple] = {
    (28, 1): ((0.79, 0.85), (0.77, 0.85), (0.66, 0.70)),
    (28, 2): ((0.72, 0.80), (0.73, 0.81), (0.62, 0.65)),
    (24, 2): ((0.65, 0.79), (0.70, 0.76), (0.56, 0.59)),
    (24, 3): ((0.63, 0.76), (0.69, 0.74), (0.50, 0.55)),
}

# The newsgroups of the t-SNE picture.
NEWSGROUPS = (
    "soc.religion.christian",
    "talk.politics.guns",
    "rec.sport.hockey",
    "talk.politics.mideast",
    "comp.graphics",
    "sci.crypt",
)
