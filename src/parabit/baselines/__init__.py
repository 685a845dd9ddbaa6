"""The peers that parabit's codes are compared with: all learned without labels, from the same counts of words.

`peers` needs scikit-learn (`parabit[baselines]`), `semantic_hashing` torch, so each is imported on its own.
"""
