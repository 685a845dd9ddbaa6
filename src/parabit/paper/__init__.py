"""Every table and figure of the paper, regenerated and set beside the paper's figures."""
