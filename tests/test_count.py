"""The number of clusters where the spectrum alone does not tell it."""

import numpy as np
import pytest
import scipy.sparse

from tubal.spectral import Cut, check_affinity, estimate_n_clusters
from tubal.spectral.count import density_counts


def rings(sizes, ties=3, seed=0):
    """Rings of vertices, as of objects seen from all sides, each tied to the next one."""
    rng = np.random.default_rng(seed)
    starts = np.append(0, np.cumsum(sizes))
    W = np.zeros((starts[-1], starts[-1]))
    for start, size in zip(starts, sizes, strict=False):
        i = np.arange(size)
        for hop in (1, 2):
            W[start + i, start + (i + hop) % size] = rng.uniform(0.6, 1, size) / hop
    for k in range(len(sizes) - 1):
        ends = rng.integers(starts[k : k + 2], starts[k + 1 : k + 3], (ties, 2))
        W[ends[:, 0], ends[:, 1]] = 0.15
    return check_affinity(np.maximum(W, W.T))


@pytest.mark.parametrize("sizes", [[90] * 2, [60] * 5, [70] * 6, [50, 70, 90, 110]])
@pytest.mark.parametrize("ties", [1, 6])
def test_rings_are_counted(sizes, ties):
    count = estimate_n_clusters(rings(sizes, ties), random_state=0)
    assert count.n_clusters == len(sizes)
    assert count.confidence == 1
    assert np.argmax(count.gaps) + 1 > 2 * len(sizes)  # the spectrum alone sees pieces of rings


def test_counts_do_not_depend_on_scale_and_order():
    W = rings([60, 80, 70], seed=1)
    order = np.random.default_rng(0).permutation(W.shape[0])
    expected = density_counts(W)
    assert expected == (3, 3, 3)
    assert density_counts(check_affinity(1e-9 * W)) == expected
    assert density_counts(check_affinity(W[order][:, order])) == expected


def test_a_clear_gap_is_not_questioned(monkeypatch):
    monkeypatch.setattr("tubal.spectral.count.density_counts", lambda W: pytest.fail("asked"))
    W = np.kron(np.eye(4), np.ones((5, 5))) + 0.01
    assert estimate_n_clusters(W).n_clusters == 4


@pytest.mark.parametrize("counts", [(), (5, 5, 5), (2, 3, 3), (40, 30, 8)])
def test_an_unclear_gap_gives_way_to_densities(counts, monkeypatch):
    monkeypatch.setattr("tubal.spectral.count.density_counts", lambda W: counts)
    count = estimate_n_clusters(rings([60] * 5), random_state=0)
    largest = int(np.argmax(count.gaps)) + 1
    if not counts:
        assert count.n_clusters == largest
    else:
        inside = count.gaps[min(counts) - 1 : max(counts)]
        assert count.n_clusters == min(counts) + np.argmax(inside)
        agreement = max(0.0, 1 - np.log2(max(counts) / min(counts)))
        assert count.confidence >= agreement
    small = estimate_n_clusters(rings([60] * 5), max_clusters=4, random_state=0)
    assert 1 <= small.n_clusters <= 4


def test_where_densities_mean_nothing():
    ring = rings([60])
    alone = scipy.sparse.block_diag([ring, np.zeros((1, 1))])
    path = np.diag(np.ones(59), 1)
    assert density_counts(check_affinity(alone)) == ()  # in pieces
    assert density_counts(check_affinity(path + path.T)) == ()  # ends have one neighbour
    assert density_counts(check_affinity(np.ones((30, 30)))) == ()  # dense
    assert density_counts(check_affinity(np.eye(20))) == ()


def test_candidates_are_listed_with_their_support():
    W = np.kron(np.eye(4), np.ones((6, 6))) + 0.05
    count = estimate_n_clusters(W)
    assert next(iter(count.candidates)) == count.n_clusters == 4
    assert len(count.candidates) >= 3
    assert sum(count.candidates.values()) == pytest.approx(1)
    gaps = {k: count.gaps[k - 1] for k in count.candidates}
    assert max(gaps, key=gaps.get) == 4
    assert Cut()(W, 3).candidates == {3: 1.0}
    assert Cut()(W).candidates == count.candidates
