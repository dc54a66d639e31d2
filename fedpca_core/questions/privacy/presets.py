"""One table for each size and each real data set: all ways to spend one ε, side by side."""

from dataclasses import replace

from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.study.preset import Preset

#: FAPS stands for the methods that have an ε only at the source; ten seeds.
_WAYS = PrivacySettings(view="ways", method="faps", repetitions=10)
#: Features and records of each client of Model I.
SIZES = tuple((features, records) for records in (30_000, 2_000) for features in (40, 100, 200))
#: Real records with clip norms that suit their units: most records around their mean are shorter.
_REAL = {
    "digits": replace(_WAYS, problem="digits", clip_norm=3.0, mean_clip=5.0),
    "garments": replace(_WAYS, problem="fashion_mnist", clip_norm=5.0, mean_clip=10.0),
    "faces": replace(_WAYS, problem="olivetti", clip_norm=3.0, mean_clip=10.0),
    "traffic": replace(_WAYS, problem="auto", clip_norm=10.0, mean_clip=20.0),
}

PRESETS = (
    *(
        Preset(
            f"ways-{features}-{records}",
            f"Ways to spend ε: {features} features, {records:,} records",
            "A noisy covariance in one round beats noise on every product; noise that is shared "
            "beats both.",
            replace(_WAYS, features=features, samples=records),
        )
        for features, records in SIZES
    ),
    *(
        Preset(
            f"ways-{name}",
            f"Ways to spend ε: {name}",
            "Records as they come: clipped, centred on a noisy mean that is paid for.",
            settings,
        )
        for name, settings in _REAL.items()
    ),
)
