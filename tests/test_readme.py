"""What the README shows must run as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str, before: str = "") -> list[str]:
    pattern = rf"{before}^```{language}\n(.*?)^```$"
    return re.findall(pattern, README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_example_prints_what_the_readme_says(capsys):
    (example,) = blocks("python")
    (printed,) = blocks("text")
    exec(compile(example, str(README), "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_example_is_short():
    (example,) = blocks("python")
    assert sum(bool(line) for line in example.splitlines()) <= 10


def test_the_two_commands_can_be_extracted():
    for mark, last_word in (("main-command", "demo"), ("test-command", "pytest")):
        (command,) = blocks("sh", before=f"^<!-- {mark} -->\n")
        assert command.count("\n") == 1
        assert command.startswith("python3 -m venv .venv && ")
        assert command.split()[-1] == last_word
