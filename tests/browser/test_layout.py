"""Where the front page stands on a desk, before a room, enlarged twice and on a phone, in boxes."""

from __future__ import annotations

import pytest

STILL = {"round": 8, "autoplay": "false"}
#: Whether what lies over the middle of the play button is the button.
FREE = """() => { const play = document.querySelector('[data-testid=replay-play]');
  const { x, y, width, height } = play.getBoundingClientRect();
  return play.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }"""


def edges(page, part: str) -> tuple[float, float]:
    box = page.locator(part).last.bounding_box()
    return box["y"], box["y"] + box["height"]


@pytest.mark.parametrize("lecture", [{}, {"lecture": "true"}], ids=["desk", "lecture"])
def test_the_picture_comes_first_and_the_parameters_are_docked(open_page, lecture):
    page = open_page("/", STILL | lecture, width=1024, height=768)
    (top, _), (_, end) = edges(page, ".fp-gallery"), edges(page, ".fp-learnt-1")
    bar, dials = edges(page, ".fp-transport"), edges(page, ".st-key-scene_row")
    assert end - top >= 768 / 2
    assert end <= bar[0] + 1 and bar[1] <= dials[0] and dials[1] <= 768
    assert page.evaluate(FREE)
    widths = [
        page.locator(part).first.bounding_box()["width"] for part in (".fp-canvas", ".fp-image")
    ]
    assert widths[0] >= 0.95 * widths[1], "a picture has its column"
    sidebar = page.locator("[data-testid=stSidebar]")
    assert not sidebar.is_visible() or sidebar.get_attribute("aria-expanded") == "false"


def test_enlarged_twice_the_picture_is_on_the_first_screen(open_page):
    page = open_page("/", STILL, width=720, height=450)
    assert edges(page, ".fp-canvas >> nth=0")[1] <= edges(page, ".fp-transport")[0]
    assert page.evaluate(FREE)


@pytest.mark.parametrize("query", [{}, {"step": "7"}], ids=["free", "story"])
@pytest.mark.parametrize(("width", "height"), [(1024, 768), (720, 450), (390, 844)])
def test_nothing_stands_on_the_title(open_page, query, width, height):
    page = open_page("/", STILL | query, width=width, height=height)
    title = page.locator("h1 >> nth=0")
    inside = """(title) => { const range = document.createRange(); range.selectNodeContents(title);
      return Math.max(...[...range.getClientRects()].map(({ right }) => right)); }"""
    ways = page.locator(".st-key-front_ways").bounding_box()
    low = title.bounding_box()["y"] >= ways["y"] + ways["height"] - 1
    assert low or title.evaluate(inside) <= ways["x"]
    # Without their words the buttons are called by them.
    page.get_by_role("button", name="Share").wait_for()


def test_the_sheet_of_a_phone_leaves_the_play_bar_free(open_page):
    page = open_page("/", STILL, width=390)
    sheet = ".st-key-scene_sheet"
    assert page.evaluate(FREE) and edges(page, ".fp-transport")[1] <= edges(page, sheet)[0]
    page.locator(".st-key-sheet_open label").click()
    page.locator(".st-key-clients").wait_for()
    assert page.evaluate(FREE) and edges(page, ".fp-transport")[1] <= edges(page, sheet)[0]
    pictures = [one.bounding_box() for one in page.locator(".fp-image").all()]
    assert len({box["y"] for box in pictures}) == 1, "in a row to be swiped"
    small = page.locator(".fp-replay button:visible").all()
    assert all(min(one.bounding_box()[side] for side in ("width", "height")) >= 24 for one in small)


def test_share_is_in_sight_at_the_foot_of_a_page_and_opens_with_room(open_page):
    page = open_page("/check", {"method": "one_shot"})
    page.get_by_text("What stops it, at which cost").scroll_into_view_if_needed()
    page.mouse.wheel(0, 10_000)
    share = page.get_by_role("button", name="Share", exact=True)
    assert edges(page, "[class*=st-key-share-] button")[1] < 60
    share.click()
    last = page.get_by_role("button", name="Download everything")
    last.wait_for()
    box, window = last.bounding_box(), page.viewport_size
    assert box["y"] + box["height"] < window["height"]
