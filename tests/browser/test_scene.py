"""The scene: every parameter acts on all three pictures; the story is walked by keyboard alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from fedpca_core.questions.home.story import CHAPTERS
from tests.browser.tools import accessible, drawn, fits, listen, set_slider, settled

SENTENCE = "[data-testid=replay-sentence]"
#: One method, as a picture of its own.
ALONE = {"versus": "off"}
# What each of the three pictures shows in the round at hand: the scene and its sentence, what
# the server holds, the curves of the errors of the answer and of the attack.
PICTURES = """() => {
  const canvas = document.querySelectorAll('.fp-image canvas')[1];
  const plot = document.querySelector('.fp-plot');
  const [answer, attack] = plot.data.slice(-2);
  return {
    stage: document.querySelector('.fp-clients').childElementCount
      + document.querySelector('.fp-server').textContent
      + document.querySelector('.fp-message').textContent
      + document.querySelector('.fp-shield').textContent
      + [...document.querySelectorAll('.fp-clients canvas')].map((c) => c.toDataURL()).join()
      + document.querySelectorAll('.fp-client.fp-present').length
      + document.querySelector('.fp-sentence').textContent,
    held: canvas.toDataURL() + document.querySelectorAll('.fp-caption')[1].textContent,
    error: JSON.stringify([...answer.y]),
    attack: JSON.stringify([...attack.y]),
  };
}"""


# Wires that run behind a card on their way to the server.
HIDDEN_WIRES = """() => {
  const box = document.querySelector('.fp-stagebox').getBoundingClientRect();
  const cards = [...document.querySelectorAll('.fp-client')].map((c) => c.getBoundingClientRect());
  const within = (at, from, to) => at > from + 2 && at < to - 2;
  const behind = ({ x, y }) => cards.some((card) => within(x + box.left, card.left, card.right)
    && within(y + box.top, card.top, card.bottom));
  return [...document.querySelectorAll('.fp-wire')].filter((wire) => {
    const steps = Math.floor(wire.getTotalLength() / 2);
    return [...Array(steps).keys()].some((at) => behind(wire.getPointAtLength(2 * at)));
  }).length;
}"""


def at_rest(page):
    """The pictures at the third round, drawn."""
    settled(page)
    page.wait_for_function(
        "() => document.querySelector('.fp-plot').dataset.drawn"
        " === document.querySelector('.fp-replay').dataset.digest"
    )
    return page.evaluate(PICTURES)


def turn_method(page):
    page.locator(".st-key-method [data-baseweb=select], .st-key-method input").first.click()
    page.get_by_role("option", name="LocalPower", exact=True).click()


# ε is set to 100 rather than its neighbour: every finite one adds noise, and 100 adds least.
DIALS = {
    "method": turn_method,
    "clients": lambda page: set_slider(page, "clients", 6),
    "heterogeneity": lambda page: set_slider(page, "heterogeneity", 0.1),
    "penalty": lambda page: set_slider(page, "penalty", 7),
    "epsilon": lambda page: set_slider(page, "epsilon", 10),
    "participation": lambda page: set_slider(page, "participation", 0.9),
}


# Two rounds in, the server still holds directions only. The penalty is one of FAPS, and SSI, which
# sees nothing but the pooled data, converges alike however they are dealt out.
@pytest.mark.parametrize(
    ("query", "dials"),
    [
        ({}, ["clients", "participation", "method", "epsilon"]),
        ({"method": "FAPS"}, ["penalty", "heterogeneity"]),
    ],
)
def test_every_dial_changes_all_three_pictures(open_page, query, dials):
    page = open_page("/", ALONE | {"round": "2", "autoplay": "false"} | query)
    before = at_rest(page)
    for dial in dials:
        digest = page.locator(".fp-replay").get_attribute("data-digest")
        DIALS[dial](page)
        page.wait_for_function(
            "(digest) => document.querySelector('.fp-replay').dataset.digest !== digest",
            arg=digest,
        )
        # What else arrives, such as the curves behind the dials, changes the digest too.
        for _ in range(40):
            after = at_rest(page)
            same = [name for name in before if before[name] == after[name]]
            if not same:
                break
            page.wait_for_timeout(250)
        assert same == [], dial
        # The run before stays as a ghost.
        assert page.locator(".fp-run-before").count() == 1
        before = after


def test_a_dial_sends_nothing_of_the_page_below(dashboard, new_page):
    page = new_page()
    received: list[bytes] = []

    def keep(frame: bytes) -> None:  # the driver takes functions, not methods of a list
        received.append(frame)

    listen(page, "websocket", lambda line: line.on("framereceived", keep))
    page.goto(f"{dashboard}/?autoplay=false")
    drawn(page)
    settled(page)
    below = b"What to know before you trust a picture"
    assert any(below in frame for frame in received)
    received.clear()
    set_slider(page, "participation", 0.9)
    assert received and not any(below in frame for frame in received)


def test_the_story_is_walked_by_keyboard_alone(open_page):
    page = open_page("/", {"step": "1"})

    def press(key, tabulator="Tab"):
        button = page.locator(f".st-key-{key} button").first
        for _ in range(200):
            if page.evaluate("(e) => e === document.activeElement", button.element_handle()):
                break
            page.keyboard.press(tabulator)
        else:
            raise AssertionError(f"{key} is not reached by the tabulator")
        page.keyboard.press("Enter")
        settled(page)

    endings = []
    for step in "1234567":
        expect(page.locator("h1")).to_have_text(CHAPTERS[step].title, timeout=180_000)
        page.wait_for_url(f"**step={step}*", timeout=180_000)
        ending = page.locator(".fp-late")
        expect(ending).to_have_count(0)
        # The button that turned the page stands right after the one that shows the run.
        press("story_show", "Tab" if step == "1" else "Shift+Tab")
        expect(ending).to_be_visible(timeout=180_000)
        endings.append(ending.inner_text())
        plot = page.locator(".fp-plot").nth(1 if step == "7" else 0)
        expect(plot).to_contain_text("your guess", timeout=180_000)
        press("story_next")
    assert len(set(endings)) == 7
    assert "masking is not privacy" in endings[3]
    expect(page.locator(".st-key-story_told")).to_have_count(0)


def test_a_lecture_plays_with_space_and_turns_with_n_and_p(open_page):
    page = open_page("/", {"step": "2", "shown": "true", "lecture": "true", "autoplay": "false"})
    replay = page.locator(".fp-replay")
    page.locator(".st-key-scene_sheet input[type=range]").first.focus()
    page.keyboard.press("Space")
    expect(replay).to_have_attribute("data-playing", "true")
    page.keyboard.press("Space")
    page.evaluate("document.activeElement.blur()")
    at = int(replay.get_attribute("data-round"))
    page.keyboard.press("ArrowRight")
    expect(replay).to_have_attribute("data-round", str(at + 1))
    page.keyboard.press("ArrowLeft")
    expect(replay).to_have_attribute("data-round", str(at))
    for whole in (True, False):
        page.get_by_role("button", name="Full screen").click()
        page.wait_for_function("(whole) => !document.fullscreenElement === !whole", arg=whole)
    page.keyboard.press("n")
    expect(page.locator("h1")).to_have_text(CHAPTERS["3"].title, timeout=180_000)
    settled(page)
    page.keyboard.press("p")
    expect(page.locator("h1")).to_have_text(CHAPTERS["2"].title, timeout=180_000)
    assert page.locator("[data-testid=stSidebar]").is_hidden()


def test_a_link_opens_at_its_section_and_without_the_curves_it_hides(open_page):
    page = open_page("/", "versus=off&section=doors&hide=attack&hide=bytes&round=4&autoplay=false")
    settled(page)
    page.wait_for_function(
        "() => Math.abs(document.querySelector('.st-key-section_doors')"
        ".getBoundingClientRect().top) < 150"
    )
    answer, attack = (page.locator(".fp-runs [data-curve]").nth(at) for at in (0, 1))
    expect(attack).to_have_attribute("aria-pressed", "false")
    shown = "() => document.querySelector('.fp-plot').data.map((trace) => trace.visible)"
    assert page.evaluate(shown) == [True, False]
    answer.click()
    attack.click()
    page.wait_for_function(f"() => String(({shown})()) === 'false,true'")
    link = page.locator("[data-testid=replay-link]")
    link.click()
    address = link.get_attribute("data-address")
    assert "hide=bytes" in address and "hide=answer" in address and "attack" not in address
    # What a reader hid stays hidden in the next run, whatever its method is called.
    turn_method(page)
    expect(answer).to_contain_text("LocalPower")
    expect(answer).to_have_attribute("aria-pressed", "false")
    expect(attack).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize(
    ("width", "height", "query"),
    [
        (1440, 900, "versus=off&round=4&autoplay=false"),
        (1024, 768, "versus=off&embed=true&round=4&autoplay=false"),
        (390, 844, "versus=off&round=4&autoplay=false"),
    ],
)
def test_everything_is_on_one_screen(open_page, width, height, query):
    page = open_page("/", query, width=width, height=height)
    for part in ("h1", ".fp-stagebox", ".fp-gallery", SENTENCE, ".fp-plot >> nth=1", ".fp-range"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, part
    assert page.locator(".fp-wire").count() == 8 and page.evaluate(HIDDEN_WIRES) == 0
    fits(page)
    # What labels the charts is of one size.
    sizes = page.evaluate(
        """() => [...document.querySelectorAll('.xtick text, .ytick text')]
                   .map((label) => parseFloat(getComputedStyle(label).fontSize))"""
    )
    assert len(sizes) > 8 and max(sizes) - min(sizes) < 0.1
    legend = page.locator(".fp-runs li span").first
    assert legend.evaluate("(entry) => parseFloat(getComputedStyle(entry).fontSize)") < 14


@pytest.mark.parametrize(
    ("width", "height", "query"),
    [
        (1024, 768, "embed=true&step=2"),
        (1024, 768, "embed=true&step=3&shown=true&round=4&autoplay=false"),
        (390, 844, "step=1&shown=true&round=4&autoplay=false"),
        (1024, 768, "embed=true&step=1&lecture=true"),
        (1024, 768, "embed=true&step=5&lecture=true&shown=true&round=11&autoplay=false"),
    ],
)
def test_a_step_of_the_story_is_on_one_screen(open_page, width, height, query):
    page = open_page("/", query, width=width, height=height)
    bar = page.locator(".fp-transport").bounding_box()
    assert bar["y"] + bar["height"] <= height
    # Nothing lies over the title, Streamlit's own bar neither.
    assert page.evaluate(
        """() => { const title = document.querySelector('h1'), at = title.getBoundingClientRect();
          return title.contains(document.elementFromPoint(at.left + 9, at.top + 9)); }"""
    )
    parts = ["h1", ".st-key-story_asked", ".fp-gallery", ".fp-plot >> nth=1", SENTENCE]
    if "lecture" in query:
        expect(page.locator(SENTENCE)).to_be_hidden()  # the server's card says it
        parts.remove(SENTENCE)
    for part in parts:
        box = page.locator(part).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= bar["y"] + 1, part


def test_a_lecture_is_half_as_large_again_and_fits(open_page):
    sizes = """() => ['.fp-sentence', '.fp-caption', '.fp-holds', '.fp-image-title', '.xtick text']
      .map((part) => parseFloat(getComputedStyle(document.querySelector(part)).fontSize))"""
    query = "versus=off&embed=true&round=4&autoplay=false&hide=parameters&hide=bytes"
    page = open_page("/", query, width=1024, height=768)
    expect(page.locator(".st-key-scene_sheet")).to_be_hidden()
    expect(page.locator(".fp-plot").nth(1)).to_be_hidden()
    before = page.evaluate(sizes)
    page = open_page("/", f"{query}&step=2&shown=true&lecture=true", width=1024, height=768)
    expect(page.locator(".fp-replay")).to_have_attribute("data-round", "4")
    assert all(
        large >= 1.45 * small for large, small in zip(page.evaluate(sizes), before, strict=True)
    )
    bar = page.locator(".fp-transport").bounding_box()
    for part in ("h1", ".fp-stagebox", ".fp-gallery", SENTENCE):
        box = page.locator(part).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= bar["y"] + 1, part
    assert bar["y"] + bar["height"] <= 768


def test_one_s_own_table_is_a_choice_away_and_a_refusal_keeps_the_picture(open_page, tmp_path):
    values = np.random.default_rng(0).integers(0, 50, (40, 9)) / 10
    table = pd.DataFrame(values, columns=list("abcdefghi"))
    table["owner"] = [name for name in "wxyz" for _ in range(10)]
    table.to_csv(tmp_path / "own.csv", index=False)
    page = open_page("/", ALONE | {"autoplay": "false"})
    page.get_by_role("button", name="More").click()
    page.locator(".st-key-problem [data-baseweb=select], .st-key-problem input").first.click()
    page.get_by_role("option", name="Your own table").click()
    expect(page.locator(".stAlert")).to_contain_text("table of your own")
    expect(page.locator(".fp-client")).to_have_count(8)  # the picture before
    page.locator("[data-testid=stFileUploader] input[type=file]").set_input_files(
        tmp_path / "own.csv"
    )
    expect(page.locator(".stAlert")).to_contain_text("omponents")
    accessible(page)
    set_slider(page, "components", 3)
    expect(page.locator(".stAlert")).to_have_count(0)
    expect(page.locator(".fp-image").first).to_contain_text("5 rows, never sent")


def test_on_a_phone_the_parameters_open_beside_the_picture(open_page):
    page = open_page("/", ALONE, width=390)
    page.locator(".st-key-sheet_open label").click()
    slider = page.locator(".st-key-clients input[type=range]")
    expect(slider).to_be_visible()
    top = page.locator(".st-key-scene_sheet").bounding_box()["y"]
    for part in (".fp-stagebox", ".fp-gallery", ".fp-plot >> nth=0"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= top, part
    accessible(page)


def test_a_pinned_run_is_compared_with_the_next(open_page):
    page = open_page("/", ALONE)
    page.locator("[data-testid=replay-pin]").click()
    set_slider(page, "clients", 6)
    expect(page.locator(".fp-run-pinned")).to_contain_text("pinned: SSI")
    set_slider(page, "clients", 5)
    expect(page.locator(".fp-run-before")).to_contain_text("clients 6")
    expect(page.locator(".fp-run-pinned")).to_contain_text("pinned: SSI")


def test_in_a_step_every_dial_is_in_the_address(open_page):
    """A widget that moved to another container wrote nothing: the first dial, the method ever."""
    page = open_page("/", {"autoplay": "false"})
    page.locator(".st-key-step button", has_text="1").click()
    page.wait_for_url("**step=1**")
    page.locator(".st-key-step button", has_text="5").click()
    page.wait_for_url("**step=5**")
    settled(page)
    set_slider(page, "clients", 9)
    page.wait_for_url("**clients=9**")
    page.locator(".st-key-method input").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**method=LocalPower**")
    picture, dials = (
        page.locator(name).bounding_box()["y"] for name in (".fp-scene", ".st-key-scene_row")
    )
    assert picture < dials


def test_a_chart_behind_a_switch_is_drawn_once_it_is_seen(open_page):
    page = open_page("/", {"autoplay": "false", "rounds": 10, "round": 2})
    hidden = page.locator(".fp-plot[data-panel=scene-bytes]")
    expect(hidden).to_be_hidden()
    assert hidden.locator("svg").count() == 0
    set_slider(page, "participation", 0.5)
    drawn(page)
    page.get_by_role("button", name="Bytes").click()
    expect(hidden.locator(".main-svg").first).to_be_visible()
    seen = hidden.evaluate("(one) => [one.data.length, one.clientWidth - one._fullLayout.width]")
    assert seen[0] > 0 and abs(seen[1]) <= 1
