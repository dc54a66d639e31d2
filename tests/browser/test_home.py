"""The front page: the experiment runs when it opens, and every parameter acts on it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.home.story import CHAPTERS
from tests.browser.tools import arrived, computing_held, fits, settled

SENTENCE = "[data-testid=replay-sentence]"
# How often a stamp was seen on the left, and how often before all that it is on was drawn.
STAMPS = """() => {
  window.stamped = { looks: 0, early: 0 };
  const look = () => {
    const [truth, left] = document.querySelectorAll('.fp-image');
    if (left?.querySelector('.fp-stamp.fp-exact')) {
      const [whole, drawn] = [truth, left].map((one) => one.querySelector('canvas').toDataURL());
      window.stamped.looks += 1;
      window.stamped.early += whole !== drawn;
    }
    setTimeout(look, 15);
  };
  look();
}"""
# What of the page is in the window: words (of at least two letters), and what takes the focus.
IN_SIGHT = """() => {
  const here = ({ left, right, top, bottom, width, height }) => width > 1 && height > 1
    && right > 0 && left < innerWidth && bottom > 0 && top < innerHeight;
  const shown = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const { clip, clipPath } = getComputedStyle(at);
      if (clip !== 'auto' || clipPath.startsWith('inset(50%')) return false;
    }
    return node.checkVisibility({ visibilityProperty: true });
  };
  const words = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: text } = texts, owner = text.parentElement;
    if (owner.closest('style, script, noscript, [translate=no]')) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const seen = shown(owner) && owner.checkVisibility({ opacityProperty: true });
    if (!seen || ![...range.getClientRects()].some(here)) continue;
    words.push(...text.data.match(/\\p{L}{2,}/gu) ?? []);
  }
  const takers = document.querySelectorAll('a[href], button, input, select, textarea, [tabindex]');
  const stops = [...takers].filter((node) => node.tabIndex >= 0 && !node.disabled
    && shown(node) && here(node.getBoundingClientRect()));
  return { words, stops: stops.map((stop) => stop.outerHTML.slice(0, 120)) };
}"""


def test_the_duel_opens_slowly_and_stops_when_the_server_has_every_record(open_page):
    page = open_page("/", moves=True, wait=False)
    page.wait_for_selector(".fp-replay.fp-duel .fp-image canvas")
    page.evaluate(STAMPS)
    replay = page.locator(".fp-replay.fp-duel")
    # It stops by itself, long before the run ends.
    expect(replay).to_have_attribute("data-round", "3", timeout=180_000)
    expect(replay).to_have_attribute("data-playing", "false")
    captions = page.locator("[data-testid=replay-caption]")
    expect(captions.nth(1)).to_have_text("Has all 30 since message 3: no other whole pixels fit.")
    expect(captions.nth(2)).to_contain_text("Harder attack not tried")
    expect(page.locator(".fp-stamp.fp-exact")).to_have_count(1)
    expect(page.locator(".fp-stamp").nth(0)).to_contain_text("30 of 30")
    expect(page.locator(".fp-stamp").nth(1)).to_have_text("0 of 30")
    expect(page.locator(".fp-invitation")).to_have_text("Look right: FAPS masks messages")
    assert page.locator(".fp-client").count() == 8
    # What a fresh reader asked: whose records, what SSI and FAPS are (on hover), degrees of what.
    expect(page.locator(".fp-client.fp-attacked span")).to_be_visible()
    opening = page.locator(".st-key-opening_line")
    expect(opening).to_contain_text("find the PCA of all their digits")
    for at, (method, sent) in enumerate((("SSI", "covariance × basis"), ("FAPS", "masked matrix"))):
        words = page.locator(".fp-sent > span").nth(at)
        expect(words).to_contain_text(f"{method} sends: {sent}")
        assert METHODS[method.lower()].stands_for in words.get_attribute("title")
    # Whose the dots are, and what is solid and what is dotted behind the dials.
    expect(page.locator(".fp-whose")).to_have_text(["Client 3 alone stays 74° offothers"])
    expect(page.locator(".fp-learnt-0")).to_contain_text("Learnt: joint PCA")
    # Clients and methods are told apart by shapes, whatever colours a reader sees.
    shape = "(all) => all.map((one) => one.getAttribute('d'))"
    assert len(set(page.locator(".fp-client small path").evaluate_all(shape))) == 8
    assert len(set(page.locator(".fp-run-side [data-marker]").evaluate_all(shape))) == 2
    # Where it rests is not where it ends: what joining gives stands beside what a client has alone.
    expect(page.locator(".fp-off-by")).to_have_text(["71° → 0.4° off", "83° → 4.4° off"])
    rests = page.locator(".fp-rests")
    expect(rests).to_have_text("Press play.")
    expect(rests).to_be_visible()
    for part in ("h1", ".fp-strip", ".fp-gallery", ".fp-learnt-1", ".fp-grid", ".fp-transport"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= page.viewport_size["height"], part
    # Once the landing is over, what is on the left is what the clients never sent.
    same = """() => {
      const canvases = [...document.querySelectorAll('.fp-image canvas')];
      const [truth, left, right] = canvases.map((canvas) => canvas.toDataURL());
      return truth === left && left !== right;
    }"""
    page.wait_for_function(same)
    # While records land they are counted, and what is said of all of them waits.
    stamped = page.evaluate("window.stamped")
    assert stamped["looks"] > 0 and stamped["early"] == 0, stamped
    # Where to look next stands within a finger's breadth of the stamp.
    stamp, invitation = (
        page.locator(part).bounding_box() for part in (".fp-stamp.fp-exact", ".fp-invitation")
    )
    below = invitation["y"] - stamp["y"] - stamp["height"]
    beside = stamp["x"] - invitation["x"] - invitation["width"]
    assert 0 <= below < 60 and beside < 60, (stamp, invitation)
    page.keyboard.press("Tab")
    page.locator("[data-testid=replay-play]").click()
    expect(rests).to_be_hidden()
    expect(replay).to_have_attribute("data-round", "20", timeout=180_000)
    expect(rests).to_be_hidden()
    expect(page.locator(".fp-off-by").first).to_have_text("0.4° off")
    fits(page)


def test_the_first_screen_is_few_words_and_few_things_to_click(open_page):
    page = open_page("/", {"round": 3, "autoplay": "false"}, height=900)
    seen = page.evaluate(IN_SIGHT)
    assert 80 < len(seen["words"]) <= 120, f"{len(seen['words'])}: {' '.join(seen['words'])}"
    assert 15 < len(seen["stops"]) <= 25, "\n".join(seen["stops"])


def test_an_auditor_finds_the_way_to_the_file_of_a_run_on_the_first_screen(open_page):
    page = open_page("/", height=900)
    page.locator(".st-key-front_ways").get_by_role("link", name="Open a run").click()
    expect(page.get_by_text("No run is open")).to_be_visible()


def test_the_tabulator_comes_to_the_dials_before_the_ways_to_other_pages(open_page):
    page = open_page("/", {"round": 3, "autoplay": "false"}, height=900)
    stops = []
    for _ in range(30):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate(
                "() => document.activeElement.closest('[class*=st-key-]')"
                "?.className.match(/st-key-(\\S+)/)[1] ?? ''"
            )
        )
    assert stops.index("clients") < 12
    # What a dial means stands there for who has it in hand.
    assert stops.index("participation") < stops.index("step") < stops.index("share_front")
    page.locator(".st-key-clients input").focus()
    expect(page.locator(".fp-note")).to_contain_text("How many parties hold data")


def test_a_copied_link_has_the_round_and_says_that_it_is_copied(open_page):
    page = open_page("/", {"round": 3, "autoplay": "false"})
    page.locator("[data-testid=replay-forward]").click()
    page.get_by_role("button", name="Share").click()
    button = page.locator(".fp-copy")
    button.click()
    expect(page.locator(".fp-copy + span")).to_contain_text("Cop")
    assert "round=4" in button.get_attribute("data-address")
    # A click of a screen reader comes without a pointer; nothing of it may leave what is open,
    # which shuts whenever something outside is clicked, by a script too.
    page.keyboard.press("Escape")
    expect(page.locator("[data-testid=stPopoverBody]")).to_have_count(0)
    page.locator("[data-testid=replay-back]").click()
    page.get_by_role("button", name="Share").click()
    button.evaluate("(copy) => copy.click()")
    expect(page.locator("[data-testid=stPopoverBody] .fp-copy + span")).to_contain_text("Cop")
    assert "round=3" in button.get_attribute("data-address")


def test_nothing_below_the_dials_moves_when_the_number_of_clients_does(open_page):
    tops = []
    for clients in (2, 8, 12, 13, 40):
        page = open_page("/", {"clients": clients, "round": 3, "autoplay": "false"}, height=900)
        expect(page.locator(".fp-client")).to_have_count(clients)
        boxes = (page.locator(part).bounding_box() for part in (".fp-gallery", ".fp-transport"))
        tops.append([box["y"] for box in boxes])
    assert tops == tops[:1] * len(tops)


def test_what_dials_do_stands_behind_them_and_at_hand(open_page):
    page = open_page("/", {"round": 3, "autoplay": "false"}, height=900)
    held = page.locator(".fp-curves")
    expect(held).to_have_attribute("data-held", re.compile("epsilon.*SSI"), timeout=180_000)
    line = page.locator(".st-key-epsilon .stSlider [role=group] > div")
    style = "(node) => getComputedStyle(node, '::before').backgroundImage"
    assert "svg" in line.evaluate(style)
    legend = page.locator(".fp-dial-legend")
    expect(legend).to_have_text("answer attack · 0–90°")
    expect(legend).to_be_visible()
    drawn = "(all) => all.map((one) => getComputedStyle(one).borderTopStyle)"
    assert legend.locator("i").evaluate_all(drawn) == ["solid", "dotted"]
    method = page.locator(".st-key-method").bounding_box()
    assert legend.bounding_box()["y"] + legend.bounding_box()["height"] <= method["y"] + 4
    page.locator(".st-key-epsilon input").focus()
    expect(page.locator(".fp-note")).to_contain_text("about: answer off by")
    page.keyboard.press("Escape")
    expect(page.locator(".fp-note")).to_be_hidden()


def test_noise_that_is_too_much_here_is_borne_by_more_records_and_back(open_page):
    page = open_page("/", {"epsilon": 1, "round": 3, "autoplay": "false"})
    line = page.locator(".st-key-opening_line")
    expect(line).to_contain_text("the noise outweighs 30 digits a client")
    expect(line).to_contain_text(re.compile(r"With 898 digits a client, .*: \d+\.\d°"))
    page.get_by_role("button", name="Show that").click()
    page.wait_for_url("**clients=2**")
    settled(page)
    expect(line).not_to_contain_text("outweighs")
    page.get_by_role("button", name="Back", exact=True).click()
    expect(line).to_contain_text("the noise outweighs 30 digits a client")
    expect(page.locator(".fp-client")).to_have_count(8)


def test_the_other_side_may_be_switched_off_while_the_duel_opens(open_page):
    page = open_page("/", moves=True, wait=False)
    page.wait_for_selector(".fp-replay.fp-duel .fp-image canvas")
    page.get_by_role("combobox", name="Compared with").first.click()
    page.get_by_role("option", name="Off").first.click()
    expect(page.locator(".fp-replay.fp-duel")).to_have_count(0, timeout=180_000)
    # What lands there lands on no stamp: an exception in the page fails the test as it ends.
    page.wait_for_timeout(8000)


def test_who_touches_the_bar_takes_over(open_page):
    page = open_page("/", moves=True)
    page.locator("[data-testid=replay-forward]").click()
    replay = page.locator(".fp-replay")
    expect(replay).to_have_attribute("data-playing", "false")
    at = replay.get_attribute("data-round")
    page.wait_for_timeout(2500)
    expect(replay).to_have_attribute("data-round", at)


def test_who_asked_for_less_motion_sees_where_it_ends(open_page):
    page = open_page("/")
    expect(page.locator(".fp-replay")).to_have_attribute("data-playing", "false")
    expect(page.locator(SENTENCE)).to_contain_text("exactly")
    expect(page.locator(".fp-stamp.fp-exact")).to_have_count(1)
    page = open_page("/", {"round": 2})
    expect(page.locator(SENTENCE)).to_contain_text("After 2 messages")


def test_either_side_may_be_off_or_another_method(open_page):
    page = open_page("/", {"versus": "LocalPower", "autoplay": "false", "round": 3})
    expect(page.locator(".fp-image").nth(2)).to_contain_text("Server rebuilds (LocalPower)")
    assert page.locator(".fp-learnt").count() == 2
    page = open_page("/", {"method": "FAPS", "autoplay": "false"})
    expect(page.locator(".fp-image")).to_have_count(2)
    expect(page.locator(".fp-stagebox")).to_be_visible()


def test_a_parameter_of_the_link_changes_all_three_pictures(open_page, dashboard):
    with computing_held(dashboard):  # the page is there before its result, as on a busy machine
        query = {"clients": "5", "method": "FAPS", "seed": 71}
        page = open_page("/", query, moves=True, wait=False)
        expect(page.locator(".st-key-scene_busy")).to_be_visible(timeout=180_000)
    settled(page)
    expect(page.locator(".fp-client")).to_have_count(5)
    expect(page.locator(SENTENCE)).to_contain_text("harder attack not tried")
    expect(page.locator(".fp-shield")).to_contain_text("masked")
    assert "exactly" not in page.locator(SENTENCE).inner_text()
    # What was not tried stands there with its price, and a button that runs it.
    page.get_by_role("button", name="Try it: replay of the update").click()
    expect(page.locator(SENTENCE)).to_contain_text("exactly", timeout=240_000)


def test_noise_at_the_source_is_on_the_stage_with_its_guarantee(open_page):
    page = open_page("/", {"versus": "off", "epsilon": "10", "clip": "4"})
    settled(page)
    expect(page.locator(".fp-shield")).to_contain_text("ε = 10")
    expect(page.locator("[data-testid=stMain]")).to_contain_text("one record of one client")


def test_a_card_opens_its_page_in_the_same_session(open_page):
    page = open_page("/", {"embed": "true", "seed": "3"})
    settled(page)
    loads: list[str] = []
    page.on("request", lambda one: loads.append(one.url) if one.is_navigation_request() else None)
    for section, path in (("points", "/converge"), ("questions", "/which"), ("steps", "/")):
        page.locator(f".fp-{section} .fp-way").nth(0).click()
        # Nobody waits for what is computed there: a run of everything on “Which one?” takes long.
        arrived(page, path)
        expect(page.locator("h1")).not_to_contain_text("What does the server hold?")
        expect(page).to_have_url(re.compile("embed=true"))
        if section == "points":  # a preset is all that its link says, a door brings what travels
            assert "seed" not in page.url
        elif section == "questions":
            expect(page.locator("h1")).to_contain_text("Which federated PCA")
        else:
            expect(page.locator("h1")).to_have_text(CHAPTERS["1"].title)
            break
        page.go_back()
        expect(page.locator("h1")).to_contain_text("What does the server hold?")
        settled(page)
    assert loads == []


def test_before_a_room_a_reveal_leaves_the_dials_on_the_screen(open_page):
    """On a small projector, and they stay where they are while it plays."""
    page = open_page("/", {"step": 3, "lecture": "true"}, width=1024, height=768, moves=True)
    page.get_by_role("button", name="Show me").click()
    expect(page.locator(".fp-replay")).to_have_attribute("data-playing", "true", timeout=180_000)
    dials = [page.locator(f".st-key-{name}") for name in ("method", "clients", "epsilon")]
    places = [dial.bounding_box() for dial in dials]
    assert all(place["y"] > 0 and place["y"] + place["height"] <= 768 for place in places)
    expect(page.locator(".fp-replay")).to_have_attribute("data-playing", "false", timeout=180_000)
    assert [dial.bounding_box() for dial in dials] == places
