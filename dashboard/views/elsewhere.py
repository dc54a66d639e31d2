"""The Attack page on methods whose uploads are models or eigenvectors, not products."""

from collections.abc import Callable, Mapping
from typing import Any

from dashboard.shell import jobs
from dashboard.shell.controls import Controls
from dashboard.shell.parts import lay_out
from fedpca_core.questions.anomaly import figures as anomaly
from fedpca_core.questions.attack.figures import records
from fedpca_core.questions.attack.sent_models import SentModel, SentModels, borrowed
from fedpca_core.questions.personalise import figures as personalise
from fedpca_core.settings import plural
from fedpca_core.study.parts import Caption, Part, Parts, words
from fedpca_core.study.pca_settings import AttackSettings

STUDY = SentModels()
#: Who sends what, and what the study of its page found, by method.
READ: Mapping[str, tuple[Callable[[Any], list[Part]], Callable[[Any, Any], Parts]]] = {
    "fedpg": (lambda small: [_clients(small), anomaly.THREAT], anomaly.leaks),
    "personal": (lambda small: [personalise.threat()], personalise.exposure),
    "one_shot": (lambda small: [words("attack-one-shot")], lambda found, small: iter(())),
}


def _clients(small: Any) -> Caption:
    name = small.parameters()["problem"].text(small.problem)
    return Caption(f"FedPG with {plural(small.clients, 'client')} on {name}.")


def show(controls: Controls[AttackSettings], data: object = None) -> dict[Any, Any]:
    """Choose another method and read its uploads, with the settings its own page explains."""
    controls.parameter("elsewhere", as_buttons=True)
    settings = controls.settings()
    if not STUDY.wanted(settings):
        return {}
    other = borrowed(settings)
    small = None if other is None else other[1]
    lead, read = READ[settings.elsewhere]
    lay_out(lead(small))

    def draw(found: SentModel) -> None:
        if found.read is not None:
            lay_out(read(found.read, small))
        if found.records is not None:
            lay_out(records.of_models(found.records))

    return {STUDY: jobs.study(STUDY, settings, draw).result}
