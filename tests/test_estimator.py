"""The estimator: scikit-learn's own checks, PCA itself as oracle, and nothing but the release."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fedpca_core as fp
from fedpca_core.algorithms.registry import COMPARED
from fedpca_core.problems.problem import Problem

X = load_digits().data[:600]
SITE = np.repeat(["north", "east", "south"], (300, 200, 100))
FITTED = ("components_", "explained_variance_", "explained_variance_ratio_", "mean_")


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([fp.FederatedPCA(rounds=5, random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("method", "rounds"), [("centralized", 1), ("block_krylov", 40)])
@pytest.mark.parametrize("components", [1, 4])
def test_it_is_pca(method, rounds, components):
    ours = fp.FederatedPCA(components, method=method, rounds=rounds, random_state=0)
    ours.fit(X, groups=SITE)
    theirs = PCA(components, svd_solver="full").fit(X)
    for name in (*FITTED, "singular_values_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-9, rtol=1e-9)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)
    back = ours.inverse_transform(ours.transform(X))
    np.testing.assert_allclose(back, theirs.inverse_transform(theirs.transform(X)), atol=1e-8)
    assert ours.groups_ == ("east", "north", "south")


def test_all_components_are_those_of_pca():
    few = X[:, 20:24]
    ours = fp.FederatedPCA(4, method="centralized", rounds=1).fit(few, groups=SITE)
    np.testing.assert_allclose(ours.components_, PCA(4).fit(few).components_, atol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio_.sum(), 1.0)


@pytest.mark.parametrize("method", list(COMPARED))
def test_every_method_that_seeks_the_common_space_is_offered(method):
    model = fp.FederatedPCA(2, method=method, rounds=3, random_state=0).fit(X, groups=SITE)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(2), atol=1e-9)
    assert (np.diff(model.explained_variance_) <= 0).all()
    assert 1 <= model.rounds_ <= 3


def test_a_method_with_parameters_of_its_own():
    model = fp.FederatedPCA(3, method=fp.LocalPower(9, local_steps=2), rounds=4).fit(X)
    assert model.trace_.algorithm == replace(fp.LocalPower(3), local_steps=2)
    assert len(model.groups_) == 5


def test_it_works_in_a_pipeline_and_a_search():
    frame = pd.DataFrame(X[:, 20:30], columns=[f"pixel {one}" for one in range(10)])
    chain = make_pipeline(StandardScaler(), fp.FederatedPCA(rounds=5, random_state=0))
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(chain, {"federatedpca__n_components": [1, 3]}, cv=folds)
    search.fit(frame, federatedpca__groups=SITE)
    assert search.best_params_ == {"federatedpca__n_components": 3}
    names = search.best_estimator_.get_feature_names_out()
    assert list(names) == [f"federatedpca{one}" for one in range(3)]


def test_it_says_what_a_site_gives_away():
    few = np.vstack([X[:10], X[300:500]])
    site = ["small"] * 10 + ["large"] * 200
    model = fp.FederatedPCA(5, method="ssi", rounds=6, random_state=0).fit(few, groups=site)
    table = model.leaks().set_index("target")
    assert set(table["group"]) == {"small"}
    assert table.loc["records", "status"] == "open" and table.loc["records", "figure"] == 10
    strangers = X[500:]
    other = model.leaks("large", strangers=strangers).set_index("target")
    assert other.loc["records", "status"] != "open"
    assert other.loc["membership", "attacks_tried"] > 0
    hidden = fp.FederatedPCA(5, method="ssi", rounds=6, secure_aggregation=True, random_state=0)
    table = hidden.fit(few, groups=site).leaks("small").set_index("target")
    assert table.loc["records", "status"] != "open"


def private(**changes: object) -> fp.FederatedPCA:
    return fp.FederatedPCA(2, **{"epsilon": 5.0, "clip": 60.0, "random_state": 3, **changes})


def test_what_is_fitted_under_epsilon_is_made_of_the_release(monkeypatch):
    """Two data sets and one release: nothing that is fitted differs."""
    real, made = Problem.private, []

    def once(self: Problem, *arguments: object, **named: object) -> Problem:
        if not made:
            made.append(real(self, *arguments, **named))
        return replace(made[0], truth=self, blocks=self.blocks)

    monkeypatch.setattr(Problem, "private", once)
    one = private().fit(X, groups=SITE)
    two = private().fit(X[::-1] + 1.0, groups=SITE)
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert not np.allclose(one.mean_, X.mean(axis=0), atol=1e-3)


def test_epsilon_comes_with_its_meaning():
    model = private().fit(X, groups=SITE)
    sentence = model.guarantee_.sentence()
    assert model.guarantee_.epsilon == pytest.approx(5.0) and "one record" in sentence
    assert "whose record each row is" in sentence and "60" in sentence
    assert fp.FederatedPCA(2).fit(X, groups=SITE).guarantee_ is None
    again = private().fit(X, groups=SITE)
    np.testing.assert_array_equal(model.components_, again.components_)
    system = [private(random_state=None).fit(X, groups=SITE).mean_ for _ in range(2)]
    assert not np.array_equal(*system)


def test_a_large_epsilon_costs_nothing_and_a_small_one_does():
    plain = PCA(2, svd_solver="full").fit(X).components_
    sines = [
        np.linalg.norm(
            plain - plain @ (one := private(epsilon=e).fit(X, groups=SITE)).components_.T
            @ one.components_, 2,
        )
        for e in (0.1, 1e6)
    ]  # fmt: skip
    assert sines[1] < 1e-2 < 0.3 < sines[0]


def test_a_score_counts_what_comes_back_and_not_the_way_to_a_wrong_mean():
    right = fp.FederatedPCA(2, method="centralized", rounds=1).fit(X, groups=SITE)
    assert right.score(X) == pytest.approx(right.explained_variance_ratio_.sum())
    far = private(epsilon=0.1).fit(X, groups=SITE)
    assert far.score(X) < right.score(X)


def test_without_the_run_only_what_was_fitted_travels():
    model = fp.FederatedPCA(2, keep_run=False).fit(X, groups=SITE)
    kept = pickle.dumps(model)
    assert len(kept) < 20_000
    np.testing.assert_array_equal(pickle.loads(kept).transform(X), model.transform(X))
    with pytest.raises(fp.InvalidInput, match="keep_run=True"):
        model.leaks()


@pytest.mark.parametrize(
    ("changes", "groups", "words"),
    [
        ({"n_components": 65}, SITE, "choose between 1 and 64"),
        ({"n_components": 1.5}, SITE, "whole number"),
        ({"method": "magic"}, SITE, "choose one of ssi"),
        ({"epsilon": 1.0}, SITE, "give clip="),
        ({"sites": 1}, None, "choose 2 or more"),
        ({}, SITE[:5], "600 labels"),
        ({}, ["a"] * 600, "at least two"),
        ({}, [None] * 600, "600 records have no label"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(changes, groups, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.FederatedPCA(**{"n_components": 2, **changes}).fit(X, groups=groups)


def test_an_unknown_site_is_refused():
    with pytest.raises(fp.InvalidInput, match="the sites are east, north, south"):
        fp.FederatedPCA(2, rounds=2).fit(X, groups=SITE).leaks("west")
