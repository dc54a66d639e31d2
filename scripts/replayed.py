"""Run the replay that the front page shows at once, and store what it found."""

import json
from dataclasses import asdict

from fedpca_core.questions.home.scene import FILE, LivePicture, outcome_of
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.steps import outcome


def main() -> None:
    """Write the file, some seconds later."""
    settings = SceneSettings(unmask=True).side("faps")
    scene = outcome(LivePicture().run(settings))
    assert scene is not None
    found = json.dumps(asdict(outcome_of(scene, settings)), ensure_ascii=False)
    FILE.write_text(f"{found}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
