"""From privacy settings to data, method, noise, guarantee and a run."""

import math
from dataclasses import replace
from typing import cast

import numpy as np

from fedpca_core.algorithms import DistributedPower, FedPower, Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import IntArray
from fedpca_core.errors import require
from fedpca_core.guarantee import CLIENT, RECORD, Unit
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.privacy import CALIBRATIONS, Guarantee, Refusal, accounting, product_noise
from fedpca_core.problems import Problem, Trust, block_model, spiked_covariance
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.images import LIVE_RESOLUTION, images
from fedpca_core.problems.perturbation import Budget, source_guarantee
from fedpca_core.problems.records import normalise
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation, setting_of
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import task
from fedpca_core.questions.privacy.settings import REAL, PrivacySettings
from fedpca_core.remembered import Remembered
from fedpca_core.steps import Part, Step
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import own_problem
from fedpca_core.study.parts import names
from fedpca_core.study.pca_settings import IMAGES, ConvergeSettings
from fedpca_core.study.study import content_key

#: Numbers to draw for one data set; more would take longer than a visitor waits.
LARGEST_DATA = 250_000_000
#: Strong directions of the data, whatever number of components is sought.
DIRECTIONS = 4
#: Fields that the data depend on.
_PROBLEM_FIELDS = (
    "problem", "features", "clients", "samples", "networks", "treatment", "clip_norm", "seed",
    "client_column", "columns", "scaling", "missing",
)  # fmt: skip
_PROBLEMS: Remembered[Problem] = Remembered(4)
#: Why settings are refused.
REFUSED = names("privacy-refused")


# ---------------------------------------------------------------------- data
def samples(settings: PrivacySettings) -> int:
    """Records of each client, where they are drawn."""
    blocks = settings.problem == "blocks"
    return settings.features * settings.networks if blocks else settings.samples


def treatment(settings: PrivacySettings) -> tuple[str, float]:
    """What is done to records, and at which norm; Model II and "distinct" are normalised."""
    c = settings
    if c.problem in REAL:
        return "clipped", c.clip_norm
    return (c.treatment, c.clip_norm) if c.problem == "spiked" else ("normalised", 1.0)


def build_problem(settings: PrivacySettings, data: OwnData | None = None) -> Problem:
    """The data of the settings, as a method with noise on its products meets them.

    Drawn records are bounded where they are made. Real ones are clipped under a finite ε, and
    centred on a noisy mean, one for all repetitions.

    Raises InvalidInput: as `records`.
    """
    return bounded(settings, records(settings, data), settings.seed)


def bounded(settings: PrivacySettings, problem: Problem, seed: int) -> Problem:
    """The records as noise on products needs them; drawn ones are bounded already."""
    if settings.problem not in REAL or math.isinf(settings.epsilon):
        return problem
    return problem.bounded(budget(settings), Streams(seed))


def private(settings: PrivacySettings, problem: Problem, seed: int) -> Problem:
    """The problem with noise at the source, drawn from ``seed``."""
    return problem.private(streams=Streams(seed), **vars(budget(settings)))


def records(settings: PrivacySettings, data: OwnData | None = None) -> Problem:
    """The data of the settings without noise, real ones prepared as a finite ε demands; remembered.

    Raises InvalidInput: more numbers than a visitor waits for, or no file where the settings ask
    for one.
    """
    c, real = settings, settings.problem in REAL
    prepared = math.isfinite(c.epsilon) if real else None
    key = prepared, content_key(c, _PROBLEM_FIELDS, data if c.problem == "table" else None)
    return _PROBLEMS.get(key, lambda: _real(c, data) if real else _drawn(c))


def _real(c: PrivacySettings, data: OwnData | None) -> Problem:
    if c.problem == "table":
        return own_problem(c, data)
    if c.problem in IMAGES:
        shape = LIVE_RESOLUTION[c.problem]
        return images(c.problem, clients=c.clients, seed=c.seed, resolution=shape)
    return task(replace(c.carried(AnomalySettings), split="iid", standardising="centre")).problem


def _drawn(c: PrivacySettings) -> Problem:
    numbers = c.features * c.clients * samples(c)
    told = {"records": samples(c), "numbers": numbers, "most": LARGEST_DATA}
    require(numbers <= LARGEST_DATA, REFUSED["large"].format(c=c, **told))
    if c.problem == "blocks":
        return block_model(c.features, c.clients, c.networks, c.seed)
    if c.problem == "distinct":
        return distinct_clients(c.features, c.samples, c.clients, DIRECTIONS, c.seed)
    kind, norm = treatment(c)
    return spiked_covariance(
        c.features, c.samples, c.clients, DIRECTIONS, treatment=kind, clip_norm=norm, seed=c.seed
    )


def public_setting(settings: PrivacySettings, data: OwnData | None = None) -> Setting:
    """What everybody knows about the run; sizes of real clients are public, the rest is drawn."""
    c = settings
    kind, norm = treatment(c)
    if c.problem not in REAL:
        return even_setting(c.features, c.clients, samples(c), None if kind == "raw" else norm)
    setting = replace(setting_of(records(c, data)), record_norm=None, own_moments=False)
    if math.isinf(c.epsilon):
        return setting
    return replace(setting, record_norm=norm, paid_mean=budget(c).paid_mean(setting.samples))


def even_setting(features: int, clients: int, records: int, norm: float | None) -> Setting:
    """What everybody knows of clients of one size whose records are bounded by ``norm``."""
    sizes = np.full(clients, records, dtype=np.int64)
    return Setting(features, clients, sizes, np.full(clients, 1.0 / clients), record_norm=norm)


# ---------------------------------------------------------------------- budget
def unit(settings: PrivacySettings) -> Unit:
    return {"record": RECORD, "person": Unit(settings.held), "client": CLIENT}[settings.unit]


def trust(settings: PrivacySettings) -> Trust | None:
    """On whom the clients rely; None where each adds all its noise."""
    return Trust(settings.colluding, settings.dropouts) if settings.trusted == "clients" else None


def budget(settings: PrivacySettings) -> Budget:
    """The budget that is set, a noisy mean included where the records are centred."""
    c = settings
    centred = c.scaling == "centre" if c.problem == "table" else c.problem in REAL
    mean = c.mean_share if centred else 0.0, c.mean_clip
    return Budget(c.epsilon, c.delta, treatment(c)[1], unit(c), trust(c), *mean)


# ---------------------------------------------------------------------- method
def plain(settings: PrivacySettings) -> Algorithm:
    """The method that is set, without noise of its own."""
    entry = METHODS[settings.method]
    if entry.make_private is not None:
        return entry.make_private(settings)
    return entry.make(settings.carried(ConvergeSettings))


def method(settings: PrivacySettings, noise: float) -> Algorithm:
    """The method that is set, with noise nu on every product (0: none).

    Methods that cannot be accounted ignore nu; their noise is the channel's, see `channel`.
    """
    made, c = plain(settings), settings
    shared = c.trusted == "clients" and accountable(c) and noise > 0
    if shared and made.plans_products:
        require(c.local_steps == 1 and not c.draws and not c.public_reference, REFUSED["shared"])
        made = DistributedPower(made.width, products=c.products)
    if made.plans_products:
        return replace(cast(FedPower, made), noise=noise)
    return accounting.noisy(made, noise, c.products, summed=shared) if accountable(c) else made


def accountable(settings: PrivacySettings) -> bool:
    """Whether an epsilon can be stated for the method that is set."""
    return bool(METHODS[settings.method].accounts)


def rounds(settings: PrivacySettings) -> int:
    """Communications of the run that is set."""
    return method(settings, 0.0).rounds or settings.products


def channel(settings: PrivacySettings) -> Channel:
    """The channel: masking noise for methods that cannot be accounted."""
    mask = 0.0 if accountable(settings) else settings.upload_noise
    summed = settings.trusted == "clients" and math.isfinite(settings.epsilon)
    return Channel(upload_noise=mask, record="estimates", secure_aggregation=summed)


# ---------------------------------------------------------------------- noise and guarantee
def columns(settings: PrivacySettings) -> int:
    """r, columns of every frame that a client multiplies."""
    return settings.components + settings.surplus * METHODS[settings.method].plans_products


def protected(settings: PrivacySettings, public: Setting) -> IntArray:
    """Records of each client that are not public."""
    return public.samples[plain(settings).protected(public.clients)]


def several(settings: PrivacySettings, public: Setting) -> float:
    """Records of one client, at most, that the unit replaces."""
    return float(budget(settings).changed(protected(settings, public)).max())


def kinds(settings: PrivacySettings) -> tuple[str, ...]:
    """Kinds of noise that the budget can buy for the method, the one that is set first.

    On every product where that is accounted, published only where noise is not shared; at the
    source for every method.
    """
    c = settings
    if math.isinf(c.epsilon):
        return ()
    on_products = CALIBRATIONS if c.trusted == "nobody" else ("exact",)
    some = (*(on_products if accountable(c) else ()), "source")
    return tuple(sorted(some, key=lambda kind: kind != c.calibration))


def noise_for(
    settings: PrivacySettings,
    calibration: str | None = None,
    epsilon: float | None = None,
    data: OwnData | None = None,
) -> float:
    """nu on every product, of a client with the mean number of records; 0 at ε = ∞.

    By default for the budget and the calibration that are set; 0 where products carry none. What is
    left of the budget once a noisy mean is paid for is spread over the products.
    """
    c = settings if epsilon is None else replace(settings, epsilon=epsilon)
    kind = calibration or c.calibration
    if math.isinf(c.epsilon) or kind == "source" or not accountable(c):
        return 0.0
    public, bought = public_setting(c, data), budget(c)
    times = several(c, public)
    if c.trusted == "clients":
        run = cast(Noisy, method(c, 1.0))
        alone, left = replace(public, paid_mean=None), bought.for_products
        enough = accounting.within(
            run, alone, left, c.delta, clip_norm=bought.clip, trust=bought.trust
        )
        return times * enough.noise
    count, width = c.products, columns(c)
    if kind == "exact" and method(replace(c, calibration="exact"), 0.0).one_release:
        count, width = 1, 2
    left, mean = bought.for_products, public.samples.mean()
    return times * float(product_noise(kind, left, c.delta, count, width, mean, bought.clip))


def refusal(settings: PrivacySettings) -> Refusal:
    """Why no epsilon can be stated for the method that is set."""
    return accounting.refusal(plain(settings), METHODS[settings.method].title)


def stated(settings: PrivacySettings, data: OwnData | None = None) -> Guarantee | Refusal:
    """The guarantee of the run that is set, or why there is none.

    Raises InvalidInput: raw records with noise on: their norm has no bound.
    """
    c, public = settings, public_setting(settings, data)
    run = method(c, noise_for(c, data=data))
    run.check(public)
    at_source = c.calibration == "source" and math.isfinite(c.epsilon)
    if not accountable(c) and not at_source:
        return refusal(c)
    require(treatment(c)[0] != "raw" or math.isinf(c.epsilon), REFUSED["raw"])
    if at_source:
        return source_guarantee(public.samples, public.weights, budget(c), public.public)[1]
    return accounted(c, run, public)


def accounted(settings: PrivacySettings, run: Algorithm, public: Setting) -> Guarantee | Refusal:
    """What noise on the products of a run guarantees the unit that is set."""
    c, kept = settings, run.protected(public.clients)
    largest, norm = int(kept[np.argmax(public.samples[kept])]), treatment(c)[1]
    found = accounting.account(
        run, public, delta=c.delta, clip_norm=norm, client=largest, trust=trust(c)
    )
    return found.for_unit(unit(c), int(public.samples[largest]))


def require_single_uploads(settings: PrivacySettings) -> None:
    """Refuse to look at single clients' messages where they share noise, and sums hide them."""
    require(settings.trusted == "nobody", REFUSED["sums"])


def require_bound(settings: PrivacySettings) -> None:
    """Refuse raw records, whose norms have no bound."""
    require(treatment(settings)[0] != "raw", REFUSED["unbounded"])


def distinct_clients(
    features: int = 40, samples: int = 500, clients: int = 20, components: int = 4, seed: int = 0
) -> Problem:
    """Clients that differ: common strong directions and private ones, records of norm 1.

    In Model I every S_i is within a few per cent of S, so a small reconstruction error proves
    nothing; here the public guess S misses a client by about a half.
    """
    streams = Streams(seed)
    common = uniform_frame(streams.generator("data"), features, components)
    grams = np.zeros((clients, features, features))
    for client in range(clients):
        generator = streams.generator("data", client + 1)
        own = uniform_frame(generator, features, components)
        records = normalise(
            common @ generator.standard_normal((components, samples))
            + own @ generator.standard_normal((components, samples))
            + 0.3 * generator.standard_normal((features, samples))
        )
        grams[client] = records @ records.T / samples
    return Problem(
        name="distinct clients",
        client_data=ClientData.from_grams(grams, np.full(clients, samples)),
        note=f"{components} common and {components} private directions a client; "
        "records normalised at norm 1.",
        record_norm=1.0,
    )


# ---------------------------------------------------------------------- a run
def run_seeds(seed: int, count: int) -> list[int]:
    """Seeds of repeated runs; the data keep the first."""
    return [seed + 1009 * index for index in range(count)]


def communication_times(algorithm: FedPower) -> IntArray:
    """Local products finished at each communication, the start (0) first."""
    times = (0, *algorithm.times)
    return np.array(times if times[-1] == algorithm.products else (*times, algorithm.products))


def traced(
    problem: Problem, run: Algorithm, rounds: int, seed: int, wire: Channel, text: str
) -> Part[Trace]:
    """One run, with a step after each communication."""
    simulation = Simulation(problem, run, rounds=rounds, seed=seed, channel=wire)
    for entry in simulation:
        yield Step(entry.index / rounds, text)
    return simulation.trace()
