"""The peers that parabit's codes are compared with: all learned without labels, from the same counts of words."""
