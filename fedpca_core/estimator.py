"""Federated PCA with scikit-learn's face: ``fit(X, groups=site)``, records as rows."""

import secrets
from dataclasses import KW_ONLY, dataclass, replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fedpca_core import findings
from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require, require_whole
from fedpca_core.guarantee import Guarantee
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.problems.perturbation import Trust
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.table import from_records
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study.deployed import deployment_of, truth_of
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.trial import trial


@dataclass(eq=False, repr=False)
class FederatedPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components of records that stay with the sites that hold them, in simulation.

    What crosses the wire is what the method sends, round by round, and is kept in ``trace_``.
    Around the run three secure sums are taken, of which the server sees the sum over all sites
    only: of the records (``mean_``), of the matrices ``V_i^T S_i V`` of n_components squared
    numbers (the order of the components and their variances), and of the traces (the share of the
    variance). With ``epsilon`` nothing is summed: mean, matrices and traces come from what each
    site released once with noise, so all fitted attributes are post-processing of that release.

    Args:
        n_components: Between 1 and n_features. Where it is n_features one fewer is sought, and the
            last is what is left.
        method: Key of a method that seeks the common subspace
            (`fedpca_core.algorithms.registry.COMPARED` has them), or an algorithm with parameters
            of its own, such as ``fp.LocalPower(5, local_steps=4)``; its number of components is
            replaced by ``n_components``.
        rounds: Communication rounds; a method may end earlier.
        sites: Where `fit` gets no ``groups``: the records are dealt at random to so many sites.
        participation: Share of the sites present in a round, in (0, 1].
        secure_aggregation: The server sees sums over the sites only. With ``epsilon`` the sites
            share the noise then, and one of them may be curious itself.
        epsilon: Differential privacy of one record by noise at the source; None adds none.
        delta: Of the same.
        clip: Norm at which records are clipped around the noisy mean, needed with ``epsilon``. It
            is public and must not be read off the records.
        mean_clip: The same before that mean.
        mean_share: Share of the squared GDP budget that pays for the noisy mean.
        keep_run: Whether ``trace_`` and what `leaks` needs are kept. They hold the records, so a
            pickle of the estimator does too.
        random_state: Seed of the public start, of the sampling and of the noise. None draws it
            from the system.

    Attributes:
        components_: (n_components, n_features) float64: Orthonormal, by decreasing variance; the
            largest entry of each is positive.
        explained_variance_: (n_components,) float64: With n_samples - 1 degrees of freedom. Under
            ``epsilon`` noise may leave less than nothing of a variance, which is 0 then.
        explained_variance_ratio_: (n_components,) float64: Shares of the whole variance.
        singular_values_: (n_components,) float64: Of the centred records.
        mean_: (n_features,) float64.
        groups_ (tuple of str): Sites in the order of the clients in ``trace_``.
        guarantee_ (Guarantee or None): Its ``sentence()`` says what epsilon means here.
        trace_ (Trace): The run; what the server saw is ``trace_.transcript``.
        n_samples_: Records.
        n_features_in_: Features.
        feature_names_in_: Their names, where given.
        rounds_: Rounds that were run.

    Examples:
        >>> model = FederatedPCA(3, rounds=10, random_state=0).fit(X, groups=hospital)
        >>> model.transform(X)
        >>> model.leaks()
    """

    n_components: int = 2
    _: KW_ONLY
    method: str | Algorithm = "block_krylov"
    rounds: int = 30
    sites: int = 5
    participation: float = 1.0
    secure_aggregation: bool = False
    epsilon: float | None = None
    delta: float = 1e-6
    clip: float | None = None
    mean_clip: float | None = None
    mean_share: float = 0.1
    keep_run: bool = True
    random_state: int | np.random.RandomState | None = None

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Run the federation.

        Args:
            X: (n_samples, n_features) array or frame of float64: One record a row.
            y: Not read.
            groups: (n_samples,) sequence: The site of each record, by any label; None: dealt to
                ``sites``. In a pipeline: ``fit(X, federatedpca__groups=site)``.

        Raises:
            InvalidInput: Parameters that do not fit the records or each other.
        """
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        require_whole("The number of components", self.n_components)
        require(
            1 <= self.n_components <= rows.shape[1],
            f"{self.n_components} components do not fit {rows.shape[1]} features; "
            f"choose between 1 and {rows.shape[1]}.",
        )
        sought = min(self.n_components, rows.shape[1] - 1)
        algorithm = self._algorithm(sought)
        seed = self._seed()
        problem = from_records(
            rows,
            self._dealt(len(rows), seed) if groups is None else groups,
            feature_names=tuple(getattr(self, "feature_names_in_", ())),
            public_schema=self.epsilon is not None,
        )
        if self.epsilon is not None:
            if self.clip is None:
                raise InvalidInput(
                    "An ε needs a norm at which records are clipped; give clip=, a length that was "
                    "known before the records were seen."
                )
            problem = problem.private(
                self.epsilon,
                self.delta,
                self.clip,
                Streams(seed),
                trust=Trust() if self.secure_aggregation else None,
                mean_share=self.mean_share,
                mean_clip=self.mean_clip,
            )
        trace = simulate(
            problem,
            algorithm,
            rounds=self.rounds,
            seed=seed,
            participation=self.participation,
            channel=Channel(secure_aggregation=self.secure_aggregation),
        )
        self.n_samples_ = len(rows)
        self.groups_ = problem.client_names
        self.guarantee_: Guarantee | None = problem.guarantee
        self.rounds_ = len(trace.estimates) - 1
        source = problem.source
        self.mean_ = np.asarray(problem.own_mean if source is None else source.mean)
        basis = trace.estimates[-1]
        if sought < self.n_components:
            basis = np.linalg.qr(basis, mode="complete")[0]
        self._turn(basis, problem)
        if self.keep_run:
            self.trace_: Trace = trace
            self._problem = problem
        return self

    def transform(self, X: Any) -> Array:
        """Scores of records, (n_samples, n_components) float64."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray((rows - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Array:
        """Records with these scores, (n_samples, n_features) float64."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=float) @ self.components_ + self.mean_)

    def score(self, X: Any, y: Any = None) -> float:
        """R²: 1 less the squared error of ``inverse_transform(transform(X))`` over the mean's."""
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        error = float(((rows - self.inverse_transform(self.transform(X))) ** 2).sum())
        total = float(((rows - rows.mean(axis=0)) ** 2).sum())
        return 1.0 - error / total if total else 1.0

    def leaks(self, group: object = None, *, strangers: Any = None) -> pd.DataFrame:
        """What the server makes of one site's messages: every attack that fits, as findings.

        The three secure sums around the run are not attacked. The step and the bounds of every
        feature count as public, as its schema would state them.

        Args:
            group: The attacked site; by default that with the fewest records, unless they are
                public.
            strangers: (records, n_features): Records of the same kind that no site holds: whether
                they can be told from those of the site is tried too.

        Returns:
            One finding a row; ``words`` says it in a sentence, ``basis`` what it stands on.

        Raises:
            InvalidInput: No such site, its records are public, or the run was not kept.
        """
        check_is_fitted(self)
        require(
            hasattr(self, "trace_"),
            "The messages of the run were not kept; fit with keep_run=True to attack them.",
        )
        sizes = self._problem.client_data.samples
        require(
            group is None or str(group) in self.groups_,
            f"There is no site “{group}”; the sites are {', '.join(self.groups_[:20])}.",
        )
        kept = self.trace_.algorithm.protected(len(sizes))
        smallest = int(kept[np.argmin(sizes[kept])])
        client = smallest if group is None else self.groups_.index(str(group))
        public = SimpleNamespace(
            participation=self.participation,
            secure_aggregation=self.secure_aggregation,
            dtype="float64",
            upload_noise=0.0,
        )
        others = None
        if strangers is not None:
            rows = validate_data(self, strangers, dtype=np.float64, reset=False)
            honest = self._problem.unperturbed.own_mean
            others = (rows - (0.0 if honest is None else honest)).T
        deployment = deployment_of(
            self._problem, self.trace_.algorithm, public, client, rounds=self.rounds_
        )
        truth = truth_of(self._problem, client, self.trace_.algorithm.components, strangers=others)
        found = outcome(trial(self.trace_.transcript, deployment, client, truth=truth))
        assert found is not None
        table = findings.frame(found.findings)
        table.insert(0, "group", self.groups_[client])
        return table

    def _algorithm(self, components: int) -> Algorithm:
        method = self.method
        if not isinstance(method, Algorithm):
            require(
                method in COMPARED,
                f"There is no method “{method}” that seeks one common subspace; "
                f"choose one of {', '.join(COMPARED)}.",
            )
            method = METHODS[method].make(ConvergeSettings())
        made: Algorithm = replace(method, components=components)  # type: ignore[type-var]
        return made

    def _seed(self) -> int:
        if self.random_state is None:
            return secrets.randbits(128)
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))

    def _dealt(self, records: int, seed: int) -> Array:
        require_whole("The number of sites", self.sites)
        require(
            self.sites >= 2,
            f"{self.sites} is no number of sites that could work together; choose 2 or more.",
        )
        order = Streams(seed).generator("data").permutation(records)
        return np.asarray(order % min(self.sites, records))

    def _turn(self, basis: Array, problem: Problem) -> None:
        """Components by decreasing variance, from the sum of the small matrices of all sites."""
        held = problem.pooled
        values, turned = np.linalg.eigh(symmetric_part(basis.T @ held @ basis))
        components = (basis @ turned[:, ::-1]).T
        largest = np.abs(components).argmax(axis=1)
        signs = np.sign(components[np.arange(len(components)), largest])
        self.components_ = components * signs[:, None]
        values = np.maximum(values[::-1], 0.0)
        total = max(float(np.trace(held)), float(values.sum()))
        scale = self.n_samples_ / (self.n_samples_ - 1)
        self.explained_variance_ = values * scale
        self.explained_variance_ratio_ = values / total if total else np.zeros_like(values)
        self.singular_values_ = np.sqrt(values * self.n_samples_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)
