"""Run the Python blocks of the pages and write what they print into the text blocks behind them.

`python docs/refresh.py` treats README.md and every page under docs; `tests/test_docs.py` runs the
same blocks.
"""

import contextlib
import io
import re
from pathlib import Path

DOCS = Path(__file__).parent
BUILT = ("_build", "auto_examples", "generated")

# A block of Python, and the block of text that follows it at once, if one does: what it prints.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Return the pages with code in them."""
    own = (page for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in BUILT)
    found = [DOCS.parent / "README.md", *sorted(own)]
    return [page for page in found if "```python" in page.read_text(encoding="utf-8")]


def printed(code: str, page: Path, scope: dict[str, object]) -> str:
    """Run a block after those before it, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, str(page), "exec"), scope)
    return out.getvalue()


def refreshed(page: Path) -> str:
    """Return the text of a page with the present output."""
    scope: dict[str, object] = {"__name__": "page"}

    def block(match: re.Match[str]) -> str:
        output = printed(match[1], page, scope)
        return f"```python\n{match[1]}```\n" + (f"\n```text\n{output}```" if output else "")

    return BLOCK.sub(block, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for page in pages():
        page.write_text(refreshed(page), encoding="utf-8")
