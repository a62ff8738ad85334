"""The number of clusters, by gaps and by what partitions show beyond chance."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tubal.graph import Nearest
from tubal.spectral import Cut, DiffusionWard, estimate_n_clusters, modularity
from tubal.spectral.chance import count_beyond_chance, numbers_of_clusters
from tubal.spectral.ward import nested_ward, ward


def similarities(labels, within, seed):
    """Random similarities up to 1, larger by `within` inside clusters."""
    rng = np.random.default_rng(seed)
    same = labels[:, None] == labels
    noise = np.triu(rng.uniform(0, 1 - within, same.shape), 1)
    table = noise + noise.T + within * same
    np.fill_diagonal(table, 1)
    return table.astype("f4")


def drawn(labels, within=0.5, seeds=(0, 1, 2)):
    """A table with clusters and two without."""
    table, chance, control = (
        similarities(labels, share, seed) for share, seed in zip((within, 0, 0), seeds, strict=True)
    )
    return table, chance, control


def parts_of(n, count=3, seed=0):
    rng = np.random.default_rng(seed)
    return [np.sort(rng.permutation(n)[: int(0.8 * n)]) for _ in range(count)]


def support_by_definition(table, chance, parts, numbers):
    """`(Q e)^2 s` and `e s` of each number of clusters, one after the other."""
    found = []
    for k in numbers:
        Q, A = [], []
        for similar in (table, chance):
            W = Nearest().of_table(similar)
            whole = DiffusionWard((12,)).nested(W, numbers, 0)[numbers.index(k)]
            Q.append(modularity(W, whole))
            scores = []
            for part in parts:
                inner = Nearest().of_table(similar[np.ix_(part, part)])
                labels = DiffusionWard((12,)).nested(inner, numbers, 0)[numbers.index(k)]
                scores.append(adjusted_rand_score(whole[part], labels))
            A.append(np.mean(scores))
        evidence = max(0, (Q[0] - Q[1]) / (1 - 1 / k - Q[1]))
        stability = max(0, (A[0] - A[1]) / (1 - A[1]))
        found.append(((Q[0] * evidence) ** 2 * stability, evidence * stability))
    return np.array(found).T


class TestBeyondChance:
    @pytest.mark.parametrize("k", [2, 5, 8])
    def test_planted_clusters_are_counted(self, k):
        labels = np.repeat(np.arange(k), 20)
        table, chance, control = drawn(labels)
        parts = parts_of(len(labels))
        count = count_beyond_chance([(table, chance)], control, Nearest().of_table, parts)
        assert count.n_clusters == k
        assert count.confidence > 0.5
        assert len(count.candidates) >= min(3, len(numbers_of_clusters(len(labels))))
        assert next(iter(count.candidates)) == k
        assert sum(count.candidates.values()) == pytest.approx(1)

    def test_noise_is_one_cluster(self):
        tables = drawn(np.arange(80), seeds=(3, 4, 5))
        parts = parts_of(80)
        count = count_beyond_chance([tables[:2]], tables[2], Nearest().of_table, parts)
        assert count.n_clusters == 1

    def test_support_is_that_of_the_definition_averaged_over_tables(self):
        labels = np.repeat(np.arange(4), 12)
        tables = [drawn(labels, 0.3)[:2], drawn(labels, 0.2, (6, 7, 8))[:2]]
        parts, numbers = parts_of(48), numbers_of_clusters(48)
        control = drawn(labels, seeds=(0, 1, 9))[2]
        count = count_beyond_chance(tables, control, Nearest().of_table, parts)
        expected, sure = np.mean(
            [support_by_definition(*pair, parts, numbers) for pair in tables], axis=0
        )
        assert count.n_clusters == numbers[expected.argmax()]
        assert count.confidence == pytest.approx(sure[expected.argmax()])
        for k, share in count.candidates.items():
            listed = [numbers.index(other) for other in count.candidates]
            assert share == pytest.approx(expected[numbers.index(k)] / expected[listed].sum())

    def test_few_samples_are_one_cluster(self):
        tables = drawn(np.arange(5))
        count = count_beyond_chance([tables[:2]], tables[2], Nearest().of_table, parts_of(5))
        assert (count.n_clusters, count.confidence) == (1, 0.0)


def test_numbers_are_close_to_each_other():
    numbers = np.array(numbers_of_clusters(5000))
    assert numbers[0] == 2
    assert numbers[-1] <= 1000 < 1.1 * (numbers[-1] + 1)
    assert (np.diff(numbers) >= 1).all()
    assert (np.diff(numbers) <= np.maximum(1, 0.1 * numbers[:-1] + 0.5)).all()


@pytest.mark.parametrize("n", [60, 700])
def test_nested_ward_is_ward_for_every_number(n):
    X = np.random.default_rng(0).standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    numbers = [1, 2, 5, 9, 30]
    for k, labels in zip(numbers, nested_ward(X, numbers), strict=True):
        np.testing.assert_array_equal(labels, ward(X, k))


def test_gaps_list_candidates_with_their_support():
    W = np.kron(np.eye(4), np.ones((6, 6))) + 0.05
    count = estimate_n_clusters(W)
    assert next(iter(count.candidates)) == count.n_clusters == 4
    assert len(count.candidates) >= 3
    assert sum(count.candidates.values()) == pytest.approx(1)
    gaps = {k: count.gaps[k - 1] for k in count.candidates}
    assert max(gaps, key=gaps.get) == 4
    assert Cut()(W, 3).candidates == {3: 1.0}
    assert Cut()(W).candidates == count.candidates
