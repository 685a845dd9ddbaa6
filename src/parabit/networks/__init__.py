"""The paper's five networks, trained by gradient descent. Needs torch, except for `parabit.networks.config`."""
