"""What estimators refuse, and that what they return are numbers."""

import numpy as np
import pytest

import tubal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 5))
MAKERS = {
    "ORTLRR": lambda: tubal.ORTLRR(2, random_state=0),
    "TensorOutlierDetector": tubal.TensorOutlierDetector,
    "TensorCompleter": tubal.TensorCompleter,
    "SSC": lambda: tubal.SSC(2),
    "LSR": lambda: tubal.make("LSR", 2),
}


def dates(kind):
    """Return dates as an array, list, masked array or data frame."""
    days = np.arange("2020-01-01", "2020-02-10", dtype="datetime64[D]").reshape(10, 4)
    if kind == "spans":
        return days - days[0, 0]
    if kind == "list":
        return [list(row) for row in days]
    if kind == "masked":
        return np.ma.masked_array(days, mask=False)
    if kind in ("frame", "mixed frame"):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(days)
        return frame if kind == "frame" else frame.assign(number=1.0)
    return days


@pytest.mark.parametrize("kind", ["array", "spans", "list", "masked", "frame", "mixed frame"])
@pytest.mark.parametrize("make", MAKERS)
def test_dates_are_no_samples(make, kind):
    with pytest.raises(ValueError, match=r"X has dtype (datetime|timedelta)64\[.*\]; real numbers"):
        MAKERS[make]().fit(dates(kind))


@pytest.mark.parametrize("method", ["predict", "score_samples", "transform"])
def test_dates_are_no_new_samples(method):
    est = tubal.ORTLRR(2, random_state=0).fit(X[:, :4])
    with pytest.raises(ValueError, match="X has dtype datetime64"):
        getattr(est, method)(dates("array"))


@pytest.mark.parametrize("name", tubal.methods())
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_decision_functions_are_finite_and_agree_with_the_outliers(name):
    est = tubal.make(name).set_params(n_clusters=2).fit(X)
    new = RNG.normal(size=(3, 5))
    assert np.isfinite(est.score_samples(X)).all()
    for contamination in (None, 0.1):
        if contamination:
            est.relabel(contamination=contamination)
        for samples in (X, new):
            found = est.decision_function(samples)
            assert np.isfinite(found).all()
            flagged = -est.score_samples(samples) > est.threshold_
            np.testing.assert_array_equal(found < 0, flagged)
