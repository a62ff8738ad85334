"""The house keeps its shape: declared rooms, one-way imports, a light front door."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tubal

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tubal"
ARCHITECTURE = ROOT / "docs" / "architecture.md"

# The order of the rooms. A room may import only from rooms that stand before it.
FLOW = (
    "_atomic",
    "_optional",
    "_printable",
    "_threads",
    "input",
    "transforms",
    "algebra",
    "noise",
    "reduction",
    "problem",
    "solvers",
    "sparse",
    "representation",
    "similarity",
    "outliers",
    "graph",
    "spectral",
    "selection",
    "estimators",
    "persistence",
    "files",
    "bench",
    "report",
    "plot",
    "cli",
)
# Rooms beside the flow, with the first room that they may not import any more.
# Of the flow only the rooms from `bench` on may import them.
BESIDE = {"datasets": "reduction", "metrics": "outliers"}
ROOMS = {*FLOW, *BESIDE}


def may_import(room: str, other: str) -> bool:
    if room == other:
        return True
    if other in BESIDE:
        return room in FLOW[FLOW.index("bench") :]
    return FLOW.index(other) < FLOW.index(BESIDE.get(room, room))


def modules() -> list[Path]:
    doors = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    return sorted(path for path in PACKAGE.rglob("*.py") if path not in doors)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_names(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Yield every name imported from tubal, absolute, also by imports inside functions.

    `package` is the dotted package of the module, as a tuple, to resolve relative imports.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = [*base, *(node.module.split(".") if node.module else [])]
            names = [".".join([*prefix, alias.name]) for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "tubal")


def violations(source: str, room: str, package: tuple[str, ...] = ("tubal",)) -> list[str]:
    """Return the imported names that break the rule."""
    bad = []
    for name in imported_names(source, package):
        other = name.split(".")[1] if "." in name else ""
        if other == "__version__":
            continue
        # The package itself loads names of every room, so it is no place to import from.
        if other not in ROOMS or not may_import(room, other):
            bad.append(name)
    return bad


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_is_in_a_declared_room(path):
    assert room_of(path) in ROOMS, "declare the room here and in docs/architecture.md"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    package = ("tubal", *path.relative_to(PACKAGE).parts[:-1])
    assert violations(path.read_text(encoding="utf-8"), room_of(path), package) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("input", "from tubal.algebra import tprod"),
        ("input", "import tubal.algebra"),
        ("input", "from tubal import algebra"),
        ("input", "from .algebra import tprod"),
        ("input", "from . import algebra"),
        ("input", "def f():\n    from tubal import cli"),
        ("algebra", "from tubal import tprod"),
        ("algebra", "import tubal"),
        ("algebra", "from tubal import *"),
        ("algebra", "from tubal.datasets import load"),
        ("outliers", "from tubal.metrics import auc"),
        ("datasets", "from tubal.reduction import reduce"),
        ("datasets", "from tubal.metrics import auc"),
        ("metrics", "from tubal.outliers import decide"),
        ("report", "from tubal.cli import main"),
        ("algebra", "from tubal.utils import anything"),
    ],
)
def test_the_rule_finds_a_wrong_import(room, source):
    assert violations(source, room) != []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("algebra", "import numpy as np\nfrom tubal.transforms import Transform"),
        ("algebra", "from . import input, transforms"),
        ("problem", "from tubal.noise import L21"),
        ("solvers", "from tubal.solvers.blocks import step"),
        ("datasets", "from tubal.algebra import tprod"),
        ("metrics", "from tubal.sparse import ssc"),
        ("cli", "from tubal import __version__, datasets, estimators"),
    ],
)
def test_the_rule_lets_a_right_import_pass(room, source):
    assert violations(source, room) == []


def test_the_rule_resolves_relative_imports_inside_a_folder():
    package = ("tubal", "solvers")
    assert violations("from .blocks import step\nfrom ..noise import L1", "solvers", package) == []
    assert violations("from ..graph import tiles", "solvers", package) == ["tubal.graph.tiles"]


def documented_rooms() -> dict[str, bool]:
    """Return each room of docs/architecture.md and whether it is marked as planned."""
    headings = re.findall(
        r"^### `(\w+)`( \(planned\))?$", ARCHITECTURE.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {room: bool(planned) for room, planned in headings}


def test_docs_name_the_same_rooms_in_the_same_order():
    rooms = list(documented_rooms())
    assert set(rooms) == ROOMS
    assert [room for room in rooms if room not in BESIDE] == list(FLOW)


def test_docs_mark_as_planned_exactly_what_is_not_built():
    planned = {room for room, is_planned in documented_rooms().items() if is_planned}
    assert planned == ROOMS - {room_of(path) for path in modules()}


def loaded_after(statement: str) -> set[str]:
    """Return the top-level packages that a new interpreter holds after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(run.stdout.split())


def test_import_of_the_package_is_light():
    loaded = loaded_after("import tubal")
    assert "tubal" in loaded
    assert loaded.isdisjoint({"matplotlib", "dask", "torch", "sklearn", "scipy", "numpy"})


def test_the_command_line_is_light_before_a_command_runs():
    loaded = loaded_after("from tubal.cli import main")
    assert loaded.isdisjoint({"rich", "joblib", "sklearn", "scipy", "numpy"})


def test_the_first_rooms_do_not_load_optional_packages():
    loaded = loaded_after("from tubal import algebra, input, transforms")
    assert "scipy" in loaded
    assert loaded.isdisjoint({"matplotlib", "dask", "torch"})


CORE = {"numpy", "scipy", "sklearn", "threadpoolctl", "array_api_compat"}


def imported_at_once(source: str) -> set[str]:
    """Return the packages that a module imports when it is loaded: not inside functions."""
    names: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.Import):
                names.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.split(".")[0])
            elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
                    waiting.append(node)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_the_core_only(path):
    loaded = imported_at_once(path.read_text(encoding="utf-8"))
    assert loaded <= {*sys.stdlib_module_names, *CORE, "tubal"}, "import it where it is used"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import numpy as np\nfrom scipy import linalg", {"numpy", "scipy"}),
        (
            "class A:\n    import rich\n\ntry:\n    import numba\nexcept E:\n    pass",
            {"rich", "numba"},
        ),
        ("def f():\n    import torch", set()),
        ("if TYPE_CHECKING:\n    import torch", set()),
        ("from . import input", set()),
    ],
)
def test_imports_at_load_are_seen(source, names):
    assert imported_at_once(source) == names


WITHOUT_EXTRAS = """
import sys
from importlib.machinery import PathFinder

class Hiding:
    def find_spec(name, path=None, target=None):
        hidden = {"numba", "rich", "jinja2", "dask", "distributed", "torch", "matplotlib", "PIL"}
        return None if name.split(".")[0] in hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
import tubal
for name in tubal.__all__:
    getattr(tubal, name)
import tubal.cli
data = tubal.datasets.load_demo(60, outliers=5)
print(tubal.ORTLRR(n_clusters=10, random_state=0).fit(data.X).labels_.shape)
"""


def test_nothing_but_the_core_is_needed():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, timeout=120
    )
    assert run.stdout.strip() == "(60,)", run.stderr


def test_public_names_load_on_first_use():
    assert set(tubal.__all__) <= set(dir(tubal))
    for name in tubal.__all__:
        assert getattr(tubal, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tubal.nothing


def test_type_checkers_see_the_public_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    names = [alias.asname for block in blocks for node in block.body for alias in node.names]
    assert sorted([*names, "__version__"]) == sorted(tubal.__all__)
