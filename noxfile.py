"""Run the tests in every environment that tubal is made for; `nox -l` lists them.

What stands behind `--` goes to pytest, as in `nox -s lowest -- tests/test_files.py`.
"""

import nox
from packaging.requirements import Requirement

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PROJECT = nox.project.load_toml("pyproject.toml")["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Docs are built with one version, and PyTorch is too large to be installed by the way.
RUNTIME = sorted(EXTRAS.keys() - {"dev", "docs", "torch"})
# No test imports these.
CHECKERS = {"bandit", "mypy", "nox", "pre-commit", "ruff"}

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "tests", "lowest"]
# Interpreters that are not here are named and left out.
nox.options.error_on_missing_interpreters = False


def name(requirement: str) -> str:
    """Return the name of the package that a requirement asks for."""
    return Requirement(requirement).name


def lowest_versions() -> list[str]:
    """Return all that the tests import, with the lowest version that pyproject.toml allows."""
    tested = [line for line in EXTRAS["dev"] if name(line) not in CHECKERS]
    groups = [PROJECT["dependencies"], tested, *(EXTRAS[extra] for extra in RUNTIME)]
    return sorted({line.replace(">=", "==") for group in groups for line in group})


def run_tests(session: nox.Session, *options: str) -> None:
    """Run the default tests, or those that are asked for."""
    session.run("python", "-m", "pip", "list")  # so that a failure can be repeated
    session.run("python", "-m", "pytest", "-q", *options, *session.posargs)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Test with one version of Python and all optional packages."""
    session.install("-e", ".[dev]")
    run_tests(session)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """Test with the lowest version of every package, on the lowest Python."""
    session.install("-e", ".", *lowest_versions())
    # Old packages use what newer ones beneath them call deprecated.
    run_tests(session, "-W", "default::DeprecationWarning")


@nox.session
def newest(session: nox.Session) -> None:
    """Test with the newest version of every package, those that others bring included."""
    session.install("--upgrade", "--upgrade-strategy=eager", "-e", ".[dev]")
    run_tests(session)


@nox.session
@nox.parametrize("extra", [*RUNTIME, "all"])
def without(session: nox.Session, extra: str) -> None:
    """Test without the packages of one extra ("fast" is numba), or of all of them."""
    session.install("-e", ".[dev]")
    extras = RUNTIME if extra == "all" else [extra]
    packages = {name(line) for one in extras for line in EXTRAS[one]}
    session.run("python", "-m", "pip", "uninstall", "-q", "-y", *sorted(packages))
    run_tests(session)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types and security."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("bandit", "-q", "-r", "src", "-c", "pyproject.toml")
