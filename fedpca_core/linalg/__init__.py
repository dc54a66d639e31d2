"""Orthonormal bases, polar factors and inverse roots, batched."""
