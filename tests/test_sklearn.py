"""scikit-learn's own suite on every estimator, and what its users expect beyond it."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_clusterer, is_outlier_detector
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from tubal import (
    LSR,
    ORTLRR,
    SSC,
    SSCOMP,
    EnSC,
    LowRankClusterer,
    TensorCompleter,
    TensorOutlierDetector,
    datasets,
    make,
)

CLUSTERERS = [ORTLRR, LowRankClusterer, SSC, SSCOMP, EnSC, LSR]
ESTIMATORS = [*CLUSTERERS, TensorOutlierDetector, TensorCompleter]


def expected_failures(estimator):
    if isinstance(estimator, SSCOMP):
        return {
            "check_clustering": "the check has two features: any two samples represent every other "
            "one exactly, so that the pursuit has no reason to choose those of the same blob"
        }
    if type(estimator) is LowRankClusterer:
        return {
            "check_clustering": "the check has blobs of two features: places, not subspaces, which "
            "ORTLRR finds by a Gaussian kernel"
        }
    if isinstance(estimator, TensorOutlierDetector):
        why = "the check has three blobs and no outlier, and wants one to be flagged"
        return {"check_outliers_train": why, "check_outliers_fit_predict": why}
    return {}


@parametrize_with_checks(
    [estimator() for estimator in ESTIMATORS], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Settings that run other code than the defaults.
@pytest.mark.slow
@parametrize_with_checks(
    [
        TensorOutlierDetector(contamination=0.1),
        LowRankClusterer(dictionary="identity", graph="published", outliers="published"),
        LowRankClusterer(noise="l1"),
        ORTLRR(solver="published", tol=1e-4, partition="published", outliers=None),
    ],
    expected_failed_checks=lambda estimator: (
        {} if isinstance(estimator, TensorOutlierDetector) else expected_failures(estimator)
    ),
)
def test_scikit_learn_checks_of_other_settings(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return datasets.make_tensor_subspaces(20, 6, 3, 2, 30, outliers=0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return ORTLRR(3, random_state=0).fit(data.X)


def test_kinds():
    assert all(is_clusterer(estimator()) for estimator in CLUSTERERS)
    assert is_outlier_detector(TensorOutlierDetector())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_go_round(estimator):
    est = estimator()
    params = est.get_params()
    assert clone(est).get_params() == params
    assert est.set_params(**params).get_params() == params


def test_transform_is_a_parameter_and_a_method(data, fitted):
    est = ORTLRR(transform="dct")
    assert est.get_params()["transform"] == "dct"
    assert "transform='dct'" in repr(est)
    est.set_params(transform="dft")
    assert clone(est).get_params()["transform"] == "dft"
    with pytest.raises(NotFittedError):
        est.transform(data.X)
    assert fitted.transform(data.X).shape == data.X.shape
    matrix = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    assert clone(ORTLRR(transform=matrix)).fit(data.X).solution_.Z.transform.n_slices == 6


@pytest.mark.parametrize("dump", [pickle, joblib])
def test_models_survive_storage(tmp_path, data, fitted, dump):
    path = tmp_path / "model"
    with path.open("wb") as file:
        dump.dump(fitted, file)
    with path.open("rb") as file:
        again = dump.load(file)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.predict(data.X[:7]), fitted.predict(data.X[:7]))
    np.testing.assert_array_equal(
        again.relabel(contamination=0.2).labels_ == -1,
        pickle.loads(pickle.dumps(fitted)).relabel(contamination=0.2).outliers_,
    )


def test_pipelines(data):
    centre = FunctionTransformer(lambda X: X - X.mean(axis=(1, 2), keepdims=True))
    pipeline = make_pipeline(centre, ORTLRR(3, random_state=0))
    alone = ORTLRR(3, random_state=0).fit_predict(centre.transform(data.X))
    np.testing.assert_array_equal(pipeline.fit_predict(data.X), alone)
    pipeline.set_params(ortlrr__n_clusters=2)
    assert pipeline.fit(data.X)[-1].n_clusters_ == 2


def test_a_completer_goes_before_a_clusterer():
    data = datasets.make_tensor_subspaces(20, 6, 3, 2, 30, outliers=0, missing=0.1, random_state=0)
    pipeline = make_pipeline(TensorCompleter(), make("LRR", 3, random_state=0))
    filled = TensorCompleter().fit_transform(data.X)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(
        pipeline.fit_predict(data.X), make("LRR", 3, random_state=0).fit_predict(filled)
    )


def test_data_frames():
    X = datasets.make_tensor_subspaces(12, 1, 2, 2, 20, outliers=0, random_state=0).X[..., 0]
    frame = pd.DataFrame(X, columns=[f"sensor {i}" for i in range(12)])
    est = ORTLRR(2, random_state=0).fit(frame)
    np.testing.assert_array_equal(est.labels_, ORTLRR(2, random_state=0).fit(X).labels_)
    assert list(est.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        est.predict(frame.rename(columns={"sensor 0": "other"}))
    frame = frame.astype("Float64")
    frame.iloc[0, 0] = pd.NA
    filled = TensorCompleter().set_output(transform="pandas").fit_transform(frame)
    assert list(filled.columns) == list(frame.columns)
    assert not filled.isna().any(axis=None)


def test_xarray_like_objects(data):
    class Labelled:  # what xarray.DataArray offers to NumPy
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype=dtype)

    labels = ORTLRR(3, random_state=0).fit(Labelled(data.X)).labels_
    np.testing.assert_array_equal(labels, ORTLRR(3, random_state=0).fit(data.X).labels_)


def test_masked_arrays_are_missing_entries(data):
    holes = np.random.default_rng(0).random(data.X.shape) < 0.1
    marked = ORTLRR(3, random_state=0).fit(np.where(holes, np.nan, data.X))
    masked = ORTLRR(3, random_state=0).fit(np.ma.array(data.X, mask=holes))
    np.testing.assert_array_equal(marked.outlier_scores_, masked.outlier_scores_)


def test_torch_tensors(data):
    torch = pytest.importorskip("torch")
    est = ORTLRR(3, random_state=0).fit(torch.asarray(data.X))
    np.testing.assert_array_equal(est.labels_, ORTLRR(3, random_state=0).fit(data.X).labels_)
    assert est.predict(torch.asarray(data.X[:5])).shape == (5,)


def test_metadata_routing(data):
    with sklearn.config_context(enable_metadata_routing=True):
        for estimator in ESTIMATORS:
            assert estimator().get_metadata_routing() is not None
        make_pipeline(StandardScaler(), ORTLRR(2)).fit(data.X[..., 0])


@pytest.mark.skipif(not hasattr(ORTLRR, "set_callbacks"), reason="scikit-learn before 1.9")
class TestCallbacks:
    class Recorder:
        def __init__(self, stop_at=None):
            self.events, self.stop_at = [], stop_at

        def setup(self, estimator, context):
            self.events.append("setup")

        def teardown(self, estimator, context):
            self.events.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            self.events.append(f"begin {context.task_name}")

        def on_fit_task_end(self, estimator, context):
            self.events.append(f"end {context.task_name}")
            return self.stop_at is not None and context.task_name.startswith(self.stop_at)

    def test_stages_are_reported_in_order(self, data):
        recorder = self.Recorder()
        ORTLRR(3, random_state=0).set_callbacks(recorder).fit(data.X)
        stages = [event for event in recorder.events if "gap" not in event]
        assert stages == [
            "setup", "begin fit", "begin represent", "end represent", "begin detect outliers",
            "end detect outliers", "begin cluster", "end cluster", "end fit", "teardown",
        ]  # fmt: skip
        assert any(event.startswith("end gap") for event in recorder.events)

    def test_a_callback_can_stop_the_solver(self, data):
        est = ORTLRR(3, random_state=0, tol=1e-9)
        est.set_callbacks(self.Recorder(stop_at="gap")).fit(data.X)
        assert est.solution_.stop_reason.name == "CALLBACK"

    def test_errors_tear_down(self, data):
        recorder = self.Recorder()
        with pytest.raises(ValueError, match="n_clusters"):
            ORTLRR(0).set_callbacks(recorder).fit(data.X)
        with pytest.raises(ValueError, match="transform"):  # its size is known in the middle only
            ORTLRR(transform=np.eye(2)).set_callbacks(recorder).fit(data.X)
        assert recorder.events[-1] == "teardown"
