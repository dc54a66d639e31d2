"""Where many wait, pages draw a first look in the place of the whole, under their own settings."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shell import workers
from tests.views.conftest import patient

__all__ = ["patient"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"home": "scene", "converge": "convergence", "attack": "reconstruction"}
PAGES |= {"privacy": "private_run", "personalise": "personalised"}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_a_first_look(page, patient, monkeypatch):
    drawn = []

    def looked(study, settings, data=None, long=False):
        look = study.first_look(settings)
        if look is None:
            return iter(())
        drawn.append(study.key)
        return study.run(look)

    monkeypatch.setattr(workers, "run", looked)
    app = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=60)
    app.query_params["seed"] = "4711"  # of which no test before has kept a result
    app.run()
    assert not app.exception, [one.value for one in app.exception]
    assert PAGES[page] in drawn and app.get("bidi_component")
