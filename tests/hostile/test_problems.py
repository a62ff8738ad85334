"""Random programs of the whole family, checked by means that share nothing with the solver."""

import numpy as np
import pytest
from hypothesis import given, settings

import tubal
from hostile.problems import check_solution, problems


@settings(max_examples=400)
@given(problem=problems)
def test_solutions_stand_up_to_independent_checks(problem):
    check_solution(problem)


@pytest.mark.parametrize("size", [1e-143, 1e143])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dictionaries_beyond_the_range_are_refused(size, dtype):
    X = np.ones((4, 3), dtype)
    with pytest.raises(ValueError, match=r"dictionary (has entries of size|is zero)"):
        tubal.solve(X, dictionary=size * np.ones((2, 3)), lam=1.0)
