"""Which federated PCA to use: all methods on one problem, and rules that choose among them."""
