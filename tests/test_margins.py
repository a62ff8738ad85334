"""How clearly samples belong to their cluster."""

import numpy as np
import pytest

from tubal import ORTLRR, SSC
from tubal.datasets import make_tensor_subspaces
from tubal.estimators.clusterer import margins_of


@pytest.fixture(scope="module")
def data():
    return make_tensor_subspaces(20, 6, 3, 2, 20, outliers=0.15, random_state=0)


def naive_margins(ties, labels, own):
    """Return margins sample by sample; `ties` is dense, `labels` are those of its columns."""
    margins = []
    for row, label in zip(ties, own, strict=True):
        if label == -1:
            margins.append(np.nan)
            continue
        shares = {k: row[labels == k].sum() / row.sum() for k in set(labels.tolist()) - {-1}}
        others = [share for k, share in shares.items() if k != label]
        margins.append(shares[label] - max(others, default=0.0))
    return np.array(margins)


@pytest.mark.parametrize("make", [ORTLRR, SSC])
@pytest.mark.parametrize("kind", ["auto", "published"])
def test_margins_of_the_fit(data, make, kind):
    est = make(3, graph=kind, outliers="auto", random_state=0).fit(data.X)
    margins = est.margins()
    wanted = naive_margins(est.affinity_.toarray(), est.labels_, est.labels_)
    np.testing.assert_allclose(margins, wanted, atol=1e-12)
    np.testing.assert_array_equal(np.isnan(margins), est.outliers_)
    np.testing.assert_allclose(est.margins(data.X[:7]), margins[:7])


@pytest.mark.parametrize("kind", ["auto", "published"])
def test_margins_of_new_samples(data, kind):
    est = ORTLRR(3, graph=kind, random_state=0).fit(data.X[::2])
    new = data.X[1::2]
    labels, margins = est.predict(new), est.margins(new)
    votes = est._graph().votes(est._code(new)[0], ~est.outliers_)
    wanted = naive_margins(votes.toarray(), est.labels_, labels)
    np.testing.assert_allclose(margins, wanted, atol=1e-12)
    kept = labels >= 0
    assert kept.any()
    assert (margins[kept] >= 0).all()
    np.testing.assert_array_equal(np.isnan(margins), ~kept)


def test_one_cluster_has_no_next_one(data):
    est = ORTLRR(1, random_state=0).fit(data.X)
    np.testing.assert_allclose(est.margins()[~est.outliers_], 1)


def test_a_sample_without_ties_has_no_margin():
    assert margins_of(np.zeros((1, 2)), np.array([1])).tolist() == [0.0]


def test_a_wrong_neighbourhood_is_negative():
    ties = np.array([[1.0, 3.0, 0.0]])
    assert margins_of(ties, np.array([0])).tolist() == [-0.5]
    assert ties.tolist() == [[1.0, 3.0, 0.0]]
