"""Synthetic device traffic with labelled attacks, for when no real data are at hand.

The logarithms of a device's counters follow a few shared factors (how busy it is, upload against
download, ...) plus small independent noise; counters are their exponentials and therefore
heavy-tailed like real ones. Attacks break the relations between counters in four ways.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.problems.traffic_files import Traffic
from fedpca_core.streams import Streams

FEATURES = (
    *("duration", "packets_out", "packets_in", "bytes_out", "bytes_in", "mean_size_out"),
    *("mean_size_in", "gap_out", "gap_in", "jitter_out", "jitter_in", "retransmissions"),
    *("handshake_time", "flows_same_service", "flows_same_target", "distinct_ports"),
    *("distinct_targets", "dns_queries", "dns_name_length", "failed_logins", "http_requests"),
    *("response_size", "tls_records", "idle_time"),
)

_FACTORS = 6
_NOISE = 0.25
#: Width of the logarithms: counters then stay positive and span a few powers of ten.
_SPREAD = 0.4


def synthetic(normal: int = 12_000, test: int = 8_000, seed: int = 0) -> Traffic:
    """Draw traffic of many devices: normal training records, and a labelled test set.

    ``normal``: Normal training records.
    ``test``: Test records; half of them attacks, equally of the types flood, scan, exfiltration and
        beacon.

    ``flood`` scales the shared factors up (large, but shaped like normal traffic: the length of a
    record finds it and the distance to the subspace hardly does); ``scan`` pushes ports and targets
    up without the packets that belong to them; ``exfiltration`` sends much and receives little;
    ``beacon`` is small and regular and breaks several relations slightly.
    """
    require(
        normal >= 100 and test >= 40,
        f"{normal} training and {test} test records are too few; draw at least 100 and 40.",
    )
    generator = Streams(seed).generator("data", 0)
    features = len(FEATURES)
    loadings = generator.standard_normal((features, _FACTORS)) * np.linspace(1.3, 0.6, _FACTORS)
    level = generator.uniform(4.0, 8.0, features) / _SPREAD

    def logarithms(count: int) -> tuple[Array, Array]:
        factors = generator.standard_normal((count, _FACTORS))
        noise = _NOISE * generator.standard_normal((count, features))
        return level + factors @ loadings.T + noise, factors

    column = {name: index for index, name in enumerate(FEATURES)}
    each = test // 8
    flood, factors = logarithms(each)
    flood += (1.2 * factors) @ loadings.T
    scan, _ = logarithms(each)
    scan[:, [column["distinct_ports"], column["distinct_targets"]]] += generator.normal(
        1.6, 0.5, (each, 2)
    )
    exfiltration, _ = logarithms(each)
    exfiltration[:, [column["bytes_out"], column["mean_size_out"]]] += generator.normal(
        1.2, 0.4, (each, 1)
    )
    exfiltration[:, column["bytes_in"]] -= 1.0
    beacon, _ = logarithms(each)
    beacon += 0.32 * generator.standard_normal((each, features))
    attacks = {"flood": flood, "scan": scan, "exfiltration": exfiltration, "beacon": beacon}
    calm, _ = logarithms(test - 4 * each)
    training, _ = logarithms(normal)
    types = np.repeat(
        np.array(["normal", *attacks], dtype=object), [len(calm), *([each] * len(attacks))]
    )
    return Traffic(
        name="Synthetic traffic",
        feature_names=FEATURES,
        normal=_counters(training),
        split_key="packets_out",
        test=_counters(np.concatenate([calm, *attacks.values()])),
        attack=types != "normal",
        types=types,
        note=f"Synthetic: drawn by this program, not measured. The logarithms of {features} "
        f"counters follow {_FACTORS} shared factors; four kinds of attack break their relations.",
    )


def _counters(logarithms: Array) -> Array:
    """Counters whose log(1 + x) is the given number, up to the common width; never negative."""
    return np.asarray(np.expm1(np.maximum(_SPREAD * logarithms, 0.0)))
