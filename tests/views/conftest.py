"""What pages under test may ask for."""

from __future__ import annotations

import pytest
import streamlit as st

from dashboard.shell import jobs


@pytest.fixture
def patient(monkeypatch) -> None:
    """A page waits for its runs, instead of being drawn again and again meanwhile."""
    monkeypatch.setattr(jobs.Job, "wait", lambda job, seconds: job._done.wait(110))
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 600.0)
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)  # the page runs alone
