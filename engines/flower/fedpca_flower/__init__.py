"""Federated PCA on Flower: the steps of `fedpca_core` where every client keeps its own data."""
