"""What the estimators promise about clusters, outliers, clean data and new samples."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_info

from tubal import ORTLRR, Lambda, TensorCompleter, TensorOutlierDetector, datasets, graph, metrics
from tubal.outliers import Consensus, Residual
from tubal.spectral import Cut, Discretise, KMeansRows, ModularityKMeans


def problem(**options):
    options = {"outliers": 0.15, "random_state": 0, **options}
    return datasets.make_tensor_subspaces(30, 10, 4, 3, 40, **options)


@pytest.fixture(scope="module")
def data():
    return problem()


@pytest.fixture(scope="module")
def fitted(data):
    return ORTLRR(4, random_state=0).fit(data.X)


def same_partition(a, b):
    return np.array_equal(a == -1, b == -1) and adjusted_rand_score(a, b) == 1


class TestFit:
    @pytest.mark.parametrize("transform", ["dft", "dct"])
    def test_clusters_and_outliers(self, transform):
        data = problem(transform=transform)
        est = ORTLRR(4, transform=transform, random_state=0).fit(data.X)
        assert metrics.outlier_auc(data.labels, est.outlier_scores_) == 1
        assert metrics.support_distance(data.outliers, est.outliers_) <= 3
        assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.97

    @pytest.mark.parametrize("transform", ["dft", "dct", "rom", "data", "none"])
    def test_subspaces_of_vectors_under_every_transform(self, transform):
        data = datasets.make_tensor_subspaces(60, 1, 4, 2, 40, outliers=0.1, random_state=0)
        est = ORTLRR(4, transform=transform, contamination=data.outliers.mean(), random_state=0)
        est.fit(data.X.reshape(-1, 20, 3))
        assert metrics.outlier_auc(data.labels, est.outlier_scores_) > 0.97
        assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.94

    def test_attributes_fit_together(self, data, fitted):
        n = len(data.X)
        np.testing.assert_array_equal(fitted.labels_ == -1, fitted.outliers_)
        np.testing.assert_array_equal(fitted.outliers_, fitted.outlier_scores_ > fitted.threshold_)
        assert fitted.offset_ == -fitted.threshold_
        assert fitted.n_clusters_ == 4 == len(np.unique(fitted.labels_[~fitted.outliers_]))
        assert fitted.n_clusters_confidence_ == 1
        assert fitted.affinity_.shape == (n, n)
        assert abs(fitted.affinity_ - fitted.affinity_.T).max() < 1e-12
        assert fitted.affinity_[fitted.outliers_].nnz == 0
        assert fitted.affinity_.nnz < n * n / 5
        assert fitted.embedding_.shape == (n, 4)
        np.testing.assert_array_equal(np.isnan(fitted.embedding_).all(axis=1), fitted.outliers_)
        assert fitted.certificate_ is fitted.solution_.certificate
        assert fitted.certificate_.gap <= 1e-4
        assert fitted.lam_ == fitted.solution_.lam
        assert fitted.n_features_in_ == 30
        assert fitted.sample_shape_ == (30, 10)
        assert fitted.n_iter_ == fitted.solution_.n_iter

    def test_clean_data_is_nearer_to_the_signal(self):
        noisy = problem(noise=0.3)
        est = ORTLRR(4, lam=Lambda.relative(0.7), random_state=0).fit(noisy.X)
        inliers = ~noisy.outliers
        before = np.linalg.norm((noisy.X - noisy.clean)[inliers])
        assert np.linalg.norm((est.X_clean_ - noisy.clean)[inliers]) < 0.75 * before

    def test_no_noise_no_change(self, data):
        est = ORTLRR(4, lam=Lambda.relative(0.7), random_state=0, tol=1e-8).fit(data.X)
        inliers = ~data.outliers
        np.testing.assert_allclose(est.X_clean_[inliers], data.clean[inliers], atol=1e-6)

    def test_more_trailing_axes(self, data):
        X = data.X.reshape(len(data.X), 30, 5, 2)
        est = ORTLRR(4, transform="none", random_state=0).fit(X)
        assert est.X_clean_.shape == X.shape
        assert est.transform(X[:3]).shape == X[:3].shape
        assert est.sample_shape_ == (30, 5, 2)

    @pytest.mark.parametrize("share", [0.1, 0.2])
    def test_missing_entries_do_not_hide_outliers(self, share):
        data = problem(missing=share)
        est = ORTLRR(4, random_state=0).fit(data.X)
        assert metrics.support_distance(data.outliers, est.outliers_) == 0
        assert metrics.clustering_accuracy(data.labels, est.labels_) == 1
        assert np.isfinite(est.X_clean_).all()

    def test_the_callback_sees_the_gap_and_can_stop(self, data):
        gaps = []
        est = ORTLRR(4, callback=lambda check: gaps.append(check.gap) or len(gaps) == 2, tol=1e-9)
        est.fit(data.X)
        assert len(gaps) == 2
        assert est.solution_.stop_reason.name == "CALLBACK"
        with pytest.raises(ValueError, match="callback must be callable"):
            ORTLRR(callback=3).fit(data.X)


class TestInvariance:
    def test_permuted_samples_give_permuted_results(self, data, fitted):
        order = np.random.default_rng(0).permutation(len(data.X))
        other = ORTLRR(4, random_state=0).fit(data.X[order])
        assert same_partition(other.labels_, fitted.labels_[order])
        np.testing.assert_allclose(other.outlier_scores_, fitted.outlier_scores_[order], rtol=1e-2)

    @pytest.mark.parametrize("factor", [1e-6, 3.0, 1e9])
    def test_scale_does_not_matter(self, data, fitted, factor):
        other = ORTLRR(4, random_state=0).fit(factor * data.X)
        np.testing.assert_array_equal(other.labels_, fitted.labels_)
        np.testing.assert_allclose(
            other.X_clean_, factor * fitted.X_clean_, rtol=1e-6, atol=1e-9 * factor
        )

    def test_scale_of_single_samples_matters_to_one_view_of_the_score_only(self, data):
        """Clusters and the residual know nothing of it; `Consensus` looks at sizes, too."""
        sizes = np.random.default_rng(0).uniform(0.1, 10, len(data.X))[:, None, None]
        est, other = (
            ORTLRR(4, outliers="published", random_state=0).fit(X) for X in (data.X, sizes * data.X)
        )
        np.testing.assert_array_equal(other.labels_, est.labels_)
        np.testing.assert_allclose(other.outlier_scores_, est.outlier_scores_, rtol=1e-6)
        large = data.X.copy()
        large[7] *= 1000
        assert data.labels[7] >= 0
        assert ORTLRR(4, random_state=0).fit(large).labels_[7] == -1

    def test_number_of_threads_does_not_matter(self, data, fitted):
        other = ORTLRR(4, random_state=0, n_jobs=1).fit(data.X)
        np.testing.assert_array_equal(other.labels_, fitted.labels_)
        np.testing.assert_array_equal(other.outlier_scores_, fitted.outlier_scores_)

    def test_copies_stay_together(self, data):
        X = np.concatenate([data.X, data.X])
        est = ORTLRR(4, random_state=0).fit(X)
        n = len(data.X)
        kept = ~est.outliers_[:n] & ~est.outliers_[n:]
        assert kept.mean() > 0.8
        np.testing.assert_array_equal(est.labels_[:n][kept], est.labels_[n:][kept])

    @pytest.mark.parametrize("factor", [0, 1e-9])
    @pytest.mark.parametrize("normalize", [True, False])
    def test_samples_without_content_spoil_nothing(self, data, factor, normalize):
        X, labels = data.X.copy(), data.labels.copy()
        X[5] *= factor
        est = ORTLRR(4, normalize=normalize, random_state=0).fit(X)
        others = np.arange(len(X)) != 5
        assert metrics.outlier_auc(labels[others], est.outlier_scores_[others]) > 0.99
        assert metrics.clustering_accuracy(labels[others], est.labels_[others]) > 0.97
        assert np.isfinite(est.outlier_scores_).all()
        assert np.isfinite(est.X_clean_).all()
        assert np.isfinite(est.transform(X[4:7])).all()


class TestRange:
    """Samples of sizes that a floating type hardly has."""

    @staticmethod
    def small():
        return datasets.make_tensor_subspaces(8, 4, 2, 1, 15, random_state=0).X

    def test_single_precision_sees_samples_of_zeros_as_double_does(self):
        X = self.small()
        X[3] = 0
        single, double = (ORTLRR(2, random_state=0).fit(X.astype(t)) for t in ("f4", "f8"))
        np.testing.assert_array_equal(single.labels_, double.labels_)
        np.testing.assert_allclose(
            single.outlier_scores_, double.outlier_scores_, rtol=0.02, atol=0.15
        )
        nothing = ORTLRR(2, random_state=0).fit(np.zeros((10, 4, 3), "f4"))
        assert np.isfinite(nothing.outlier_scores_).all()

    @pytest.mark.parametrize(("dtype", "size"), [("f4", 3e38), ("f8", 1e307), ("f4", 1e-30)])
    def test_norms_may_be_larger_than_entries_can_be(self, dtype, size):
        X = self.small()
        X /= np.abs(X).max()
        expected = ORTLRR(2, random_state=0).fit(X.astype(dtype))
        est = ORTLRR(2, random_state=0).fit((size * X).astype(dtype))
        np.testing.assert_array_equal(est.labels_, expected.labels_)
        np.testing.assert_allclose(est.X_clean_ / size, expected.X_clean_, atol=1e-5)
        np.testing.assert_array_equal(est.predict((size * X).astype(dtype)), est.labels_)
        assert (est.predict((size * X[~est.outliers_] * 0.999).astype(dtype)) >= 0).all()

    def test_what_has_no_norm_is_named(self):
        X = self.small()
        X = X / np.abs(X).max() * 1.7e308
        with pytest.raises(ValueError, match=r"^X has samples whose norm is above 1\.8e\+308"):
            ORTLRR(2).fit(X)
        with pytest.raises(ValueError, match=r"^dictionary has samples whose norm"):
            ORTLRR(2, dictionary=X).fit(self.small())

    @pytest.mark.parametrize("kind", [ORTLRR, TensorOutlierDetector])
    def test_new_samples_out_of_range_are_refused(self, kind):
        X = self.small().astype("f4")
        est = kind(normalize=False, random_state=0).fit(X)
        new = X[:2] + np.float32(0.1)
        for method in (est.predict, est.score_samples, est.transform):
            with pytest.raises(ValueError, match=r"^X has entries of size .*e\+19"):
                method(new * np.float32(1e20))
        assert (est.predict(new * np.float32(1e7)) == -1).all()
        assert np.isfinite(est.score_samples(new * np.float32(1e-20))).all()

    @pytest.mark.parametrize("kind", [ORTLRR, TensorOutlierDetector])
    def test_no_score_is_no_inlier(self, kind, monkeypatch):
        X = self.small()
        est = kind(random_state=0).fit(X)
        monkeypatch.setattr(type(est), "_scores", lambda self, new: np.array([np.nan, 0.0]))
        assert list(est.predict(X[:2] + 0.01) == -1) == [True, False]


class TestDecision:
    def test_one_cluster(self, data):
        est = ORTLRR(1, random_state=0).fit(data.X)
        assert set(est.labels_) == {-1, 0}

    def test_no_contamination_flags_nothing(self, data):
        est = ORTLRR(4, contamination=0, random_state=0).fit(data.X)
        assert not est.outliers_.any()
        assert set(est.labels_) == {0, 1, 2, 3}

    @pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
    def test_contamination_flags_its_share(self, data, share):
        est = ORTLRR(4, contamination=share, random_state=0).fit(data.X)
        assert est.outliers_.sum() == round(share * len(data.X))
        assert est.outlier_scores_[est.outliers_].min() > est.outlier_scores_[~est.outliers_].max()

    def test_no_detector_keeps_everything(self, data):
        est = ORTLRR(4, outliers=None, random_state=0).fit(data.X)
        assert not est.outliers_.any()

    @pytest.mark.parametrize("outliers", ["auto", "published"])
    def test_not_everything_can_be_an_outlier(self, outliers):
        X = np.random.default_rng(0).normal(size=(30, 8, 4))
        est = ORTLRR(2, outliers=outliers, random_state=0).fit(X)
        assert est.outliers_.sum() <= 28
        assert len(np.unique(est.labels_[est.labels_ >= 0])) == 2

    def test_identical_samples_are_no_outliers(self):
        X = np.tile(np.random.default_rng(0).normal(size=(1, 6, 4)), (20, 1, 1))
        est = ORTLRR(1, random_state=0).fit(X)
        assert not est.outliers_.any()

    def test_strategies_are_objects(self, data):
        est = ORTLRR(
            4,
            outliers=Residual(),
            graph=graph.Nearest(n_neighbors=8, tree=False),
            partition=Cut(KMeansRows(n_init=3)),
            random_state=0,
        ).fit(data.X)
        assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.99


class TestNumberOfClusters:
    def test_it_is_found(self, data):
        est = ORTLRR(random_state=0).fit(data.X)
        assert est.n_clusters_ == 4
        assert 0.5 < est.n_clusters_confidence_ <= 1
        assert metrics.clustering_accuracy(data.labels, est.labels_) == 1

    def test_confidence_is_low_without_structure(self):
        X = np.random.default_rng(0).normal(size=(80, 10, 6))
        est = ORTLRR(random_state=0).fit(X)
        assert est.n_clusters_ == 1 or est.n_clusters_confidence_ < 0.5


class TestRelabel:
    def test_threshold_and_contamination_without_solving(self, data, monkeypatch):
        est = ORTLRR(4, random_state=0).fit(data.X)
        monkeypatch.setattr("tubal.estimators.lowrank.solve", None)  # a call would fail
        labels, threshold = est.labels_.copy(), est.threshold_
        assert est.relabel(contamination=0.3) is est
        assert est.outliers_.sum() == round(0.3 * len(data.X))
        np.testing.assert_array_equal(est.labels_ == -1, est.outliers_)
        value = float(np.sort(est.outlier_scores_)[-5])
        assert est.relabel(threshold=value).outliers_.sum() == 4
        np.testing.assert_array_equal(est.relabel(contamination="auto").labels_, labels)
        assert est.threshold_ == threshold
        assert not est.relabel(threshold=np.inf).outliers_.any()

    def test_it_equals_a_new_fit(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X).relabel(contamination=0.3)
        new = ORTLRR(4, random_state=0, contamination=0.3).fit(data.X)
        np.testing.assert_array_equal(est.labels_, new.labels_)
        assert est.threshold_ == new.threshold_

    def test_the_number_of_clusters_can_change(self, data):
        est = ORTLRR(3, random_state=0).fit(data.X).relabel(n_clusters=2)
        assert est.n_clusters_ == 2
        assert est.relabel(contamination=0.2).n_clusters_ == 2
        assert est.relabel(n_clusters="auto", contamination="auto").n_clusters_ == 4

    def test_the_detector_leaves_enough_samples_for_the_new_number(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X)
        few = int((~est.outliers_).sum()) + 5
        expected = ORTLRR(few, random_state=0).fit(data.X)
        est.relabel(n_clusters=few, contamination="auto")
        assert est.threshold_ == expected.threshold_
        assert est.n_clusters_ == few == (~est.outliers_).sum()
        est.relabel(contamination="auto", recut=False)  # still enough for those that stand
        assert est.threshold_ == expected.threshold_
        assert est.relabel(contamination="auto", n_clusters=4).threshold_ < expected.threshold_

    def test_too_few_samples_for_an_estimated_number(self, data):
        est = ORTLRR(random_state=0).fit(data.X)
        with pytest.raises(ValueError, match=r"only 0 of 160 samples .* fewer than 1: lower"):
            est.relabel(threshold=-1.0)
        with pytest.raises(ValueError, match=r"only 0 of 160 samples .* fewer than n_clusters=3"):
            est.relabel(threshold=-1.0, n_clusters=3)

    def test_parameters_set_after_the_fit_do_not_matter(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X)
        expected = est.predict(data.clean[:40]), est.score_samples(data.clean[:40])
        est.set_params(graph="nonsense", normalize=False, contamination=7, dictionary="other")
        np.testing.assert_array_equal(est.predict(data.clean[:40]), expected[0])
        np.testing.assert_array_equal(est.score_samples(data.clean[:40]), expected[1])
        assert est.relabel(contamination=0.3).outliers_.sum() == round(0.3 * len(data.X))

    def test_predict_follows(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X).relabel(threshold=np.inf)
        assert (est.predict(data.X) >= 0).all()

    def test_errors_leave_the_fit_alone(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X)
        before = est.labels_.copy()
        for wrong in (
            {"threshold": 1.0, "contamination": 0.1},
            {"threshold": np.nan},
            {"threshold": "high"},
            {"threshold": np.True_},
            {"threshold": -1.0},
            {"contamination": 0.6},
            {"contamination": -0.1},
            {"n_clusters": 0},
            {"n_clusters": 1000},
        ):
            with pytest.raises(ValueError, match=r"threshold|contamination|n_clusters"):
                est.relabel(**wrong)
            np.testing.assert_array_equal(est.labels_, before)


class TestRelabelWithoutCut:
    """`relabel(recut=False)`: the clusters of the last cut stand, only the threshold moves."""

    @staticmethod
    def naive(est, cut, threshold, n_neighbors=5):
        """Return labels sample by sample, from the whole table of similarities."""
        similarity = est._fitted.similarity.tile(np.arange(len(cut)))
        members = np.flatnonzero(cut >= 0)
        labels = np.full(len(cut), -1)
        for j in np.flatnonzero(est.outlier_scores_ <= threshold):
            labels[j] = cut[j]
            if cut[j] == -1:
                near = members[np.argsort(-similarity[j, members])[:n_neighbors]]
                votes = [similarity[j, near[cut[near] == k]].sum() for k in range(est.n_clusters_)]
                labels[j] = np.argmax(votes) if max(votes) > 0 else -1
        return labels

    def test_it_equals_the_naive_version(self, data):
        est = ORTLRR(4, graph="nearest", random_state=0).fit(data.X)
        cut, scores = est.labels_.copy(), np.sort(est.outlier_scores_)
        for threshold in (scores[0] - 1, *scores[::17], scores[-10], scores[-1], np.inf):
            est.relabel(threshold=threshold, recut=False)
            np.testing.assert_array_equal(est.labels_, self.naive(est, cut, threshold))
            assert est.threshold_ == threshold

    @pytest.mark.parametrize("graph", ["auto", "published"])
    def test_it_depends_on_the_last_threshold_only(self, data, graph):
        est = ORTLRR(4, graph=graph, random_state=0).fit(data.X)
        before = est.labels_.copy(), est.threshold_
        direct = est.relabel(contamination=0.05, recut=False).labels_
        est.relabel(contamination=0.5, recut=False).relabel(threshold=np.inf, recut=False)
        np.testing.assert_array_equal(est.relabel(contamination=0.05, recut=False).labels_, direct)
        est.relabel(threshold=before[1], recut=False)
        np.testing.assert_array_equal(est.labels_, before[0])

    def test_the_next_cut_is_what_stands(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X).relabel(contamination=0.5)
        cut = est.labels_.copy()
        est.relabel(threshold=np.inf, recut=False)
        kept = cut >= 0
        np.testing.assert_array_equal(est.labels_[kept], cut[kept])
        assert (est.labels_ >= 0).all()
        assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.99

    def test_only_the_decision_changes(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X)
        affinity, embedding = est.affinity_, est.embedding_
        est.relabel(contamination=0.4, recut=False)
        assert est.affinity_ is affinity
        assert est.embedding_ is embedding
        np.testing.assert_array_equal(est.outliers_, est.labels_ == -1)
        assert est.outliers_.sum() == round(0.4 * len(data.X))
        np.testing.assert_array_equal(est.predict(data.X), est.labels_)

    def test_everything_may_be_flagged(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X).relabel(threshold=-1.0, recut=False)
        assert est.outliers_.all()
        assert (est.predict(data.clean[:5]) == -1).all()

    def test_errors_leave_the_fit_alone(self, data):
        est = ORTLRR(4, random_state=0).fit(data.X)
        before = est.labels_.copy()
        for wrong in ({"recut": "no"}, {"recut": False, "n_clusters": 3}):
            with pytest.raises(ValueError, match="recut"):
                est.relabel(threshold=np.inf, **wrong)
            np.testing.assert_array_equal(est.labels_, before)


@pytest.mark.slow
class TestNewSamples:
    @pytest.mark.parametrize("missing", [0.0, 0.1])
    def test_held_out_halves(self, missing):
        data = datasets.make_tensor_subspaces(
            40, 20, 4, 4, 80, outliers=0.2, missing=missing, random_state=0
        )
        order = np.random.default_rng(0).permutation(len(data.X))
        old, new = np.array_split(order, 2)
        whole = ORTLRR(4, random_state=0).fit(data.X)
        half = ORTLRR(4, random_state=0).fit(data.X[old])
        found = half.predict(data.X[new])
        kept = whole.labels_[new] >= 0
        matched = metrics.match_labels(whole.labels_[new][kept], found[kept])
        assert np.mean(matched == whole.labels_[new][kept]) >= 0.99
        assert metrics.outlier_auc(data.outliers[new], -half.score_samples(data.X[new])) >= 0.99

    @pytest.mark.parametrize("missing", [0.0, 0.1])
    @pytest.mark.parametrize("dictionary", ["data", "identity"])
    def test_almost_old_samples_get_almost_what_the_fit_gave(self, missing, dictionary):
        data = problem(missing=missing)
        est = ORTLRR(4, dictionary=dictionary, random_state=0, tol=1e-7).fit(data.X)
        near = data.X * (1 + 1e-5 * np.random.default_rng(0).normal(size=data.X.shape))
        scale = np.abs(est.X_clean_).max()
        np.testing.assert_allclose(est.transform(near), est.X_clean_, atol=1e-2 * scale)
        kept = ~est.outliers_
        assert np.mean((est.predict(near) == est.labels_)[kept]) > 0.97

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"contamination": 0},
            {"solver": "published", "tol": None},
            {"normalize": False, "outliers": "published", "graph": "published"},
            {"dictionary": "identity"},
            {"n_clusters": 100, "outliers": None},
        ],
    )
    @pytest.mark.parametrize("missing", [0.0, 0.1])
    def test_old_samples_keep_what_the_fit_gave_them(self, options, missing):
        data = problem(missing=missing)
        est = ORTLRR(**{"n_clusters": 4, "random_state": 0, **options}).fit(data.X)
        order = np.random.default_rng(0).permutation(len(data.X))
        X = data.X[order]
        np.testing.assert_array_equal(est.predict(X), est.labels_[order])
        np.testing.assert_array_equal(-est.score_samples(X), est.outlier_scores_[order])
        np.testing.assert_allclose(est.transform(X), est.X_clean_[order], rtol=1e-12)
        assert est.predict(X[3:4])[0] == est.labels_[order[3]]

    def test_what_the_caller_does_to_the_data_later_does_not_matter(self, data):
        X = data.X.copy()
        est = ORTLRR(4, normalize=False, random_state=0).fit(X)
        expected = est.predict(data.clean[:20])
        X *= 0
        np.testing.assert_array_equal(est.predict(data.clean[:20]), expected)

    def test_filters_of_warnings_are_left_alone(self, data):
        """They belong to the process: changed in several threads they do not come back."""
        before = list(warnings.filters)
        for _ in range(3):
            ORTLRR(4, random_state=0).fit(data.X)
            assert list(warnings.filters) == before

    def test_threads_of_the_caller(self, data, fitted):
        before = [pool["num_threads"] for pool in threadpool_info()]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: fitted.predict(data.clean[:30]), range(8)))
        for labels in found:
            np.testing.assert_array_equal(labels, found[0])
        assert [pool["num_threads"] for pool in threadpool_info()] == before

    def test_decision_function_and_predict_agree(self, data, fitted):
        decision = fitted.decision_function(data.X)
        np.testing.assert_allclose(decision, fitted.score_samples(data.X) - fitted.offset_)
        np.testing.assert_array_equal(fitted.predict(data.X) == -1, decision < 0)

    def test_a_sample_of_nothing_known_is_an_outlier(self, data, fitted):
        strange = np.random.default_rng(5).normal(size=(20, 30, 10))
        assert (fitted.predict(strange) == -1).mean() > 0.9

    def test_scale_matters_to_one_view_of_the_score_only(self, data, fitted):
        """A multiple of a sample of the fit is a new one, and `Consensus` looks at its size."""
        assert (fitted.predict(1e6 * data.X) == -1).all()
        est = ORTLRR(4, outliers="published", random_state=0).fit(data.X)
        np.testing.assert_array_equal(est.predict(1e6 * data.X), est.labels_)

    def test_missing_entries_are_filled(self, data, fitted):
        X = data.clean[~data.outliers][:10].copy()
        holes = np.random.default_rng(0).random(X.shape) < 0.1
        clean = fitted.transform(np.where(holes, np.nan, X))
        complete = fitted.transform(X)
        assert np.linalg.norm(clean - complete) < 0.25 * np.linalg.norm(complete)

    def test_wrong_shapes_are_refused(self, data, fitted):
        with pytest.raises(ValueError, match=r"samples of shape \(30, 9\)"):
            fitted.predict(data.X[:, :, :9])
        with pytest.raises(ValueError, match="features"):
            fitted.predict(data.X[:, :9])


class TestDetector:
    def test_it_is_the_model_of_the_clusterer(self, data, fitted):
        est = TensorOutlierDetector().fit(data.X)
        np.testing.assert_array_equal(est.outlier_scores_, fitted.outlier_scores_)
        np.testing.assert_array_equal(est.fit_predict(data.X) == -1, fitted.outliers_)
        np.testing.assert_array_equal(est.predict(data.X) == -1, fitted.predict(data.X) == -1)
        assert set(est.predict(data.X)) == {-1, 1}

    def test_contamination(self, data):
        est = TensorOutlierDetector(contamination=0.25).fit(data.X)
        assert (est.fit_predict(data.X) == -1).sum() == len(data.X) // 4

    def test_relabel(self, data):
        est = TensorOutlierDetector().fit(data.X)
        threshold = est.threshold_
        assert (est.relabel(contamination=0.25).predict(data.X) == -1).sum() == len(data.X) // 4
        assert not est.relabel(threshold=np.inf).outliers_.any()
        assert est.relabel(contamination="auto").threshold_ == threshold
        assert (est.relabel(contamination=0).predict(data.X) == 1).all()


class TestCompleter:
    def test_low_rank_tensors_are_recovered(self):
        data = datasets.make_tensor_subspaces(
            30, 8, 1, 2, 60, outliers=0, missing=0.2, random_state=0
        )
        est = TensorCompleter().fit(data.X[:40])
        error = np.linalg.norm(est.transform(data.X[40:]) - data.clean[40:])
        assert error < 1e-3 * np.linalg.norm(data.clean[40:])
        filled = TensorCompleter().fit_transform(data.X)
        assert np.linalg.norm(filled - data.clean) < 1e-3 * np.linalg.norm(data.clean)
        seen = ~np.isnan(data.X)
        np.testing.assert_array_equal(filled[seen], data.X[seen])

    def test_old_samples(self):
        data = problem(outliers=0, missing=0.1)
        est = TensorCompleter(tol=1e-7)
        filled = est.fit_transform(data.X)
        np.testing.assert_allclose(est.transform(data.X), filled, atol=1e-3)

    def test_complete_data_passes_through(self, data):
        est = TensorCompleter().fit(data.X)
        np.testing.assert_array_equal(est.transform(data.X), data.X)
        assert est.solution_ is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 0}, "n_clusters must be None or an integer from 1 to n_samples"),
        ({"n_clusters": 2.5}, "n_clusters must be"),
        ({"n_clusters": 1000}, "n_clusters must be"),
        ({"outliers": "maybe"}, "outliers must be one of"),
        ({"graph": "none"}, "graph must be one of"),
        ({"partition": "none"}, "partition must be one of"),
        ({"contamination": 0.7}, "contamination must be 'auto' or a number from 0 to 0.5"),
        ({"contamination": "much"}, "contamination must be"),
        ({"normalize": "yes"}, "normalize must be True or False"),
        ({"completion": "magic"}, "completion must be None, 'tnn' or a transformer"),
        ({"lam": -1}, "lam must be positive"),
        ({"lam": "large"}, "lam must be"),
        ({"transform": "wavelet"}, "transform"),
        ({"dictionary": "other"}, "dictionary must be"),
        ({"solver": "other"}, "solver must be"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"random_state": "seed"}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
        ({"completion": TensorCompleter}, "completion must be"),
        ({"contamination": 0.5, "n_clusters": 100}, "leaves 80, fewer than n_clusters=100"),
        ({"contamination": 0.41, "n_clusters": 95}, "leaves 94, fewer than n_clusters=95"),
    ],
)
def test_bad_parameters_are_named(data, options, words, monkeypatch):
    if not {"transform", "dictionary"} & set(options):
        monkeypatch.setattr("tubal.estimators.lowrank.solve", None)  # before any work starts
    with pytest.raises(ValueError, match=words):
        ORTLRR(**options).fit(data.X)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        (Consensus, {"n_neighbors": 0}),
        (Consensus, {"false_alarms": np.nan}),
        (Consensus, {"company": 0}),
        (graph.Nearest, {"n_neighbors": 2.5}),
        (graph.Nearest, {"tree": "yes"}),
        (graph.Absolute, {"scale_rows": 1}),
        (Discretise, {"max_iter": -1}),
        (KMeansRows, {"n_init": 0}),
        (ModularityKMeans, {"n_init": 0}),
        (Cut, {"offset": -1}),
        (Cut, {"assign": "kmeans"}),
    ],
)
def test_bad_strategies_are_named(strategy, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        strategy(**options)


def test_a_failed_fit_changes_nothing(data):
    est = ORTLRR(4, random_state=0).fit(data.X)
    expected = est.predict(data.clean[:30])
    with pytest.raises(ValueError, match="lam"):
        est.set_params(lam=-1).fit(data.X[:, :10])
    with pytest.raises(RuntimeError, match="stop"):
        est.set_params(lam="auto", callback=_fail).fit(data.X[:, :10])
    np.testing.assert_array_equal(est.predict(data.clean[:30]), expected)
    assert est.sample_shape_ == (30, 10)
    est.set_params(callback=None).fit(data.X[:, :10])
    assert est.sample_shape_ == (10, 10)


def _fail(check):
    raise RuntimeError("stop")


class TestCompletion:
    def test_new_samples_are_completed_too(self):
        data = problem(missing=0.1)
        est = ORTLRR(4, completion="tnn", random_state=0).fit(data.X[:100])
        assert isinstance(est.completion_, TensorCompleter)
        filled = est.completion_.transform(data.X[100:])
        np.testing.assert_array_equal(est.predict(data.X[100:]), est.predict(filled))
        est.fit(np.nan_to_num(data.X))
        assert not hasattr(est, "completion_")

    @pytest.mark.parametrize("kind", [ORTLRR, TensorOutlierDetector])
    def test_holes_are_left_to_the_program(self, kind):
        est = kind(random_state=0).fit(problem(missing=0.4).X)
        assert not hasattr(est, "completion_")
        assert np.isfinite(est.X_clean_).all()

    @pytest.mark.parametrize(
        ("completion", "words"),
        [
            (FunctionTransformer(), "missing or infinite values"),
            (FunctionTransformer(lambda X: np.nan_to_num(X)[:, :, :3]), r"shape \(160, 30, 3\)"),
        ],
    )
    def test_what_a_completion_returns_is_checked(self, completion, words):
        with pytest.raises(ValueError, match=f"completion must return.*{words}"):
            ORTLRR(4, completion=completion).fit(problem(missing=0.1).X)

    def test_bad_parameters_are_found_before_the_completion(self, monkeypatch):
        monkeypatch.setattr("tubal.estimators.completer.solve", None)  # a call would fail
        X = problem(missing=0.1).X
        for wrong in ({"lam": 0}, {"solver": 1}, {"tol": -1}, {"max_iter": 0}, {"callback": 1}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                ORTLRR(completion="tnn", **wrong).fit(X)


def test_given_dictionaries(data):
    atoms = data.clean[~data.outliers][::2]
    est = ORTLRR(4, dictionary=atoms, random_state=0).fit(data.X)
    assert metrics.clustering_accuracy(data.labels, est.labels_) > 0.99
    assert metrics.outlier_auc(data.outliers, est.outlier_scores_) > 0.999
    assert np.mean(est.predict(data.X) == est.labels_) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("transform", ["dft", "dct"])
def test_held_out_halves_of_the_problem_of_the_paper(transform):
    data = datasets.make_tensor_subspaces(transform=transform, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.X))
    old, new = np.array_split(order, 2)
    whole = ORTLRR(5, transform=transform, random_state=0).fit(data.X)
    half = ORTLRR(5, transform=transform, random_state=0).fit(data.X[old])
    assert metrics.support_distance(data.outliers, whole.outliers_) == 0
    found = half.predict(data.X[new])
    expected = whole.labels_[new]
    kept = expected >= 0
    matched = metrics.match_labels(expected[kept], found[kept])
    assert np.mean(matched == expected[kept]) >= 0.99
    assert metrics.outlier_auc(data.outliers[new], -half.score_samples(data.X[new])) >= 0.99
