"""All studies and all kinds of settings: what pages, command line and downloads choose from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fedpca_core.errors import InvalidInput
from fedpca_core.problems.table_file import SUFFIXES
from fedpca_core.settings import Settings
from fedpca_core.studies.budgets import BudgetsAndHeterogeneity
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.study import LeakCheck
from fedpca_core.studies.convergence import Convergence, FromOneStart
from fedpca_core.studies.defences import Defences
from fedpca_core.studies.detection.alarms import Alarms
from fedpca_core.studies.detection.costs import Costs
from fedpca_core.studies.detection.detection import Detection
from fedpca_core.studies.detection.leaks import Leaks
from fedpca_core.studies.detection.learning import Learning
from fedpca_core.studies.detection.poisoned import AttackTypes, Poisoned
from fedpca_core.studies.detection.published import Published
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.detection.sweeps import Sweeps
from fedpca_core.studies.differencing import OneMoreRecord
from fedpca_core.studies.frontier.frontier import Frontier, Strip
from fedpca_core.studies.frontier.recommendation import Recommendation
from fedpca_core.studies.frontier.settings import FrontierSettings
from fedpca_core.studies.opened.opened import OpenedRun
from fedpca_core.studies.opened.settings import OpenedSettings
from fedpca_core.studies.own_table import OwnTable
from fedpca_core.studies.papers import faps, iot
from fedpca_core.studies.papers import personal as perpca
from fedpca_core.studies.papers.page import PaperExperiment, PaperRows, PapersSettings
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.studies.personalised.comparison import Comparison
from fedpca_core.studies.personalised.exposure import Exposure
from fedpca_core.studies.personalised.settings import PersonaliseSettings
from fedpca_core.studies.personalised.sweep import CollaborationSweep
from fedpca_core.studies.preset import Preset
from fedpca_core.studies.private import presets as spending
from fedpca_core.studies.private.accountants import Accountants
from fedpca_core.studies.private.convergence import PrivateRun
from fedpca_core.studies.private.error_budget import ErrorBudget
from fedpca_core.studies.private.figures import PaperFigure
from fedpca_core.studies.private.guarantee import Promise
from fedpca_core.studies.private.membership import RecordMembership
from fedpca_core.studies.private.price import PriceOfBudget, PriceOfProducts
from fedpca_core.studies.private.reconstruction import Reconstruction
from fedpca_core.studies.private.settings import PrivacySettings
from fedpca_core.studies.private.spending import WaysOverBudget, WaysToSpend
from fedpca_core.studies.reconstruction import ClientReconstruction
from fedpca_core.studies.records.at_risk import AtRisk, NoiseAtRisk
from fedpca_core.studies.records.study import ClientRecords
from fedpca_core.studies.recovery import Recovery
from fedpca_core.studies.replay import ReplayAttack
from fedpca_core.studies.scene import story
from fedpca_core.studies.scene.scene import LivePicture
from fedpca_core.studies.scene.settings import SceneSettings
from fedpca_core.studies.sent_models import SentModels
from fedpca_core.studies.study import Study, registered
from fedpca_core.studies.theory.bridge import Bridge
from fedpca_core.studies.theory.method import AgainstClaims
from fedpca_core.studies.theory.settings import TheorySettings
from fedpca_core.studies.theory.sweeps import PenaltyAndSteps
from fedpca_core.studies.theory.verdicts import Statements

#: How the names of a visitor's own files may end.
TABLE_SUFFIXES = SUFFIXES

#: Every study by key; those of one page follow each other in the order in which it shows them.
STUDIES: Mapping[str, Study[Any, Any]] = registered(
    LivePicture(),
    Convergence(),
    Frontier(),
    Strip(),
    Recommendation(),
    BudgetsAndHeterogeneity(),
    LeakCheck(),
    ClientRecords(),
    AtRisk(),
    NoiseAtRisk(),
    ClientReconstruction(),
    ReplayAttack(),
    Defences(),
    OneMoreRecord(),
    Recovery(),
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
    Comparison(),
    CollaborationSweep(),
    Exposure(),
    AgainstClaims(),
    PenaltyAndSteps(),
    Statements(),
    Bridge(),
    OpenedRun(),
    *(Detection(), Learning(), Alarms(), Costs(), Leaks(), Poisoned(), Sweeps(), Published()),
    PaperRows(),
    PaperExperiment(),
)

#: What a page asks before it can offer choices: shown nowhere, but run like a study.
OWN_TABLE, ATTACK_TYPES = OwnTable(), AttackTypes()
#: What workers can run, by key.
RUNNABLE: Mapping[str, Study[Any, Any]] = {
    **STUDIES,
    **registered(OWN_TABLE, ATTACK_TYPES, FromOneStart()),
}

#: The settings class of every page.
PAGES: tuple[type[Settings], ...] = (
    SceneSettings,
    ConvergeSettings,
    FrontierSettings,
    CheckSettings,
    AttackSettings,
    PrivacySettings,
    PersonaliseSettings,
    TheorySettings,
    AnomalySettings,
    OpenedSettings,
    PapersSettings,
)
#: Settings classes by the kind that files and links name.
KINDS: Mapping[str, type[Settings]] = {
    kind: settings for settings in PAGES for kind in (settings.kind, *settings.former_kinds)
}

#: Every preset by name, in the order in which they are listed.
PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        *(Preset(p.name, p.title, p.point, p.configuration()) for p in faps.PRESETS),
        *story.PRESETS,
        *perpca.PRESETS,
        *iot.PRESETS,
        *spending.PRESETS,
    )
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

    Raises
    ------
    InvalidInput
        Not a configuration file, an unknown kind, or a value that does not fit.
    """
    try:
        content = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        content = None
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        raise InvalidInput(
            "This is not a configuration file: it names no kind; use a file saved by this program "
            "or printed by “python -m fedpca_core config”."
        )
    kind = content["kind"]
    if kind not in KINDS:
        raise InvalidInput(
            f"There are no settings of kind “{kind[:40]}”; use one of {', '.join(KINDS)}."
        )
    return KINDS[kind].from_file(text)
