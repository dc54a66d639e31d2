"""The live picture in words, for a sheet of paper."""

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.findings import TARGETS
from fedpca_core.questions.home.scene import Scene
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.words import angle, who
from fedpca_core.settings import plural
from fedpca_core.study.parts import Parts


def told(scene: Scene, settings: SceneSettings) -> Parts:
    """What is known when the run has ended, method by method."""
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
