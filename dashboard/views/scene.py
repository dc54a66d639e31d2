"""Drawing the live picture: clients, messages, server; the truth beside what the server holds."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import streamlit as st

from dashboard.player import Lecture, PlayedRun, Side, Stage, prepared
from dashboard.shell import jobs, layout, limits, own_table
from dashboard.shell.controls import Controls, itself
from dashboard.views import front
from fedpca_core.algorithms.registry import METHODS, replayable
from fedpca_core.arrays import Array
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Status, Target, in_short, lasting
from fedpca_core.questions.attack.figures.records import caption
from fedpca_core.questions.catalogue import NEXT_STEPS
from fedpca_core.questions.home.dials import onward
from fedpca_core.questions.home.scene import LivePicture, Scene, bearable
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.story import CHAPTERS, FAIR, NEVER, angle, degrees, things, who
from fedpca_core.settings import plural, short
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Images, Mark, Panel, to_uint8
from fedpca_core.study.parts import names
from fedpca_core.study.pca_settings import IMAGES
from fedpca_core.study.pictures import frames, mosaic, sheet

#: Records in a row where three pictures stand side by side.
WIDE = 8
#: Parameters as a legend names them.
SHORT = names("scene-labels")


def parameters(controls: Controls[SceneSettings]) -> None:
    """The parameters in one row; on a phone a sheet that opens beside the picture."""
    with st.container(key="scene_sheet"):
        st.toggle("Parameters", key="sheet_open", on_change="ignore")
        with st.container(
            horizontal=True, gap="small", vertical_alignment="bottom", key="scene_row"
        ):
            front.legend()
            controls.draw(*front.ROW)
            with st.popover("More", icon=":material/tune:", width="stretch", key="scene_more"):
                if controls.parameter("problem", shapes=itself) == "table":
                    own_table.upload(controls)
                    fits = st.container()
                else:
                    controls.draw("records_per_client", "resolution")
                controls.draw("components", "rounds", "client", "secure_aggregation")
                controls.draw("unmask", "joined", "absent", "delta", "clip_norm")
                controls.draw("rho_factor", "price", "seed")
                if controls.values["problem"] == "table":
                    # In here: a browser keeps the values of what a closed popover hides.
                    with fits:
                        own_table.to_fit(controls)


def opening(
    settings: SceneSettings, scene: Scene | None, controls: Controls[SceneSettings]
) -> None:
    """What the picture is of, in a line; under a budget what it costs here, and where less."""
    words, button = st.columns([7, 1], vertical_alignment="center")
    objects, (before, taken) = things(settings), st.session_state.get("offer_taken", (None, None))
    if taken == settings:
        button.button("Back", key="offer_back", on_click=controls.changer(before))
    sides = [] if scene is None else [one for one, _ in _sides(scene, settings)]
    off = min((one.sines[-1] for one in sides), default=0.0)
    if scene is None or scene.facts.guarantee is None or degrees(off) <= FAIR:
        words.markdown(
            f"{settings.clients} hospitals (clients) find the PCA of all their {objects}; only "
            f"matrices leave. The server attacks {who(settings, scene.facts if scene else None)}."
        )
        return
    cost = (
        f"With ε = {short(settings.epsilon)} the noise outweighs {scene.records:,} {objects} a "
        f"client: what all learn ends {angle(off)} from the truth."
    )
    offer = min((one.offer for one in sides if one.offer), key=lambda one: one.sine, default=None)
    if offer is not None and degrees(offer.sine) <= FAIR:
        more = bearable(settings)
        cost += (
            f" With {offer.records:,} {objects} a client, {plural(more.components, 'direction')} "
            f"and ε = {short(more.epsilon)}: {angle(offer.sine)}."
        )
        button.button("Show that", key="offer", on_click=_take, args=(controls, more))
    words.markdown(cost)


def _take(controls: Controls[SceneSettings], offer: SceneSettings) -> None:
    """Take an offer, and remember what it was made beside."""
    st.session_state["offer_taken"] = controls.settings(), offer
    controls.changer(offer)()


def foresee(study: LivePicture, settings: SceneSettings, turned: tuple[str, Any] | None) -> None:
    """Have computed what the next turn of a dial may ask for: that which was ``turned`` from some
    value last is turned on, or any by one step."""
    if settings.opponent is not None:
        further = turned and onward(settings, *turned)
        # Of a page that has just been opened the browser is busy.
        rest = jobs.DRAWN_SECONDS if turned else jobs.REST_SECONDS
        jobs.perhaps(*([(study, further)] if further else []), (NEXT_STEPS, settings), rest=rest)


def possible(settings: SceneSettings, told: bool = False) -> SceneSettings:
    """The settings that are drawn: a method that needs single messages runs without secure sums.

    Where it is to be ``told``, a sentence says so.
    """
    methods = [METHODS[key] for key in settings.compared]
    alone = [one.title for one in methods if one.needs_individual_uploads]
    if not (settings.secure_aggregation and alone):
        return settings
    if told:
        layout.sentence(
            f"{alone[0]} needs every client's own message, which secure sums would hide: the "
            "picture shows it without them.",
            kind="note",
        )
    return replace(settings, secure_aggregation=False)


def way_out(controls: Controls[SceneSettings], study: LivePicture) -> None:
    """Where a run is too large for this server: how many rounds are not, and a button for them."""
    settings = controls.settings()
    described = settings.parameters()["rounds"]
    with suppress(InvalidInput):
        limits.check(study, settings, None)
        return  # refused for another reason
    for rounds in reversed([int(r) for r in described.grid if r < settings.rounds]):
        fits = replace(settings, rounds=rounds)
        with suppress(InvalidInput):
            limits.check(study, fits, None)
            layout.sentence(f"With **{described.label}** at {rounds}, under “More”, it runs here.")
            st.button(f"Use {rounds} rounds", on_click=controls.changer(fits), key="remedy_rounds")
            return


@lru_cache(maxsize=16)
def view(
    scene: Scene, settings: SceneSettings, asking: bool, guess: str | None
) -> Callable[..., None]:
    """The whole picture, laid out once for all visitors who look at the same run, and playing when
    it opens; returns what shows it.

    `asking` shows its beginning only. `guess` is what the reader expects: a round, or an ε where
    the errors at every ε are drawn. What shows it takes what the button below one of two methods
    does, where an attack was left waiting.
    """
    whole = scene
    scene = scene.beginning if asking else scene
    duel = scene.other is not None
    if scene.other is not None:  # one may be done before the other
        rounds = max(scene.rounds, scene.other.rounds)
        scene = replace(scene.lasting(rounds), other=scene.other.lasting(rounds))
    beside = [_learnt(scene)] if _answer_only(settings) else _held(scene, settings)
    if scene.prices is None:
        costs, expected = _bytes(scene, settings, whole), guess
    else:
        costs, expected = _price(scene, settings, asking, guess), None
    if duel:
        errors = _angles(scene, settings)
        titles = [METHODS[method].title for method in settings.compared]
        curves = {what: [f"{what} {title}" for title in titles] for what in ("answer", "attack")}
    else:
        errors = _error(scene, settings, whole.rounds, expected)
        attacks = [] if _answer_only(settings) else [attack_on(scene, settings)]
        curves = {"answer": [METHODS[settings.method].title], "attack": attacks}
    return prepared(
        key="scene",
        rounds=scene.rounds,
        stage=_duel(scene, settings) if duel else _stage(scene, settings, whole),
        images=[[_truth(scene, settings), *beside]],
        panels=[errors, costs],
        round_label="message" if duel else "round",
        sentences=[sentence(scene, settings, k) for k in range(scene.rounds + 1)],
        start=min(settings.round, scene.rounds),
        autoplay=settings.autoplay,
        run=PlayedRun(settings.run_key().to_json(), label(settings)),
        lecture=Lecture(settings.lecture, settings.hide, settings.section, curves),
    )


def _answer_only(settings: SceneSettings) -> bool:
    """Whether a step of the story asks for the answer before it asks for the attack."""
    return settings.step in CHAPTERS and CHAPTERS[settings.step].shows == "answer"


def _sides(scene: Scene, settings: SceneSettings) -> list[tuple[Scene, SceneSettings]]:
    first = scene, settings.side(settings.method)
    if scene.other is None or settings.opponent is None:
        return [first]
    return [first, (scene.other, settings.side(settings.opponent))]


def _duel(scene: Scene, settings: SceneSettings) -> Stage:
    """Both methods' messages and answers below each other's pictures."""
    sides = [_side(one, own) for one, own in _sides(scene, settings)]
    right = sides[-1]
    does = {"mask": f"{right.title} masks messages"}.get(right.protection, right.title)
    return replace(
        _stage(scene, settings),
        sides=sides,
        owners=scene.owners.astype(np.uint8),
        alone=f"alone stays {degrees(scene.alone):.0f}° off",
        tile=(scene.truth.shape[1] + 1, scene.truth.shape[2] + 1),
        invitation="" if right.since is not None else f"Look right: {does}",
    )


def _side(scene: Scene, settings: SceneSettings) -> Side:
    protection, name, meaning = _protection(scene, settings)
    shape = " × ".join(map(str, scene.message_shape))
    method = METHODS[settings.method]
    plain = "covariance × basis" if method.algorithm.uploads.name == "PRODUCTS" else "plain matrix"
    # Beside what the client would be off alone stands what it gets for sending, unless it is asked.
    end = "" if "answer" in settings.hide else f" → {angle(scene.sines[-1])}"
    sent = {"": f"sends: {plain}", "mask": "sends: masked matrix"}.get(protection, f"({name})")
    waiting = [one.seconds for one in scene.findings[-1] if one.status is Status.NOT_TRIED]
    return Side(
        title=method.title,
        colour=settings.method,
        kind=f"{method.title} {sent}, {shape}",
        help=f"{method.stands_for}. {meaning}" if method.stands_for else meaning,
        protection=protection,
        message=frames(scene.message, len(scene.message[0])),
        components=frames(scene.components, 2),
        places=to_uint8(scene.places, -1.0, 1.0),
        off=[
            f"{degrees(sine):.0f}°{end} off" if k < scene.rounds else f"{angle(sine)} off"
            for k, sine in enumerate(scene.sines)
        ],
        stamp=f"{scene.records} of {scene.records}",
        note="stored" if scene.earlier else "exact",
        attack=f"≈ {lasting(max(waiting))}" if any(waiting) else "",
        since=scene.certified,
    )


def attack_on(scene: Scene, settings: SceneSettings) -> str:
    return f"attack on {who(settings, scene.facts)}"


def label(settings: SceneSettings) -> str:
    """A run in a few words: the method, and what differs from the way the page or step opens."""
    described, told = settings.parameters(), settings.story.get(settings.step, {})
    changed = [
        f"{SHORT[name]}{described[name].text(value)}"
        for name, value in settings.changed().items()
        if name in SHORT and not isinstance(value, tuple) and told.get(name) != value
    ]
    changed += ["secure sums"] * (settings.secure_aggregation and "secure_aggregation" not in told)
    changed += ["replayed"] * (
        settings.unmask and replayable(settings.method) and "unmask" not in told
    )
    what = METHODS[settings.method].title
    return ", ".join([what if settings.opponent is None else f"answer {what}", *changed])


def sentence(scene: Scene, settings: SceneSettings, k: int) -> str:
    answer = f"answer is off by {angle(scene.sines[k])}"
    if k == 0:
        return f"Nothing has been sent yet; its {answer}."
    if _answer_only(settings):
        return f"After {plural(k, 'message')} the {answer}."
    # Who takes part now and then sends fewer messages than there are rounds.
    step = plural(k, "message" if settings.participation == 1 else "round")
    both = " of both runs" * bool(settings.joined)
    return f"After {step}{both} the server {held(scene, settings, k)[0]}; its {answer}."


def held(scene: Scene, settings: SceneSettings, k: int) -> tuple[str, str, str]:
    """The findings after a round: in words that follow "the server", on the stage, and in one line
    below what the server holds."""
    (matrix, records), joined = scene.findings[k], bool(settings.joined)
    name, objects = who(settings, scene.facts), things(settings)
    if k == 0:
        return "has received nothing", "has received nothing", "Nothing has been sent yet."
    if records.status is Status.OPEN and records.figure is not None:
        whose = "that joined" if joined else f"of {name}"
        every = "has every newcomer" if joined else f"has every record of {name}"
        found = f"has all {records.figure.value:.0f}"
        return f"{found} {objects} {whose}, exactly", every, _exactly(scene, settings, k)
    if matrix.status is Status.PROVED_CLOSED:
        told = f"received nothing of {name}"
        return f"has {told}", f"nothing of {name} has been sent", f"Has {told}."
    summed = scene.findings[-1][0].target is Target.SUM
    whose = "what changed" if joined else "all clients together" if summed else name
    what, short_of = in_short(records), f"records: {in_short(records)}"
    if matrix.figure is None:
        if records.status is Status.NOT_TRIED and records.seconds:
            what = short_of = "harder attack not tried"
        none = f"reads no direction of {whose} in its masked messages; {short_of}"
        return none, f"masked; {short_of}", f"No {objects} read. {what.capitalize()}."
    directions = plural(np.round(matrix.figure.value), "direction")
    known = "the whole matrix" if matrix.status is Status.OPEN else directions
    released = ", as it was released with noise" * (scene.facts.guarantee is not None)
    return (
        f"has {known} of {whose}{released}; {short_of}",
        f"has {directions} of {whose}",
        f"Has {matrix.figure} of {whose}; {objects}: {what}.",
    )


def _exactly(scene: Scene, settings: SceneSettings, k: int) -> str:
    """That the server has all records, since when, and how it can be sure."""
    matrix, records = scene.findings[k]
    assert records.figure is not None
    found = f"Has all {records.figure.value:.0f}"
    since = [] if scene.certified is None else [f"since message {scene.certified}"]
    searched = matrix.attack != "" and ATTACKS[matrix.attack].searches
    if not searched and "no other whole" in records.basis and settings.problem in IMAGES:
        return f"{' '.join([found, *since])}: no other whole pixels fit."
    how = [f"by {ATTACKS[matrix.attack].title.lower()}"] * searched
    anew = "; stored, and being computed again" if scene.earlier else ""
    return f"{', '.join([found, 'exactly', *since, *how])}{anew}."


def _stage(scene: Scene, settings: SceneSettings, whole: Scene | None = None) -> Stage:
    protection, name, meaning = _protection(scene, settings)
    size = scene.upload_bytes / 1e3
    answers = (whole or scene).metrics["bytes_down"].iloc[-1] > 0
    return Stage(
        thumbnails=to_uint8(np.stack([mosaic(t, 2) for t in scene.thumbnails]), 0.0, 1.0),
        names=[
            scene.facts.label(number) if scene.facts.client_names else f"Client {number}"
            for number in range(scene.facts.clients)
        ],
        present=scene.present,
        attacked=settings.client,
        message=f"messages of {size:.3g} kB →",
        answer=f"← answer: {plural(settings.components, 'direction')}" if answers else "",
        server=[_server(scene, settings, k) for k in range(scene.rounds + 1)],
        summed=settings.secure_aggregation,
        protection=protection,
        protection_label=name,
        protection_help=meaning,
    )


def _protection(scene: Scene, settings: SceneSettings) -> tuple[str, str, str]:
    """The stage's protection, its name on it, and what it means."""
    means, sums = names("scene-protection"), settings.secure_aggregation
    if (guarantee := scene.facts.guarantee) is not None:
        budget = f"ε = {short(round(guarantee.epsilon, 2))}"
        name = f"noise, {budget}; only sums" if sums else f"noise at the source, {budget}"
        return "noise", name, f"{means['noise']} {guarantee.sentence()}"
    if sums:
        return "sums", "only sums pass", means["sums"]
    if replayable(settings.method):
        return "mask", "masked, heuristically", means["mask"]
    return "", "", ""


def _server(scene: Scene, settings: SceneSettings, k: int) -> str:
    told = held(scene, settings, k)[1]
    if k > 0 and _answer_only(settings):
        told = f"off by {angle(scene.sines[k])}"
    return told + f"\n{scene.metrics['bytes_up'].iloc[k] / 1e3:,.0f} kB received" * (k > 0)


def _truth(scene: Scene, settings: SceneSettings) -> Images:
    shown, many = len(scene.truth), f"{scene.records:,} {things(settings)}"
    which = many if shown == scene.records else f"{shown} of {many}"
    stamped = scene.other is not None and which == many  # two pictures beside it count them
    return sheet(
        f"{'Newcomers' if settings.joined else 'Records'} of {who(settings, scene.facts)}",
        scene.truth[None],
        ["Never sent" if stamped else f"{which}, never sent"],
        "The client's private records, side by side.",
        **_wide(scene),
        simulation_only=True,
    )


def _wide(scene: Scene) -> dict[str, Any]:
    return {"size": 360} if scene.other is None else {"columns": WIDE, "size": 640}


def _held(scene: Scene, settings: SceneSettings) -> list[Images]:
    return [
        sheet(
            "What the server holds"
            if scene.other is None
            else f"Server rebuilds ({METHODS[own.method].title})",
            one.pictures,
            [
                caption(*one.findings[k]) if scene.other is None else held(one, own, k)[2]
                for k in range(one.rounds + 1)
            ],
            "Directions of the client's second moments as pictures, or its records.",
            **_wide(scene),
        )
        for one, own in _sides(scene, settings)
    ]


def _learnt(scene: Scene) -> Images:
    """The answer as pictures, where a step does not show yet what leaks."""
    return sheet(
        "What all learn",
        scene.components,
        [f"off by {angle(sine)}" for sine in scene.sines],
        "The components of the answer as pictures.",
        palette="diverging",
        size=360,
        simulation_only=True,
    )


def _guess(guess: str | None, last: float) -> tuple[Mark, ...]:
    """The reader's guess; that it does not happen stands at the last value."""
    if guess is None:
        return ()
    if guess == NEVER:
        return (Mark(f"your guess: {NEVER}", last),)
    return (Mark("your guess", float(guess)),)


def _error(scene: Scene, settings: SceneSettings, rounds: int, guess: str | None) -> Panel:
    table = scene.metrics
    known = () if scene.certified is None else (Mark("records known", scene.certified),)
    x, method = table["round"], settings.method
    error, held = _degrees(table["sin_theta"]), _degrees(scene.held_error)
    curves = [Curve(METHODS[method].title, x, error, colour=method, dash="solid")]
    if _answer_only(settings):
        known = ()
    else:
        curves.append(Curve(attack_on(scene, settings), x, held, colour="series 4", dash="dot"))
    return Panel.of(
        "scene-error",
        curves,
        description="Error of the common subspace after every round, and of the matrix that the "
        f"server holds against that of {who(settings, scene.facts)}: degrees of the largest angle "
        "between subspaces, and of the angle between matrices.",
        x_range=(0, rounds),
        y_range=(min(float(error.min()), 0.2) / 2, 130),
        marks=known + _guess(guess, rounds),
    )


def _degrees(sines: Iterable[float]) -> Array:
    """Angles for an axis of powers of ten."""
    return np.array([max(degrees(sine), ROUNDING) for sine in sines])


def _angles(scene: Scene, settings: SceneSettings) -> Panel:
    """Both errors of both methods, in one unit."""
    curves = []
    for one, own in _sides(scene, settings):
        name, x = METHODS[own.method].title, one.metrics["round"]
        # Colours alone would not tell the methods apart for everybody.
        look: dict[str, Any] = {"colour": own.method, "marker": True}
        for what, sines, dash in (
            ("answer", one.sines, "solid"),
            ("attack", one.held_error, "dot"),
        ):
            angles = [degrees(sine) for sine in sines]
            curves.append(Curve(f"{what} {name}", x, angles, dash=dash, **look))
    return Panel.of(
        "scene-angles",
        curves,
        description="The largest angle between the common subspace and the true one (solid), and "
        "the angle between the matrix that the server holds and that of "
        f"{who(settings, scene.facts)} (dotted), after every message.",
        x_range=(0, scene.rounds),
    )


def _bytes(scene: Scene, settings: SceneSettings, whole: Scene) -> Panel:
    return Panel.of(
        "scene-bytes",
        tuple(
            Curve(
                METHODS[own.method].title,
                one.metrics["round"],
                one.metrics["bytes_up"] + one.metrics["bytes_down"],
                colour=own.method,
            )
            for one, own in _sides(scene, settings)
        ),
        x_range=(0, whole.rounds),
        y_range=(0, 1e6) if scene.rounds == 0 else None,
    )


def _price(scene: Scene, settings: SceneSettings, asking: bool, guess: str | None) -> Panel:
    assert scene.prices is not None
    noisy, free = scene.prices.iloc[:-1], degrees(scene.prices["sin_theta"].iloc[-1])
    error = _degrees(noisy["sin_theta"]) * (np.nan if asking else 1)
    last = float(noisy["epsilon"].iloc[-1])
    return Panel.of(
        "scene-price",
        (Curve("ε", noisy["epsilon"], error, colour=settings.method, marker=True),),
        baselines=() if asking else (Baseline("without noise", free),),
        x_range=(float(noisy["epsilon"].iloc[0]) * 0.8, last * 1.25),
        y_range=(min(free, 5) / 2, 130),
        marks=_guess(guess, last),
    )
