"""All studies and all kinds of settings: what pages, command line and downloads choose from."""

from collections.abc import Mapping
from typing import Any

from fedpca_core.errors import require
from fedpca_core.papers import faps, presets
from fedpca_core.problems.table_file import SUFFIXES
from fedpca_core.questions.anomaly.detection import Alarms, Costs, Detection
from fedpca_core.questions.anomaly.leaks import Leaks
from fedpca_core.questions.anomaly.learning import Learning, Sweeps
from fedpca_core.questions.anomaly.poisoned import AttackTypes, Poisoned
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.reconstruction import ClientReconstruction
from fedpca_core.questions.attack.records.at_risk import AtRisk, NoiseAtRisk
from fedpca_core.questions.attack.records.study import ClientRecords
from fedpca_core.questions.attack.replay import Defences, ReplayAttack
from fedpca_core.questions.attack.sent_models import SentModels
from fedpca_core.questions.check.study import LeakCheck
from fedpca_core.questions.converge.study import BudgetsAndHeterogeneity, Convergence
from fedpca_core.questions.home import story
from fedpca_core.questions.home.dials import DialCurves, NextSteps
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.papers.page import PaperExperiment, PaperRows
from fedpca_core.questions.personalise.exposure import Exposure
from fedpca_core.questions.personalise.study import CollaborationSweep, PersonalComparison
from fedpca_core.questions.privacy import settings as spending
from fedpca_core.questions.privacy.attacks import Reconstruction, RecordMembership
from fedpca_core.questions.privacy.error_budget import ErrorBudget
from fedpca_core.questions.privacy.guarantee import Accountants, Promise
from fedpca_core.questions.privacy.study import (
    PaperFigure,
    PriceOfBudget,
    PriceOfProducts,
    PrivateRun,
    WaysOverBudget,
    WaysToSpend,
)
from fedpca_core.questions.theory.study import AgainstClaims, PenaltyAndSteps, Statements
from fedpca_core.questions.trace.opened import OpenedRun
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.look import FirstLook
from fedpca_core.questions.which.recommendation import Recommendation
from fedpca_core.questions.which.remedies import Remedies
from fedpca_core.settings import Settings, read_json, said
from fedpca_core.study.own_table import OwnTable
from fedpca_core.study.preset import Preset
from fedpca_core.study.study import Study, registered

#: How the names of a visitor's own files may end.
TABLE_SUFFIXES = SUFFIXES

#: Every study by key; those of one page follow each other in the order in which it shows them.
STUDIES: Mapping[str, Study[Any, Any]] = registered(
    LivePicture(),
    Convergence(),
    Frontier(),
    Recommendation(),
    Remedies(),
    FirstLook(),
    BudgetsAndHeterogeneity(),
    LeakCheck(),
    ClientRecords(),
    AtRisk(),
    NoiseAtRisk(),
    ClientReconstruction(),
    ReplayAttack(),
    Defences(),
    OneMoreRecord(),
    SentModels(),
    Promise(),
    PrivateRun(),
    PriceOfBudget(),
    PriceOfProducts(),
    WaysToSpend(),
    WaysOverBudget(),
    ErrorBudget(),
    Reconstruction(),
    RecordMembership(),
    Accountants(),
    PaperFigure(),
    PersonalComparison(),
    CollaborationSweep(),
    Exposure(),
    AgainstClaims(),
    PenaltyAndSteps(),
    Statements(),
    OpenedRun(),
    *(Detection(), Learning(), Alarms(), Costs(), Leaks(), Poisoned(), Sweeps()),
    PaperRows(),
    PaperExperiment(),
)

#: What a page asks before it can offer choices, or beside them: run like a study.
OWN_TABLE, ATTACK_TYPES = OwnTable(), AttackTypes()
DIAL_CURVES, NEXT_STEPS = DialCurves(), NextSteps()
#: What workers can run, by key.
RUNNABLE: Mapping[str, Study[Any, Any]] = {
    **STUDIES,
    **registered(OWN_TABLE, ATTACK_TYPES, DIAL_CURVES, NEXT_STEPS),
}

#: Settings classes by the kind that files and links name, and all of them: one a page.
KINDS: Mapping[str, type[Settings]] = {
    study.settings.kind: study.settings for study in STUDIES.values()
}
PAGES = tuple(KINDS.values())

#: Every preset by name, in the order in which they are listed.
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (*faps.PRESETS, *story.PRESETS, *presets.PERPCA, *presets.IOT, *spending.PRESETS)
}


def studies_of(settings: Settings) -> list[Study[Any, Any]]:
    """The studies that the page shows with these settings."""
    return [
        study
        for study in STUDIES.values()
        if study.settings is type(settings) and study.wanted(settings)
    ]


def read_settings(text: str) -> Settings:
    """The settings of a configuration file of any kind, strictly.

    Raises InvalidInput: not a configuration file, an unknown kind, or a value that does not fit.
    """
    content = read_json(text)
    kind: Any = content.get("kind") if isinstance(content, dict) else None
    require(
        isinstance(kind, str),
        "This is not a configuration file: it names no kind; use a file saved by this program or "
        "printed by “python -m fedpca_core config”.",
    )
    require(
        kind in KINDS,
        f"There are no settings of kind “{said(kind)}”; use one of {', '.join(KINDS)}.",
    )
    return KINDS[kind].from_file(text)
