"""Random programs of the whole family, checked by means that share nothing with the solver."""

from hypothesis import given, settings

from hostile.problems import check_solution, problems


@settings(max_examples=400)
@given(problem=problems)
def test_solutions_stand_up_to_independent_checks(problem):
    check_solution(problem)
