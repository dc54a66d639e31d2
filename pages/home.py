"""The first page: what this laboratory is."""

from __future__ import annotations

from dashboard.layout import heading

heading(
    "Federated PCA laboratory",
    "Turn a dial and see at once how fast each algorithm converges, what it costs on the wire, "
    "and what a curious server can reconstruct from exactly those messages.",
)
