"""What is said of each study's result: what a sheet of paper is made of."""

from collections.abc import Callable, Iterable, Mapping

from fedpca_core.questions.anomaly import figures as anomaly
from fedpca_core.questions.attack.figures import covariance, newcomer, records, replay, risk
from fedpca_core.questions.check import figures as check
from fedpca_core.questions.converge import figures as converge
from fedpca_core.questions.home.told import told
from fedpca_core.questions.papers import page as papers
from fedpca_core.questions.personalise import figures as personalise
from fedpca_core.questions.privacy import figures as privacy
from fedpca_core.questions.theory import figures as theory
from fedpca_core.questions.trace import figures as trace
from fedpca_core.questions.which import figures as which
from fedpca_core.study.parts import Part

#: From a result and its settings to parts, by the key of the study.
TOLD: Mapping[str, Callable[..., Iterable[Part]]] = {
    "scene": told,
    "recommendation": which.advice,
    "remedies": lambda found, settings: which.would_do(found.remedies, settings),
    "first_look": which.look,
    "convergence": lambda found, settings: [
        *converge.comparison(found, settings),
        *converge.costs(found, settings),
    ],
    "budgets": converge.budgets,
    "records": records.records,
    "reconstruction": covariance.reconstructed,
    "replay": replay.replayed,
    "defences": replay.defended,
    "differencing": newcomer.joined_record,
    "at_risk": risk.at_risk,
    "noise_at_risk": risk.noise_at_risk,
    "leak_check": check.checked,
    "opened": trace.opened,
    "guarantee": privacy.guarantee,
    **privacy.FIGURES,
    "detection": anomaly.detection,
    "learning": anomaly.learning,
    "alarms": anomaly.alarms,
    "detection-costs": anomaly.costs,
    "leaks": anomaly.leaks,
    "poisoned": anomaly.poisoning,
    "detection-sweep": anomaly.sweeps,
    "published": anomaly.published,
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
