"""What is said of each study's result: what a sheet of paper is made of."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.findings import TARGETS
from fedpca_core.questions.anomaly import figures as anomaly
from fedpca_core.questions.attack.figures import covariance, records
from fedpca_core.questions.attack.reconstruction import Reconstructed
from fedpca_core.questions.attack.records.study import RecordsTaken
from fedpca_core.questions.check import figures as check
from fedpca_core.questions.converge import figures as converge
from fedpca_core.questions.home.scene import Scene
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.story import angle, who
from fedpca_core.questions.papers import page as papers
from fedpca_core.questions.personalise import figures as personalise
from fedpca_core.questions.privacy import figures as privacy
from fedpca_core.questions.theory import figures as theory
from fedpca_core.questions.trace import figures as trace
from fedpca_core.questions.which import figures as which
from fedpca_core.questions.which.recommendation import Advice, wish
from fedpca_core.questions.which.remedies import at_hand
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import plural
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import Part, Parts, names
from fedpca_core.study.pca_settings import AttackSettings


def _scene(scene: Scene, settings: SceneSettings) -> Parts:
    """The live picture in words: what is known when the run has ended, method by method."""
    rivals = {settings.method: scene}
    if scene.other is not None and settings.opponent is not None:
        rivals[settings.opponent] = scene.other
    yield f"What the server knows of {who(settings, scene.facts)}:"
    for method, found in rivals.items():
        known = " ".join(f"{TARGETS[one.target]}: {one.words}." for one in found.findings[-1])
        yield (
            f"**{METHODS[method].title}**, after {plural(found.rounds, 'round')}. {known} The "
            f"answer is off by {angle(found.sines[-1])} (simulation only)."
        )


def _advised(found: Advice, settings: FrontierSettings, data: OwnData | None = None) -> Parts:
    """The advice, and what is known without a search of what would do where nothing does."""
    yield from which.advice(found, settings, data)
    if not found.table.empty and found.place(1) is None:
        yield from which.would_do(at_hand(found, settings), settings)


def _stood_in(found: RecordsTaken, settings: AttackSettings) -> Parts:
    """The records; whose they are where digits stand in."""
    if found.stands_in:
        yield f"Of records, on digits ({found.facts.read}), which lie on a grid:"
    yield from records.records(found, settings)


def _reconstructed(found: Reconstructed, settings: AttackSettings) -> Parts:
    """The covariance, and of what."""
    for part in covariance.reconstructed(found, settings):
        yield f"Of the covariance ({found.facts.read}):\n" + part if isinstance(part, str) else part


def asked(settings: Any, data: str) -> str:
    """The question of a page with a visitor's settings in words; ``data`` are what they are of."""
    told, idle, values = settings.parameters(), settings.idle(), settings.as_dict()
    filled = {name: told[name].texts(getattr(settings, name)) for name in told}
    for name, one in told.items():
        if one.label.endswith("s") and type(values[name]) is int:
            filled[name] = plural(values[name], one.label[:-1].lower())
        elif name in ("unit", "values", "verdict", "sweep", "problem"):
            filled[name] = filled[name][:1].lower() + filled[name][1:]
    sizes = [name for name in ("clients", "samples", "features") if name in {*told} - {*idle}]
    if len(sizes) == 3:  # drawn as they are asked for
        each = plural(values["samples"], "record")
        data = f"{filled['clients']} of {each}, {filled['features']}"
    some = {name: text for name, text in names("asked-also").items() if name in settings.changed()}
    also = "".join(text.format(**filled) for text in some.values())
    wanted = wish(settings) if settings.kind == FrontierSettings.kind else ""
    asks = names("asked")
    said = asks.get(f"{settings.kind}-{values.get('view')}", asks[settings.kind])
    filled |= {"data": data or filled.get("problem", ""), "wanted": wanted}
    return f"{said.format(**filled)}{also}?"


#: From a result and its settings to parts, by the key of the study.
TOLD: Mapping[str, Callable[..., Iterable[Part]]] = {
    "scene": _scene,
    "recommendation": _advised,
    "remedies": which.would_do,
    "first_look": which.look,
    "convergence": lambda found, settings: [
        *converge.comparison(found, settings),
        *converge.costs(found, settings),
    ],
    "budgets": converge.budgets,
    "records": _stood_in,
    "reconstruction": _reconstructed,
    "replay": covariance.replayed,
    "defences": covariance.defended,
    "differencing": records.joined_record,
    "at_risk": records.risk_map,
    "noise_at_risk": records.risk_map,
    "leak_check": check.checked,
    "opened": trace.opened,
    "guarantee": privacy.guarantee,
    "private_run": privacy.private_run,
    "price_of_epsilon": privacy.price_of_budget,
    "price_of_products": privacy.price_of_products,
    "ways_to_spend": privacy.ways,
    "ways_over_budget": privacy.ways_over_budget,
    "error_budget": privacy.error_budget,
    "private_reconstruction": privacy.reconstruction,
    "record_membership": privacy.membership,
    "accountants": privacy.accountants,
    "fedpower_figure": privacy.paper_figure,
    "detection": anomaly.detection,
    "learning": anomaly.learning,
    "alarms": anomaly.alarms,
    "detection-costs": anomaly.costs,
    "leaks": anomaly.leaks,
    "poisoned": anomaly.poisoning,
    "detection-sweep": anomaly.sweeps,
    "personalised": personalise.comparison,
    "personalised-sweep": personalise.sweep,
    "personalised-exposure": personalise.exposure,
    "theory": theory.method,
    "theory-sweeps": theory.factors,
    "theory-verdicts": theory.statements,
    "paper-rows": papers.told,
}
#: Whose parts are said of a visitor's file too.
WITH_FILE = ("recommendation",)
