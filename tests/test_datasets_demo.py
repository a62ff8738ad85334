"""The demo data is what it says: the digits of scikit-learn and patches of two photographs."""

import importlib.util
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from tubal.datasets import Demo, load_demo

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "make_photo_patches.py"


def rows_of(images):
    """Images as a set of tuples."""
    return {tuple(image.ravel().tolist()) for image in images}


@pytest.fixture(scope="module")
def everything():
    """All digits and all patches."""
    return load_demo(1897, outliers=100)


def test_everything_is_there_once(everything):
    digits = load_digits()
    kept = ~everything.outliers
    assert sorted(everything.labels[kept]) == sorted(digits.target)
    drawn, given_ = (everything.X[kept] * 16).reshape(1797, -1), digits.images.reshape(1797, -1)
    np.testing.assert_array_equal(drawn[np.lexsort(drawn.T)], given_[np.lexsort(given_.T)])
    assert (everything.source == "china.jpg").sum() == 50
    assert (everything.source == "flower.jpg").sum() == 50
    assert len(rows_of(everything.X[everything.outliers])) == 100


def test_labels_belong_to_their_images(everything):
    truth = {
        tuple(image.ravel().tolist()): label
        for image, label in zip(load_digits().images, load_digits().target, strict=True)
    }
    for image, label in zip(everything.X, everything.labels, strict=True):
        assert truth.get(tuple((16 * image).ravel().tolist()), -1) == label


def test_brightness_is_comparable(everything):
    """All in [0, 1], and the mean norm of the two kinds differs by less than a fifth."""
    assert everything.X.min() == 0
    assert everything.X.max() == 1
    norms = np.linalg.norm(everything.X, axis=(1, 2))
    ratio = norms[everything.outliers].mean() / norms[~everything.outliers].mean()
    assert 0.8 < ratio < 1.2


def test_patches_have_contrast(everything):
    """No patch is sky or background alone (rounding moves the limit of 20 levels a little)."""
    spread = (255 * everything.X[everything.outliers]).std(axis=(1, 2))
    assert spread.min() >= 19.9
    assert np.median(spread) > 30


@given(
    st.integers(0, 100),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.2, 0.95]),
    st.integers(0, 99),
)
def test_truth_is_consistent(outliers, digits, missing, seed):
    n = outliers + digits
    data = load_demo(n, outliers, missing, seed)
    assert isinstance(data, Demo)
    assert data.X.shape == data.complete.shape == (n, 8, 8)
    assert data.X.dtype == np.float64
    assert data.labels.shape == data.outliers.shape == data.source.shape == (n,)
    assert data.labels.dtype.kind == "i"
    assert data.outliers.dtype == bool
    assert data.outliers.sum() == outliers
    np.testing.assert_array_equal(data.labels == -1, data.outliers)
    np.testing.assert_array_equal(data.source != "digits", data.outliers)
    assert len(rows_of(data.complete)) == n  # no image twice
    seen = ~np.isnan(data.X)
    assert seen.any(axis=(1, 2)).all()
    assert seen.all() or missing > 0
    np.testing.assert_array_equal(data.X[seen], data.complete[seen])


def test_share_of_holes():
    data = load_demo(missing=0.3)
    assert abs(np.isnan(data.X).mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / data.X.size)
    assert not np.isnan(data.complete).any()
    np.testing.assert_array_equal(data.complete, load_demo().X)


def test_defaults():
    data = load_demo()
    assert data.X.shape == (500, 8, 8)
    assert data.outliers.sum() == 50
    assert not np.isnan(data.X).any()
    assert np.bincount(data.labels[~data.outliers]).min() > 25
    # Shuffled: the outliers are spread over the whole set.
    assert abs(np.flatnonzero(data.outliers).mean() - 250) < 5 * 500 / np.sqrt(12 * 50)


def test_seeds_decide():
    np.testing.assert_array_equal(load_demo(missing=0.1).X, load_demo(missing=0.1).X)
    generator = np.random.default_rng(0)
    np.testing.assert_array_equal(load_demo().X, load_demo(random_state=generator).X)
    others = [load_demo(random_state=seed).labels for seed in (0, 1, generator, None)]
    assert len({tuple(labels.tolist()) for labels in others}) == 4


def test_every_call_gives_arrays_of_its_own():
    data = load_demo(20, 5)
    data.X[:] = 7
    assert data.complete.max() <= 1
    assert load_demo(20, 5).X.max() <= 1
    with pytest.raises(AttributeError):
        data.X = data.complete


def test_the_authors_are_named():
    text = (files("tubal.datasets") / "photo_patches.txt").read_text(encoding="ascii")
    for words in ("danielbuechele", "vultilion", "creativecommons.org/licenses/by/2.0"):
        assert words in text


def test_the_script_makes_the_file():
    """Needs Pillow to read the photographs; the decoder must be the one that made the file."""
    pytest.importorskip("PIL", reason="Pillow is not installed: it reads the photographs")
    if not SCRIPT.is_file():
        pytest.skip("benchmarks/make_photo_patches.py is not part of this archive")
    spec = importlib.util.spec_from_file_location("make_photo_patches", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    with (files("tubal.datasets") / "photo_patches.csv").open(encoding="ascii") as file:
        stored = np.loadtxt(file, dtype=np.int64, delimiter=",")
    np.testing.assert_array_equal(script.table(), stored)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 10.0}, "n_samples must be an integer, got 10.0"),
        ({"n_samples": True}, "n_samples must be an integer, got True"),
        ({"outliers": "5"}, "outliers must be an integer, got '5'"),
        ({"outliers": 0.1}, "outliers must be an integer, got 0.1"),
        ({"outliers": 101}, r"outliers must lie in 0\.\.100, .*, got 101"),
        ({"outliers": -1}, r"outliers must lie in 0\.\.100, .*, got -1"),
        ({"n_samples": 50}, r"n_samples must lie in 51\.\.1847 .*, got 50"),
        ({"n_samples": 1848}, r"n_samples must lie in 51\.\.1847 .*, got 1848"),
        ({"missing": 1.0}, r"missing must lie in \[0, 1\), got 1.0"),
        ({"missing": "0.1"}, r"missing must lie in \[0, 1\), got '0.1'"),
        ({"missing": np.nan}, r"missing must lie in \[0, 1\), got nan"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        load_demo(**options)
