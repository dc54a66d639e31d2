"""What can the server reconstruct?"""

from __future__ import annotations

from dashboard.layout import heading

heading("What can the server reconstruct?")
