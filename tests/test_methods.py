"""One contract for every method that has a name."""

import copy
import functools
import re

import numpy as np
import pytest

import tubal
from tubal import Lambda, datasets, metrics
from tubal.estimators import find

COMPLETE = [name for name in tubal.methods() if "EWZF" not in name and "TNN+" not in name]
MISSING = [name for name in tubal.methods() if name not in COMPLETE]
MATRIX = ("R-PCA", "OR-PCA", "LRR", "SSC", "SSC-OMP", "EnSC", "LSR")

# On these small problems the weights that the paper chose for its pictures lie outside of the
# range in which lam makes a difference; the middle of that range is the same for all sizes.
# Completed data has singular values that are almost zero, and so no such range; there the rule of
# the paper for synthetic data holds. LRR: the published number belongs to other pictures.
LAM = {name: Lambda.relative(0.6) for name in tubal.methods() if "OR-TLRR" in name or name == "LRR"}
LAM |= {"TNN+OR-TLRR-DFT": Lambda.paper(2), "TNN+OR-TLRR-DCT": Lambda.paper(2 * 6**0.5)}


def problem(name, missing=0.0):
    """Tensor subspaces under the transform of the method; subspaces of vectors for the others."""
    if name.removeprefix("TNN+") in MATRIX:
        data = datasets.make_tensor_subspaces(
            60, 1, 3, 4, 40, outliers=0.1, missing=missing, random_state=1
        )
        return data.X.reshape(-1, 20, 3), data.labels
    transform = {"DCT": "dct", "ROM": tubal.transforms.RandomOrthogonal(0)}.get(name[-3:], "dft")
    data = datasets.make_tensor_subspaces(
        30, 6, 3, 2, 40, outliers=0.1, missing=missing, transform=transform, random_state=1
    )
    return data.X, data.labels


def estimator(name, **overrides):
    overrides = {"lam": LAM[name], **overrides} if name in LAM else overrides
    return tubal.make(name, n_clusters=3, random_state=0, **overrides)


def test_the_names_are_those_of_the_tables(data_dir):
    path = data_dir.parent / "paper_tables.csv"
    if not path.is_file():
        pytest.skip("the published values are not here")
    rows = path.read_text(encoding="utf-8").splitlines()[1:]
    assert {row.split(",")[3] for row in rows} <= set(tubal.methods())


@pytest.mark.parametrize("name", tubal.methods())
def test_every_setting_has_a_source(name):
    method = find(name)
    descriptive = {"dictionary", "noise", "vectorize", "transform"}  # what the method is
    assert set(method.settings) - descriptive == set(method.sources)
    params = tubal.make(name).get_params()
    for key, value in method.settings.items():
        if key == "completion" and value is not None:
            assert params[key].get_params() == value.get_params()
        else:
            assert params[key] == value


@functools.cache
def fitted(name):
    X, labels = problem(name, missing=0.1 if name in MISSING else 0.0)
    return estimator(name).fit(X), X, labels


@pytest.mark.slow
@pytest.mark.parametrize("name", tubal.methods())
def test_the_easy_problem_is_solved(name):
    est, _, labels = fitted(name)
    assert metrics.outlier_auc(labels, est.outlier_scores_) >= 0.99
    assert metrics.clustering_accuracy(labels, est.labels_) >= 0.95


@pytest.mark.parametrize("name", tubal.methods())
def test_contract(name):
    est, X, _ = fitted(name)
    n = len(X)
    assert est.labels_.shape == est.outliers_.shape == est.outlier_scores_.shape == (n,)
    np.testing.assert_array_equal(est.labels_ == -1, est.outliers_)
    assert set(est.labels_[est.labels_ >= 0]) == {0, 1, 2}
    assert est.X_clean_.shape == X.shape
    assert np.isfinite(est.X_clean_).all()
    assert est.affinity_.shape == (n, n)
    assert est.n_features_in_ == X.shape[1]
    np.testing.assert_array_equal(est.predict(X), est.labels_)
    new = X[:9] * 1.01
    assert est.predict(new).shape == (9,)
    assert est.transform(new).shape == new.shape
    assert np.isfinite(est.score_samples(new)).all()
    again = copy.copy(est).relabel(contamination=0.0)
    assert again.outliers_.sum() == 0
    assert est.outliers_.sum() > 0


@pytest.mark.parametrize(
    ("name", "lowest"),
    [("OR-TLRR-DFT", 0.45), pytest.param("TLRR-DFT", 0.4, marks=pytest.mark.slow)],
)
def test_published_parameters_on_faces(data_dir, name, lowest):
    # The paper's table of ORL with 100 outliers has .592 and .553; only half of the people here.
    with np.load(data_dir / "orl.npz") as orl, np.load(data_dir / "mirflickr.npz") as junk:
        faces, labels = orl["images"][:200] / 255, orl["labels"][:200]
        X = np.concatenate([faces, junk["images"][:50] / 255])
    est = tubal.make(name, 20, random_state=0).fit(X)
    truth = np.concatenate([labels, np.full(50, -1)])
    assert metrics.clustering_accuracy(truth, est.labels_) > lowest
    assert metrics.outlier_auc(truth, est.outlier_scores_) > 0.65


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["TNN+SSC", "TNN+SSC-OMP", "TNN+EnSC", "TNN+LSR", "TNN+LRR", "TNN+OR-TLRR-DFT"]
)
def test_completed_methods_complete_new_samples(name):
    X, _ = problem(name, missing=0.1)
    overrides = {"lam": Lambda.paper(2)} if name.endswith(("LRR", "DFT")) else {}
    est = tubal.make(name, 3, random_state=0, **overrides).fit(X[:80])
    filled = est.completion_.transform(X[80:])
    np.testing.assert_array_equal(est.predict(X[80:]), est.predict(filled))


@pytest.mark.slow
@pytest.mark.parametrize(("transform", "alpha", "missing"), [("dft", 2, 0.2), ("dct", 8, 0.1)])
def test_missing_entries_hide_no_outlier(transform, alpha, missing):
    # The paper, section 6.1: the Hamming distance is always 0. Its alpha is 2 for the DFT and 30
    # for the DCT at n3 = 100; the ratio of these is about the root of n3, here 20.
    data = datasets.make_tensor_subspaces(
        40, 20, 5, 4, 40, outliers=0.2, missing=missing, transform=transform, random_state=0
    )
    name = f"OR-TLRR-EWZF-{transform.upper()}"
    est = tubal.make(name, 5, lam=Lambda.paper(alpha), random_state=0).fit(data.X)
    assert metrics.support_distance(data.outliers, est.outliers_) == 0
    assert metrics.clustering_accuracy(data.labels, est.labels_) == 1


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.1, 0.2])
@pytest.mark.parametrize(("transform", "alpha"), [("dft", 2), ("dct", 30), ("rom", 30)])
def test_missing_entries_hide_no_outlier_at_the_size_of_the_paper(missing, transform, alpha):
    plan = tubal.transforms.RandomOrthogonal(0) if transform == "rom" else transform
    data = datasets.make_tensor_subspaces(missing=missing, transform=plan, random_state=0)
    name = f"OR-TLRR-EWZF-{transform.upper()}"
    est = tubal.make(name, 5, transform=plan, lam=Lambda.paper(alpha), random_state=0)
    est.set_params(solver="certified", tol=1e-4)
    assert metrics.support_distance(data.outliers, est.fit(data.X).outliers_) == 0


def test_other_combinations():
    assert isinstance(tubal.make("TNN+SSC"), tubal.SSC)
    assert tubal.make("OR-TPCA-DCT").get_params()["transform"] == "dct"
    assert tubal.make("TNN+LRR", lam=0.5).get_params()["lam"] == 0.5
    completion = tubal.make("TNN+TRPCA-DCT").get_params()["completion"]
    assert completion.get_params()["transform"] == "dct"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "OR-TLRR-XYZ",
        "OR-TLRR-DCT-DFT",
        "LRR-DFT",
        "TNN",
        "TNN+TLRR-EWZF-DFT",
        "SSC-EWZF",
        "LSR-DCT",
        "or-tlrr",
        3,
    ],
)
def test_unknown_names_list_the_known_ones(name):
    with pytest.raises(ValueError, match=re.escape("tubal.methods()")):
        tubal.make(name)


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="alpha"):
        tubal.make("LRR", alpha=3)


@pytest.mark.parametrize("name", ["SSC", "SSC-OMP", "EnSC", "LSR"])
def test_methods_of_vectors_say_how_to_fill_holes(name):
    X, _ = problem("TNN+SSC", missing=0.1)
    with pytest.raises(ValueError, match="completion='tnn'"):
        estimator(name).fit(X)
    assert np.isfinite(estimator(f"TNN+{name}").fit(X).X_clean_).all()


@pytest.mark.parametrize("name", ["SSC", "SSC-OMP", "EnSC", "LSR", "LRR"])
def test_new_samples_out_of_range_are_refused(name):
    X = problem("TNN+SSC")[0][:40]
    est = estimator(name, normalize=False).fit(X)
    with pytest.raises(ValueError, match=r"^X has entries of size .*e\+\d\d"):
        est.predict(1e60 * X)
