"""Drawing the live picture: clients, messages, server; the truth beside what the server holds."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dashboard.player import Curve, Images, Panel, Run, Stage, replay, to_uint8
from dashboard.shell.controls import Controls
from dashboard.views.pictures import mosaic
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.settings import short
from fedpca_core.studies.scene.scene import Scene
from fedpca_core.studies.scene.settings import SceneSettings

#: Below this a curve shows rounding only.
ROUNDING = 1e-16
#: Parameters as a legend names them.
SHORT = {
    "clients": "clients ",
    "heterogeneity": "heterogeneity ",
    "penalty_factor": "β ",
    "epsilon": "ε ",
    "participation": "participation ",
    "problem": "",
    "records_per_client": "records ",
    "components": "components ",
    "rounds": "rounds ",
    "seed": "seed ",
}
THINGS = {"digits": "digits", "olivetti": "faces"}


def parameters(controls: Controls[SceneSettings]) -> None:
    """The parameters in one row; on a phone a sheet that opens beside the picture."""
    with st.container(key="scene_sheet"):
        st.toggle("Parameters", key="sheet_open", on_change="ignore")
        with st.container(
            horizontal=True, gap="small", vertical_alignment="bottom", key="scene_row"
        ):
            controls.draw("method", "clients", "heterogeneity", "penalty_factor")
            controls.draw("epsilon", "participation")
            with st.popover("More", icon=":material/tune:", width="stretch"):
                controls.draw("problem", "records_per_client", "components", "rounds", "client")
                controls.parameter("secure_aggregation")
                controls.parameter("absent", disabled=controls.values["participation"] == 1)
                noiseless = controls.values["epsilon"] == math.inf
                controls.draw("delta", "clip_norm", disabled=noiseless)
                controls.parameter("seed")


def draw(scene: Scene, settings: SceneSettings) -> None:
    """The whole picture, playing when it opens."""
    replay(
        key="scene",
        rounds=scene.rounds,
        stage=_stage(scene, settings),
        images=[[_truth(scene, settings), _held(scene, settings)]],
        panels=[_error(scene, settings), _bytes(scene, settings)],
        sentences=[sentence(scene, settings, k) for k in range(scene.rounds + 1)],
        autoplay=True,
        run=Run(settings.run_key().to_json(), label(settings)),
    )


def label(settings: SceneSettings) -> str:
    """A run in a few words: the method, and what differs from the way the page opens."""
    described = settings.parameters()
    changed = [
        f"{SHORT[name]}{described[name].text(value)}"
        for name, value in settings.changed().items()
        if name in SHORT and not isinstance(value, tuple)
    ]
    if settings.secure_aggregation:
        changed.append("secure sums")
    return ", ".join([METHODS[settings.method].title, *changed])


def sentence(scene: Scene, settings: SceneSettings, k: int) -> str:
    """What has just happened, in one sentence."""
    title = METHODS[settings.method].title
    error = float(scene.metrics["sin_theta"].iloc[k])
    held = int(scene.directions[k])
    who, things = f"client {settings.client + 1}", _things(settings)
    answer = f"the answer is off by {_angle(error)}"
    if k == 0:
        return f"Nothing has been sent yet: {answer}, and the server holds nothing of anybody."
    after = f"After {k} {'message' if k == 1 else 'messages'}"
    if scene.certified is not None and k >= scene.certified:
        return f"{after} the server has all {scene.records} {things} of {who}, exactly; {answer}."
    if scene.facts.guarantee is not None:
        return f"{after} {answer}; of {who} the server holds {held} noisy directions and no record."
    if scene.attack == "sums":
        return f"{after} {answer}; the server has seen sums only: {held} directions of all clients."
    if scene.attack == "linear":
        return f"{after} {answer}; read as products, {title}'s masked messages are noise."
    if scene.attack == "nothing" or held == 0:
        return f"{after} {answer}; {who} has not sent anything yet."
    return (
        f"{after} {answer}; the server holds {held} directions of {who}'s {scene.records} {things}."
    )


def _angle(sine: float) -> str:
    """The largest angle to the true subspace, in degrees while one can see it."""
    degrees = math.degrees(math.asin(min(max(sine, 0.0), 1.0)))
    return f"{degrees:.1f}°" if degrees >= 0.05 else f"{degrees:.0e}°".replace("e-0", "e-")


def _things(settings: SceneSettings) -> str:
    return THINGS.get(settings.problem, "images")


def _stage(scene: Scene, settings: SceneSettings) -> Stage:
    protection, label = _protection(scene, settings)
    size = scene.upload_bytes / 1e3
    return Stage(
        thumbnails=to_uint8(np.stack([mosaic(t, 2) for t in scene.thumbnails]), 0.0, 1.0),
        names=[f"Client {number + 1}" for number in range(scene.facts.clients)],
        present=scene.present,
        attacked=settings.client,
        message=f"{size:.3g} kB a message",
        server=[_server(scene, settings, k) for k in range(scene.rounds + 1)],
        protection=protection,
        protection_label=label,
    )


def _protection(scene: Scene, settings: SceneSettings) -> tuple[str, str]:
    guarantee = scene.facts.guarantee
    if guarantee is not None:
        return "noise", f"noise at the source, ε = {short(round(guarantee.epsilon, 2))}"
    if settings.secure_aggregation:
        return "sums", "only sums pass"
    if scene.attack == "linear":
        return "mask", "masked, heuristically"
    return "", ""


def _server(scene: Scene, settings: SceneSettings, k: int) -> str:
    who = f"client {settings.client + 1}"
    sent = float(scene.metrics["bytes_up"].iloc[k]) / 1e3
    if k == 0:
        return "has received nothing"
    if scene.certified is not None and k >= scene.certified:
        return f"has every record of {who} · {sent:,.0f} kB received"
    what = "all clients together" if scene.attack == "sums" else who
    return f"holds {int(scene.directions[k])} directions of {what} · {sent:,.0f} kB received"


def _truth(scene: Scene, settings: SceneSettings) -> Images:
    return Images(
        f"Client {settings.client + 1}'s records",
        to_uint8(mosaic(scene.truth)[None], 0.0, 1.0),
        palette="grey",
        simulation_only=True,
        size=360,
        show_scale=False,
        captions=[f"{scene.records} {_things(settings)}, never sent"],
        description="The client's private records, side by side.",
    )


def _held(scene: Scene, settings: SceneSettings) -> Images:
    captions = []
    for k in range(scene.rounds + 1):
        exact = scene.certified is not None and k >= scene.certified
        if exact:
            captions.append(f"certified: all {scene.records}, to the last grey level")
        elif scene.directions[k] == 0:
            captions.append("nothing yet")
        else:
            captions.append(f"{int(scene.directions[k])} directions, drawn as pictures; no record")
    return Images(
        "What the server holds",
        to_uint8(np.stack([mosaic(picture) for picture in scene.pictures]), 0.0, 1.0),
        palette="grey",
        size=360,
        show_scale=False,
        captions=captions,
        description="Directions of the client's second moments as pictures, or its records.",
    )


def _error(scene: Scene, settings: SceneSettings) -> Panel:
    table = scene.metrics
    return Panel(
        key="scene-error",
        title="Error of the answer, as a sine",
        x_title="communication round",
        y_title="sine of the largest angle",
        curves=(
            Curve(
                METHODS[settings.method].title,
                table["round"],
                np.maximum(table["sin_theta"], ROUNDING),
                colour=settings.method,
            ),
        ),
        description="Error of the common subspace after every round.",
        integer_x=True,
        compact=True,
        simulation_only=True,
    )


def _bytes(scene: Scene, settings: SceneSettings) -> Panel:
    table = scene.metrics
    return Panel(
        key="scene-bytes",
        title="Bytes on the wire, both ways",
        x_title="communication round",
        y_title="bytes",
        curves=(
            Curve(
                METHODS[settings.method].title,
                table["round"],
                table["bytes_up"] + table["bytes_down"],
                colour=settings.method,
            ),
        ),
        description="What all clients and the server have sent each other after every round.",
        log_y=False,
        integer_x=True,
        compact=True,
    )
