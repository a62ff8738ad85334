"""Scores against the truth: equal to scores by other means, and deaf to names and order."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as sk

import naive
from tubal import metrics
from tubal.datasets import make_tensor_subspaces
from tubal.input import to_paper
from tubal.metrics import (
    clustering_accuracy,
    match_labels,
    nmi,
    outlier_auc,
    outlier_f1,
    purity,
    relative_error,
    row_space_error,
    support_distance,
)
from tubal.problem import Lambda
from tubal.solvers import solve
from tubal.transforms import RandomOrthogonal, resolve

CLUSTERINGS = (clustering_accuracy, purity, nmi)
AVERAGES = ("min", "geometric", "arithmetic", "max")
MATRICES = {
    "dft": naive.dft_matrix,
    "dct": naive.dct_matrix,
    "rom": lambda n3: RandomOrthogonal(3, n3).matrix,
}


def pairs(low_true=-1, low_pred=-1, high=3, max_size=14):
    """Two label vectors of one length, with at least one normal sample."""
    pair = st.tuples(st.integers(low_true, high), st.integers(low_pred, high))
    lists = st.lists(pair, min_size=1, max_size=max_size).map(np.array)
    return lists.filter(lambda both: (both[:, 0] >= 0).any()).map(lambda both: both.T)


def brute_accuracy(labels_true, labels_pred):
    """The best of all ways to name clusters after classes, a cluster at most once each."""
    normal = [(t, p) for t, p in zip(labels_true, labels_pred, strict=True) if t != -1]
    classes = sorted({t for t, _ in normal})
    clusters = sorted({p for _, p in normal if p != -1})
    names = classes + [None] * len(clusters)
    best = 0
    for naming in permutations(names, len(clusters)):
        name = dict(zip(clusters, naming, strict=True))
        best = max(best, sum(p != -1 and name[p] == t for t, p in normal))
    return best / len(normal)


def naive_nmi(labels_true, labels_pred):
    """Geometric NMI by sums over all pairs of labels; the removed tell nothing."""
    normal = [(t, p) for t, p in zip(labels_true, labels_pred, strict=True) if t != -1]
    n = len(normal)

    def share(condition):
        return sum(condition(t, p) for t, p in normal) / n

    def entropy(which):
        values = {pair[which] for pair in normal}
        shares = [share(lambda *pair, v=v: pair[which] == v) for v in values]
        return -sum(s * np.log(s) for s in shares)

    told = 0.0
    for a, b in {(t, p) for t, p in normal if p != -1}:
        both = share(lambda t, p, a=a, b=b: (t, p) == (a, b))
        alone = share(lambda t, _, a=a: t == a) * share(lambda _, p, b=b: p == b)
        told += both * np.log(both / alone)
    return told, entropy(0), entropy(1)


# ---- clusterings --------------------------------------------------------------------------------


@given(pairs())
def test_accuracy_is_the_best_naming(labels):
    assert clustering_accuracy(*labels) == pytest.approx(brute_accuracy(*labels), abs=1e-15)


@given(pairs())
def test_matched_labels_give_the_accuracy(labels):
    truth, pred = labels
    matched = match_labels(truth, pred)
    normal = truth >= 0
    assert np.mean(matched[normal] == truth[normal]) == pytest.approx(
        clustering_accuracy(truth, pred)
    )
    # The same partition: labels are renamed one to one, and the removed stay removed.
    np.testing.assert_array_equal(matched == -1, pred == -1)
    np.testing.assert_array_equal(matched[:, None] == matched, pred[:, None] == pred)


def test_clusters_without_a_class_get_new_labels():
    truth, pred = [4, 4, 4, 2, 2, -1, -1], [9, 9, 8, 7, 7, 6, 5]
    np.testing.assert_array_equal(match_labels(truth, pred), [4, 4, 7, 2, 2, 6, 5])


def test_matching_is_better_than_taking_the_largest_first():
    """Cluster 0 holds most of class 0, yet must go to class 1."""
    truth = [0] * 9 + [1] * 5
    pred = [0] * 5 + [1] * 4 + [0] * 5
    assert clustering_accuracy(truth, pred) == pytest.approx(9 / 14)
    np.testing.assert_array_equal(np.unique(match_labels(truth, pred)[9:]), [1])


@given(pairs())
def test_purity_by_counting(labels):
    truth, pred = labels
    normal = truth >= 0
    correct = sum(
        np.bincount(truth[normal & (pred == cluster)], minlength=1).max() for cluster in range(4)
    )
    assert purity(truth, pred) == pytest.approx(correct / normal.sum(), abs=1e-15)


@given(pairs(), st.sampled_from(AVERAGES))
def test_information_by_definition(labels, average):
    told, *entropies = naive_nmi(*labels)
    assume(min(entropies) > 0)
    means = {
        "min": min(entropies),
        "geometric": np.sqrt(np.prod(entropies)),
        "arithmetic": np.mean(entropies),
        "max": max(entropies),
    }
    found = nmi(*labels, average_method=average)
    assert found == pytest.approx(told / means[average], abs=1e-12)


@given(pairs(low_true=0, low_pred=0), st.sampled_from(AVERAGES))
def test_information_is_that_of_scikit_learn(labels, average):
    expected = sk.normalized_mutual_info_score(*labels, average_method=average)
    assert nmi(*labels, average_method=average) == pytest.approx(expected, abs=1e-12)


@given(pairs(low_true=0), st.sampled_from(AVERAGES))
def test_removed_samples_are_worth_less_than_a_cluster(labels, average):
    limit = sk.normalized_mutual_info_score(*labels, average_method=average)
    assert nmi(*labels, average_method=average) <= limit + 1e-12


def test_removing_a_class_does_not_pay():
    """As an ordinary cluster the removed class would make a perfect score."""
    truth = np.repeat([0, 1, 2], 10)
    pred = np.where(truth == 2, -1, truth)
    assert sk.normalized_mutual_info_score(truth, pred) == pytest.approx(1.0)
    assert nmi(truth, pred) == pytest.approx(2 / 3)
    assert clustering_accuracy(truth, pred) == purity(truth, pred) == pytest.approx(2 / 3)


@pytest.mark.parametrize("score", CLUSTERINGS)
@pytest.mark.parametrize("truth", [[0, 0, 1, 1], [3, 3, 3, 3], [0, 1, 2, 3]])
def test_removing_everything_is_worth_nothing(score, truth):
    assert score(truth, [-1] * 4) == 0


@pytest.mark.parametrize("score", CLUSTERINGS)
@pytest.mark.parametrize("truth", [[0, 0, 1, 1], [3, 3, 3, 3], [0, 1, 2, 3], [5]])
def test_the_truth_is_perfect(score, truth):
    assert score(truth, truth) == pytest.approx(1.0, abs=1e-12)


def test_trivial_partitions():
    truth = [0, 0, 1, 1]
    assert clustering_accuracy(truth, [0, 0, 0, 0]) == purity(truth, [0, 0, 0, 0]) == 0.5
    assert clustering_accuracy(truth, [0, 1, 2, 3]) == 0.5
    assert purity(truth, [0, 1, 2, 3]) == 1.0
    for average in AVERAGES:
        assert nmi(truth, [0, 0, 0, 0], average_method=average) == 0
        assert nmi([0, 0, 0, 0], truth, average_method=average) == 0
    # Singletons: I = H(classes) = log 2 and H(clusters) = log 4.
    values = [nmi(truth, [0, 1, 2, 3], average_method=average) for average in AVERAGES]
    np.testing.assert_allclose(values, [1, 0.5**0.5, 2 / 3, 0.5], rtol=1e-12)


@pytest.mark.parametrize("score", CLUSTERINGS)
@given(labels=pairs(), seed=st.integers(0, 99))
def test_names_and_order_do_not_matter(score, labels, seed):
    truth, pred = labels
    rng = np.random.default_rng(seed)
    # The last name belongs to index -1, so that -1 stays -1.
    classes, clusters = (np.append(rng.permutation(20)[:4], -1) for _ in range(2))
    order = rng.permutation(len(truth))
    renamed = score(classes[truth][order], clusters[pred][order])
    assert renamed == pytest.approx(score(truth, pred), abs=1e-12)


@pytest.mark.parametrize("score", CLUSTERINGS)
@given(labels=pairs(), extra=st.lists(st.integers(-1, 5), max_size=5))
def test_true_outliers_do_not_count(score, labels, extra):
    truth, pred = labels
    more = np.append(truth, [-1] * len(extra)), np.append(pred, np.array(extra, dtype=int))
    assert score(*more) == pytest.approx(score(truth, pred), abs=1e-12)


@pytest.mark.parametrize("score", CLUSTERINGS)
def test_whole_floats_and_other_kinds_of_labels(score):
    truth, pred = [0, 0, 1, 1, 1], [1, 1, 0, 0, 1]
    expected = score(truth, pred)
    assert isinstance(expected, float)
    assert score(np.array(truth, dtype=float), np.array(pred, dtype=np.uint8)) == expected
    assert score(np.array(truth, dtype=bool), tuple(pred)) == expected


# ---- outliers -----------------------------------------------------------------------------------


@st.composite
def detections(draw):
    """Flags of both kinds and scores with ties."""
    rows = st.tuples(st.booleans(), st.integers(-4, 4))
    drawn = draw(st.lists(rows, min_size=2, max_size=20))
    flags = np.array([flag for flag, _ in drawn])
    assume(0 < flags.sum() < len(flags))
    return flags, np.array([score for _, score in drawn]) / 4


@given(detections())
def test_auc_counts_pairs(case):
    flags, scores = case
    difference = scores[flags][:, None] - scores[~flags]
    expected = np.mean((difference > 0) + 0.5 * (difference == 0))
    assert outlier_auc(flags, scores) == pytest.approx(expected, abs=1e-12)
    assert outlier_auc(flags, scores) == pytest.approx(sk.roc_auc_score(flags, scores), abs=1e-12)
    assert outlier_auc(flags, -scores) == pytest.approx(1 - expected, abs=1e-12)
    assert outlier_auc(flags, np.exp(3 * scores)) == outlier_auc(flags, scores)


def test_auc_of_labels_decisions_and_infinite_scores():
    flags = np.array([True, False, False, True])
    labels = [-1, 2, 0, -1]
    assert outlier_auc(labels, [3, 1, 2, 4]) == 1.0
    assert outlier_auc(labels, [np.inf, 1, -np.inf, 1]) == pytest.approx(0.875)
    # A decision: half of the sum of the rates 1/2 and 1.
    assert outlier_auc(flags, np.array([True, False, False, False])) == 0.75


@given(detections(), st.data())
def test_decisions_against_scikit_learn(case, data):
    truth, scores = case
    found = scores > data.draw(st.sampled_from([-2, -0.5, 0, 0.5]))
    if found.any() or truth.any():
        expected = sk.f1_score(truth, found)
        assert outlier_f1(truth, found) == pytest.approx(expected, abs=1e-12)
    assert support_distance(truth, found) == round(len(truth) * sk.zero_one_loss(truth, found))
    labels = np.where(found, -1, 2)
    assert outlier_f1(truth, labels) == outlier_f1(truth, found)
    assert support_distance(np.where(truth, -1, 5), labels) == support_distance(truth, found)


def test_no_outliers_and_none_found():
    nothing = np.zeros(3, dtype=bool)
    assert outlier_f1(nothing, nothing) == 1.0
    assert outlier_f1(nothing, ~nothing) == outlier_f1(~nothing, nothing) == 0.0
    assert support_distance(nothing, nothing) == 0
    assert support_distance([0, 0, 0], ~nothing) == 3


# ---- recovered tensors --------------------------------------------------------------------------


def projections(X, Y, L):
    """Relative distance of the projections onto two row spaces, in full."""
    P, Q = (
        naive.tprod(V, naive.transpose(V, L), L)
        for V in (naive.tsvd_skinny(to_paper(A), L)[2] for A in (X, Y))
    )
    return np.linalg.norm(P - Q) / np.linalg.norm(P)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("n3", [1, 4, 5])
def test_row_spaces_by_their_projections(name, n3):
    rng = np.random.default_rng(0)
    L = MATRICES[name](n3)
    transform = L if name == "rom" else name
    X, Y = rng.standard_normal((9, 2, n3)), rng.standard_normal((9, 3, n3))
    expected = projections(X, Y, L)
    assert 0.5 < expected < 2
    assert row_space_error(X, Y, transform) == pytest.approx(expected, rel=1e-10)
    near = X + 1e-6 * rng.standard_normal(X.shape)
    expected = projections(X, near, L)
    assert row_space_error(X, near, transform) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", MATRICES)
def test_row_space_does_not_change_under_mixing_from_the_left(name):
    """`A * X` with invertible A has the row space of X: only rounding is left."""
    rng = np.random.default_rng(1)
    L = MATRICES[name](4)
    X = rng.standard_normal((9, 3, 4))
    A = rng.standard_normal((3, 3, 4))
    mixed = np.moveaxis(naive.tprod(A, to_paper(X), L), 1, 0).real
    assert row_space_error(X, mixed, L if name == "rom" else name) < 1e-12


def test_row_spaces_of_hand():
    e = np.eye(3)[:, :, None]  # three samples, each one direction of its own
    assert row_space_error(e[:, :1], e[:, 1:2]) == pytest.approx(2**0.5)
    assert row_space_error(e[:, :1], e[:, :2]) == pytest.approx(1.0)
    assert row_space_error(e[:, :2], e[:, :1]) == pytest.approx(0.5**0.5)
    assert row_space_error(e[:, :1, 0], 0 * e[:, :1, 0]) == pytest.approx(1.0)


def test_slices_of_lower_rank_have_no_arbitrary_directions():
    """Constant tubes live in the mean slice alone; the others must not count."""
    X = np.repeat(np.arange(1.0, 4)[:, None, None], 5, axis=2)
    Y = X + 0.0
    Y[:, 0, 0] += 1e-3 * np.array([1.0, -1.0, 0.5])
    assert row_space_error(X, 2 * X) < 1e-12
    assert row_space_error(X, Y) == pytest.approx(2.0, rel=1e-3)  # four more slices
    assert row_space_error(X, Y, rtol=0.01) < 1e-3


def test_rank_and_tolerance_cut_small_directions():
    rng = np.random.default_rng(2)
    X = make_tensor_subspaces(12, 4, 2, 2, 10, outliers=0.0, random_state=0).clean
    noisy = X + 1e-6 * rng.standard_normal(X.shape)
    assert row_space_error(X, noisy) > 0.5
    assert row_space_error(X, noisy, rank=4) < 1e-4
    assert row_space_error(X, noisy, rtol=1e-3) < 1e-4
    assert row_space_error(X, noisy, rank=4) == pytest.approx(row_space_error(X, noisy, rtol=1e-3))
    assert row_space_error(X, noisy, rank=np.int64(4)) == row_space_error(X, noisy, rank=4)


@pytest.mark.parametrize("name", MATRICES)
def test_solutions_recover_the_row_space(name):
    """Theorem 2 of the paper: from Z to the letter, and from L among the inliers."""
    n3 = 6
    L = resolve(RandomOrthogonal(3, n3) if name == "rom" else name, n3)
    data = make_tensor_subspaces(40, n3, 3, 2, 30, outliers=0.1, transform=L, random_state=0)
    solution = solve(data.X, lam=Lambda.relative(0.5), transform=L, tol=1e-8)
    inliers = ~data.outliers
    assert row_space_error(data.clean, solution.Z, L, rtol=1e-5) < 1e-5
    assert row_space_error(data.clean, solution.L, L, keep=inliers, rtol=1e-5) < 1e-5
    assert row_space_error(data.clean, data.X, L) > 0.5
    assert row_space_error(data.clean, data.X, L, keep=inliers) < 1e-12
    assert relative_error(data.clean, solution.L, inliers) < 1e-6
    assert support_distance(data.labels, np.linalg.norm(solution.E, axis=(1, 2)) > 1e-6) == 0
    # The factors against the array they stand for.
    Z = solution.Z.to_array()
    rows = np.moveaxis(naive.transpose(Z, MATRICES[name](n3)), 1, 0).real
    expected = row_space_error(data.clean, rows, L, rank=3)
    assert row_space_error(data.clean, solution.Z, L, rank=3) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", MATRICES)
def test_coefficients_among_the_kept_samples(name):
    """As the released code compares them: rows and columns of the kept samples, and a rank.

    With so many outliers (they span everything) all of Z has another column space.
    """
    n3, matrix = 6, MATRICES[name](6)
    L = resolve(RandomOrthogonal(3, n3) if name == "rom" else name, n3)
    data = make_tensor_subspaces(20, n3, 3, 2, 20, outliers=0.5, transform=L, random_state=0)
    Z = solve(data.X, lam=Lambda.relative(0.5), transform=L, tol=1e-8).Z
    inliers = ~data.outliers
    part = Z.to_array()[inliers][:, inliers]
    U = naive.tsvd_skinny(part, matrix)[0][:, :6]
    V0 = naive.tsvd_skinny(to_paper(data.clean[inliers]), matrix)[2]
    P, Q = (naive.tprod(V, naive.transpose(V, matrix), matrix) for V in (V0, U))
    expected = np.linalg.norm(P - Q) / np.linalg.norm(P)
    found = row_space_error(data.clean, Z, L, keep=inliers, rank=6)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert row_space_error(data.clean, Z, L, rank=6) > 2 * found


def test_single_precision_has_its_own_tolerance():
    X = make_tensor_subspaces(12, 4, 2, 2, 10, outliers=0.0, random_state=0).clean
    assert row_space_error(X, X.astype(np.float32)) < 1e-5


def test_relative_error_of_hand():
    X = np.array([[[3.0, 0.0]], [[0.0, 4.0]], [[9.0, 9.0]]])
    Y = np.array([[[3.0, 1.0]], [[0.0, 4.0]], [[0.0, 0.0]]])
    assert relative_error(X, Y, np.array([True, True, False])) == pytest.approx(0.2)
    assert relative_error(X, Y) == pytest.approx((163 / 187) ** 0.5)
    assert relative_error(X, X) == 0


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [*CLUSTERINGS, match_labels])
@pytest.mark.parametrize(
    ("truth", "pred", "message"),
    [
        ([], [], r"labels_true must have one value for each sample, got shape \(0,\)"),
        ([0, 1], [[0, 1]], r"labels_pred must have one value for each sample, got shape \(1, 2\)"),
        (3, [0], r"labels_true must have one value for each sample, got shape \(\)"),
        ([0, 1], [0, 1, 1], "labels_true and labels_pred must have one length, got 2 and 3"),
        ([0, 1.5], [0, 1], "labels_true must be whole numbers, got dtype float64"),
        ([0, 1], [0, np.nan], "labels_pred must be whole numbers, got dtype float64"),
        (["a", "b"], [0, 1], r"np.unique\(labels_true, return_inverse=True\)\[1\]"),
        ([0, -2], [0, 1], r"labels_true must be -1 \(outlier\) or not negative, got -2"),
        ([-1, -1], [0, 1], "labels_true holds no normal sample: all 2 are -1"),
    ],
)
def test_bad_labels_are_named(score, truth, pred, message):
    with pytest.raises(ValueError, match=message):
        score(truth, pred)


def test_averages_are_listed():
    with pytest.raises(ValueError, match=r"average_method must be one of \['min'.*, got 'mean'"):
        nmi([0, 1], [0, 1], average_method="mean")


@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        ([True, False], [0.1, np.nan], "scores holds 1 NaN, the first at index 1"),
        ([True, False], [0.1], "outliers_true and scores must have one length, got 2 and 1"),
        ([True, True], [0.1, 0.2], "must hold outliers and normal samples, got 2 outliers of 2"),
        ([0, 2], [0.1, 0.2], "must hold outliers and normal samples, got 0 outliers of 2"),
        ([0, 1], [0.1, 0.2], "may be flags or labels of two clusters"),
        ([True, False], ["a", "b"], "scores must be real numbers, got dtype <U1"),
        ([True, False], [1j, 0], "scores must be real numbers, got dtype complex128"),
        ([[True, False]], [[0.1, 0.2]], r"outliers_true must have one value for each sample"),
        ([True, False], [[0.1, 0.2]], r"scores must have one value for each sample"),
    ],
)
def test_bad_scores_are_named(truth, scores, message):
    with pytest.raises(ValueError, match=message):
        outlier_auc(truth, scores)


@pytest.mark.parametrize("score", [outlier_f1, support_distance])
@pytest.mark.parametrize(
    ("truth", "found", "message"),
    [
        ([True, False], [True], "outliers_true and outliers_pred must have one length"),
        ([True, False], [0.5, 1], "outliers_pred must be whole numbers"),
        ([True, False], [1, 0], "outliers_pred holds the numbers 0 and 1"),
        ([], [], "outliers_true must have one value for each sample"),
    ],
)
def test_bad_decisions_are_named(score, truth, found, message):
    with pytest.raises(ValueError, match=message):
        score(truth, found)


@pytest.mark.parametrize(
    ("recovered", "options", "message"),
    [
        (np.ones((4, 2, 3)), {}, r"got shapes \(4, 2, 3\) and \(5, 2, 3\)"),
        (np.ones((5, 2, 4)), {}, r"got shapes \(5, 2, 4\) and \(5, 2, 3\)"),
        (np.full((5, 2, 3), np.nan), {}, "recovered holds 30 missing value"),
        (np.ones((5, 2, 3)), {"keep": [0, 1]}, r"keep must be a bool array of shape \(5,\)"),
        (np.ones((5, 2, 3)), {"keep": [True] * 4}, r"keep must be a bool array of shape \(5,\)"),
        (np.ones((5, 2, 3)), {"keep": [False] * 5}, "clean is zero in the samples compared"),
        (np.ones((5, 2, 3)), {"rank": 0}, "rank must be a positive integer or None, got 0"),
        (np.ones((5, 2, 3)), {"rank": 1.0}, "rank must be a positive integer or None, got 1.0"),
        (np.ones((5, 2, 3)), {"rtol": -1}, r"rtol must lie in \[0, 1\) or be None, got -1"),
        (np.ones((5, 2, 3)), {"transform": "rom"}, "transform 'rom' would be drawn anew"),
        (np.ones((5, 2, 3)), {"transform": "fft"}, "got 'fft'"),
    ],
)
def test_bad_tensors_are_named(recovered, options, message):
    with pytest.raises(ValueError, match=message):
        row_space_error(np.ones((5, 2, 3)), recovered, **options)


def test_coefficients_must_be_those_of_the_samples():
    data = make_tensor_subspaces(6, 3, 2, 1, 6, outliers=0.0, random_state=0)
    Z = solve(data.X, lam=1.0).Z
    with pytest.raises(
        ValueError, match=r"transform is Cosine\(3\), but recovered was found under"
    ):
        row_space_error(data.clean, Z, "dct")
    other = solve(data.X, lam=1.0, dictionary=data.X[:5]).Z
    with pytest.raises(ValueError, match=r"another dictionary than the 12 samples \(shape \(5, 12"):
        row_space_error(data.clean, other)
    with pytest.raises(ValueError, match=r"pass solution\.L instead"):
        row_space_error(data.clean, solve(data.X, lam=1.0, dictionary="identity").Z)
    with pytest.raises(ValueError, match="clean is zero"):
        row_space_error(0 * data.clean, Z)


def test_relative_error_rejects():
    with pytest.raises(ValueError, match=r"one shape, got \(2, 2, 1\) and \(2, 3, 1\)"):
        relative_error(np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="clean is zero"):
        relative_error(np.zeros((2, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="keep must be a bool array"):
        relative_error(np.ones((2, 2)), np.ones((2, 2)), [1, 0])
    with pytest.raises(ValueError, match="clean holds 1 missing"):
        relative_error([[1.0, np.nan]], [[1.0, 1.0]])


def test_every_score_is_public():
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)
