"""How fast does it converge?"""

from __future__ import annotations

from dashboard.layout import heading

heading("How fast does it converge?")
