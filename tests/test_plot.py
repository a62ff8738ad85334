"""Figures show the numbers of the fit."""

import numpy as np
import pytest

from tubal import ORTLRR, SSCOMP, TensorCompleter, TensorOutlierDetector, datasets, plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return datasets.load_demo(120, outliers=12)


@pytest.fixture(scope="module")
def fitted(data):
    return ORTLRR(5, random_state=0).fit(data.X)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


def test_scores(fitted):
    ax = plot.scores(fitted, bins=20)
    heights = sum(bar.get_height() for bars in ax.containers for bar in bars)
    assert heights == len(fitted.labels_)
    assert ax.lines[0].get_xdata()[0] == fitted.threshold_
    assert f"{fitted.outliers_.sum()} outliers" in [t.get_text() for t in ax.get_legend().texts]


def test_scores_of_a_detector(data):
    est = TensorOutlierDetector().fit(data.X)
    assert plot.scores(est).lines[0].get_xdata()[0] == est.threshold_


def test_affinity(fitted):
    ax = plot.affinity(fitted)
    picture = ax.images[0].get_array()
    assert picture.shape == ((~fitted.outliers_).sum(),) * 2
    np.testing.assert_allclose(picture, picture.T)
    assert (picture > 0).sum() == fitted.affinity_.nnz
    assert len(ax.lines) == fitted.n_clusters_


def test_embedding(fitted):
    points = plot.embedding(fitted).collections
    sizes = [len(part.get_offsets()) for part in points[:-1]]
    np.testing.assert_array_equal(sizes, np.bincount(fitted.labels_[fitted.labels_ >= 0]))


def test_eigenvalues(fitted):
    ax = plot.eigenvalues(fitted)
    assert len(ax.patches) >= 10
    shown = ax.figure.axes[1].lines[0].get_ydata()
    np.testing.assert_allclose(shown[: fitted.n_clusters_], fitted.eigenvalues_, atol=1e-8)


def test_convergence(fitted):
    line = plot.convergence(fitted).lines[0]
    np.testing.assert_array_equal(line.get_ydata(), [c.gap for c in fitted.solution_.history])


@pytest.mark.parametrize("images", [False, True])
def test_gallery(data, fitted, images):
    figure = plot.gallery(fitted, data.complete if images else None, columns=4)
    assert len(figure.axes) == 4 * (fitted.n_clusters_ + 1)
    first = figure.axes[0].images[0].get_array()
    assert any(np.allclose(first, x) for x in data.X[fitted.labels_ == 0])


def test_gallery_of_a_table():
    X = datasets.make_tensor_subspaces(12, 1, 2, 2, 20, outliers=0, random_state=0).X[..., 0]
    est = ORTLRR(2, random_state=0).fit(X)
    assert len(plot.gallery(est, columns=3).axes[0].lines) == 1


def test_given_axes_are_used(fitted):
    _, ax = pyplot.subplots()
    for function in (plot.scores, plot.affinity, plot.embedding, plot.eigenvalues):
        assert function(fitted, ax=ax) is ax


def test_errors(data):
    with pytest.raises(ValueError, match="clusterer"):
        plot.affinity(TensorCompleter())
    with pytest.raises(ValueError, match="fitted"):
        plot.embedding(ORTLRR())
    with pytest.raises(ValueError, match="fitted"):
        plot.scores(ORTLRR())
    with pytest.raises(ValueError, match="SSCOMP has no history"):
        plot.convergence(SSCOMP(3, random_state=0).fit(data.X))
