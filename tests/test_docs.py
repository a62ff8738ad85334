"""What the pages show must run as it stands, and the reference must list what is public."""

import ast
import importlib
import importlib.util
import re
import types
from pathlib import Path

import pytest

import tubal

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))

spec = importlib.util.spec_from_file_location("refresh", DOCS / "refresh.py")
refresh = importlib.util.module_from_spec(spec)
spec.loader.exec_module(refresh)


@pytest.mark.slow
@pytest.mark.parametrize("page", refresh.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_prints_what_the_page_says(page):
    assert refresh.refreshed(page) == page.read_text(encoding="utf-8"), "try docs/refresh.py"


def test_every_block_of_python_is_found():
    for page in refresh.pages():
        text = page.read_text(encoding="utf-8")
        assert len(refresh.BLOCK.findall(text)) == text.count("```python"), page


def test_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n2\n```\n")
    assert refresh.refreshed(page) == page.read_text().replace("2", "1")


def listed() -> dict[str, set[str]]:
    """Return the names that docs/api.md lists, module by module."""
    names: dict[str, set[str]] = {}
    for block in re.findall(r"```{eval-rst}\n(.*?)```", (DOCS / "api.md").read_text("utf-8"), re.S):
        module = re.search(r"currentmodule:: (\S+)", block).group(1)
        entries = re.findall(r"^   (\w+)$", block, re.MULTILINE)
        assert entries, block
        names.setdefault(module, set()).update(entries)
    return names


MODULES = sorted(
    name for name in tubal.__all__ if isinstance(getattr(tubal, name), types.ModuleType)
)


def test_the_reference_lists_the_names_of_the_package():
    assert listed()["tubal"] == {*tubal.__all__} - {*MODULES, "__version__"}


def public(module: types.ModuleType) -> set[str]:
    """Return what a module says is public, or else what it defines without an underscore."""
    own = (name for name, value in vars(module).items() if not name.startswith("_")
           and getattr(value, "__module__", None) == module.__name__)  # fmt: skip
    return set(getattr(module, "__all__", own))


@pytest.mark.parametrize("name", MODULES)
def test_the_reference_lists_the_names_of_a_module(name):
    assert listed().get(f"tubal.{name}", set()) == public(getattr(tubal, name))


@pytest.mark.parametrize("module", sorted(listed()))
def test_what_the_reference_lists_exists_and_is_documented(module):
    for name in listed()[module]:
        assert getattr(importlib.import_module(module), name).__doc__, f"{module}.{name}"


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_begins_with_a_title_and_downloads_nothing(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, line = (ast.get_docstring(tree) or "").splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) == len(title)
    calls = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not [name for name in calls if name.startswith("fetch_")]
    assert path.name in (DOCS / "conf.py").read_text(encoding="utf-8"), "give it a place in conf.py"


def test_pages_lead_somewhere():
    """Links between pages, which GitHub shows too, name files that exist."""
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        if page.is_relative_to(DOCS) and page.relative_to(DOCS).parts[0] in refresh.BUILT:
            continue
        for target in re.findall(r"(?<!!)\[[^]]*\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" in target or target.startswith("auto_examples/"):  # made by the build
                continue
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_pictures_of_the_readme_are_there():
    pictures = re.findall(r"!\[[^]]+\]\(([^)\s]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert pictures
    if not (DOCS / "images").is_dir():
        pytest.skip("this checkout has no pictures")
    assert [name for name in pictures if not (ROOT / name).is_file()] == []
