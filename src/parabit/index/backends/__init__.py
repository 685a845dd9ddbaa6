"""Ways to search codes, one file each, all with the same answers."""
