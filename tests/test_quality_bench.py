"""The quality benchmark: draws, tools, rows, and what is read back from them."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import quality
import quality_tables as tables
from quality_sets import FAMILIES, SETS, DataSet, clip, cube, materials, video, with_outliers
from quality_tools import OURS, RPCA, SPECTRAL, TOOLS, UNIT, Outcome, Tool, rows_of

from tubal.bench.experiments import Drawn
from tubal.bench.published import published

sys.path.pop(0)  # else other packages find our scripts when they look for theirs

pytestmark = pytest.mark.slow

BUNDLED = [name for name, data in SETS.items() if not data.needs]
PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("quality.md", "quality-sets.md")]


def row(name, tool, draw=0, error=None, seconds=1.0, **metrics):
    return {
        "set": name,
        "tool": tool,
        "draw": draw,
        "error": error,
        "seconds": seconds,
        "peak_memory": 3e6,
        "shape": [10, 4, 4],
        "note": "",
        "warnings": [],
        "versions": {"tubal": "1"},
        "metrics": metrics,
    }


def clusterings(name, mine, best, draws=1):
    """Rows of a set by all clusterers, ours and one that is `best`, the others at 0.1."""
    others = [tool.name for tool in TOOLS.values() if tool.clusters and tool.name != OURS]
    values = {OURS: mine, **dict.fromkeys(others, 0.1), "k-means": best}
    return [
        row(name, tool, draw, ACC=value, NMI=value)
        for tool, value in values.items()
        for draw in range(draws)
    ]


def bar_of(rows, name, where):
    (found,) = (bar for bar in tables.bars(rows) if (bar.name, bar.where) == (name, where))
    return found


class TestSets:
    def test_some_new_sets_need_nothing(self):
        assert sum(data.group == "development" for data in SETS.values()) == 26
        named = [name for names in FAMILIES.values() for name in names]
        assert sorted(named) == sorted(SETS)

    @pytest.mark.parametrize("name", BUNDLED)
    def test_draws_come_from_their_seed_alone(self, name):
        one, again, other = (SETS[name].draw(seed) for seed in (0, 0, 1))
        assert len(one.X) == len(one.labels) <= 2000
        assert np.isfinite(one.X).all()
        np.testing.assert_array_equal(one.X, again.X)
        np.testing.assert_array_equal(one.labels, again.labels)
        if name != "digits":  # which is taken whole
            assert one.X.shape != other.X.shape or not np.array_equal(one.X, other.X)
        n_classes, outliers = quality.truth(one)
        assert sorted(set(one.labels[one.labels >= 0])) == list(range(n_classes))
        assert not (SETS[name].clean and outliers)

    def test_what_is_missing_is_told(self, monkeypatch, capsys, tmp_path):
        monkeypatch.setenv("TUBAL_DATA", str(tmp_path))
        assert SETS["ORL+100"].missing() == ["orl.npz", "mirflickr.npz"]
        assert quality.chosen_sets(["ORL+100", "digits"]) == [SETS["digits"]]
        assert "ORL+100: left out, needs orl.npz, mirflickr.npz" in capsys.readouterr().err

    def test_published_values_are_there(self):
        places = [data.published for data in SETS.values() if data.published]
        assert len(places) == 9
        assert all((*place, "OR-TLRR-DFT", "ACC") in published() for place in places)

    def test_the_sets_of_the_bars_exist(self):
        assert len(set(tables.TEN)) == 10
        assert {*tables.TEN, *tables.LEAST_ACC} <= set(SETS)
        assert set(tables.RIVALS) <= set(TOOLS)

    def test_spectra_are_reflectances_and_dead_bands_are_dead(self):
        spectra = materials(np.random.default_rng(0), 6, 60)
        assert spectra.shape == (6, 60)
        assert (spectra > 0).all() and (spectra <= 1).all()
        X = cube(0).X
        assert not X[:, :, [11, 12, 40]].any()
        assert X[:, :, 13].any()

    def test_shapes_move_as_they_should(self):
        def centre(frame):
            weight = np.clip(frame.sum(axis=2) - 0.8, 0, None)
            return (np.indices(weight.shape) * weight).sum(axis=(1, 2)) / weight.sum()

        frames = clip("square", (0.0, 0.8), 14, np.random.default_rng(3))
        step = centre(frames[5]) - centre(frames[0])
        assert abs(step[0]) < 0.7
        assert 3 < step[1] < 5
        assert video(0).X.shape == (320, 6, 14, 14, 3)

    def test_with_outliers(self):
        drawn = with_outliers(np.zeros((2, 3)), np.array([0, 1]), np.ones((1, 3)))
        assert drawn.labels.tolist() == [0, 1, -1]
        assert drawn.X[:, 0].tolist() == [0, 0, 1]


class TestTools:
    @pytest.fixture
    def drawn(self):
        """Three kinds of pictures, in three directions each, and one sample far from all."""
        rng = np.random.default_rng(0)
        bases = rng.standard_normal((3, 3, 20))
        weights = [1, 0.4, 0.4] * rng.uniform(0.5, 1.5, (3, 20, 3))
        X = (weights @ bases).reshape(60, 5, 4) + 0.01 * rng.standard_normal((60, 5, 4))
        return with_outliers(X, np.repeat([0, 1, 2], 20), 5 * rng.standard_normal((1, 5, 4)))

    @pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.is_there])
    def test_every_tool_does_its_work(self, name, drawn):
        found = quality.measure(TOOLS[name], drawn, 0)
        assert found["error"] is None
        assert found["seconds"] > 0
        if TOOLS[name].clusters and name != RPCA:
            assert found["metrics"]["ACC"] > 0.5
        if TOOLS[name].detects:
            assert 0 <= found["metrics"]["AUC"] <= 1
            assert found["metrics"]["F1_best"] >= found["metrics"].get("F1", 0)
        json.dumps(found)

    def test_detectors_find_a_plain_outlier(self, drawn):
        for name in ("isolation forest", "kNN distance", "LOF"):
            assert quality.measure(TOOLS[name], drawn, 0)["metrics"]["AUC"] == 1

    def test_rows_of_unit_norm(self):
        X = np.array([[[3.0], [4.0]], [[0.0], [0.0]]])
        np.testing.assert_allclose(rows_of(X, True), [[0.6, 0.8], [0, 0]])
        assert rows_of(X, False).shape == (2, 2)

    def test_tools_run_where_they_have_something_to_do(self):
        assert TOOLS[OURS].serves(1, True) and TOOLS[OURS].serves(3, False)
        assert not TOOLS["k-means"].serves(1, True)
        assert not TOOLS["LOF"].serves(3, False)


def test_scores_of_an_outcome():
    labels = np.array([0, 0, 1, 1, -1])
    found = Outcome(np.array([0, 0, 1, -1, -1]), np.array([0.0, 0, 0, 3, 2]), np.arange(5) >= 3)
    assert quality.scores(labels, found) == {
        "ACC": 0.75,
        "NMI": pytest.approx(0.75 / np.sqrt(1.5)),
        "flagged": 0.4,
        "AUC": 0.75,
        "F1_best": pytest.approx(2 / 3),
        "F1": pytest.approx(2 / 3),
    }
    one_class = quality.scores(np.array([0, 0, -1]), Outcome(np.zeros(3, int)))
    assert one_class == {}


def test_the_best_threshold_does_not_part_equal_scores():
    outliers = np.array([True, False, False, False])
    assert quality.best_f1(outliers, np.array([4.0, 3, 2, 1])) == 1
    assert quality.best_f1(outliers, np.array([4.0, 4, 2, 1])) == pytest.approx(2 / 3)
    assert quality.best_f1(outliers, np.zeros(4)) == pytest.approx(0.4)


class TestRun:
    @pytest.fixture
    def calls(self, monkeypatch):
        """One small set and two tools, of which the second fails at first."""
        seen = []

        def good(X, n_clusters, outliers, seed):
            seen.append(("good", seed))
            return Outcome(np.repeat([0, 1], 2))

        def bad(X, n_clusters, outliers, seed):
            seen.append(("bad", seed))
            if len(seen) < 3:
                raise ValueError("not today")
            return Outcome(np.zeros(4, int))

        drawn = Drawn(np.arange(8.0).reshape(4, 2), np.repeat([0, 1], 2))
        data = DataSet("toy", "a toy", "new", lambda seed: drawn, large=True)
        tools = [Tool("good", good, clusters=True), Tool("bad", bad, clusters=True, slow=True)]
        monkeypatch.setattr(quality, "warm_up", lambda tools: None)
        monkeypatch.setattr(quality, "chosen_sets", lambda names: [data])
        monkeypatch.setattr(quality, "chosen_tools", lambda names: tools)
        return seen

    def test_goes_on_where_it_stopped_and_tries_failures_again(self, calls, tmp_path, capsys):
        command = ["run", "--out", str(tmp_path), "--draws", "2"]
        assert quality.main(command) == 0
        assert calls == [("good", 0), ("bad", 0), ("good", 1)]  # slow: one draw of a large set
        assert "failed, ValueError: not today" in capsys.readouterr().out
        with (tmp_path / quality.FILE).open("a") as file:
            file.write('{"set": "toy", "dr')  # as a kill leaves it
        assert quality.main(command) == 0
        assert calls[3:] == [("bad", 0)]
        rows = quality.results(tmp_path)
        assert [row["metrics"].get("ACC") for row in rows] == [1, None, 1, 0.5]
        assert "Nothing failed" in tables.about_table(rows)
        assert "Failed: bad on toy" in tables.about_table(rows[:3])

    def test_warm_up_runs_every_tool(self):
        seen = []
        tool = SimpleNamespace(run=lambda *given: seen.append(given[1:]))
        quality.warm_up([tool, tool])
        assert seen == [(2, True, 0)] * 2

    @pytest.mark.parametrize(
        ("command", "says"),
        [
            (["table", "DIR"], r"has no quality\.jsonl"),
            (["run", "--out", "DIR", "--draws", "0"], "draws must be 1 or more, got 0"),
            (["run", "--out", "DIR", "--sets", "nothing"], "sets are ORL.*; got nothing"),
            (["run", "--out", "DIR", "--tools", "nothing"], "tools are tubal; .*; got nothing"),
        ],
    )
    def test_bad_input_is_told(self, command, says, tmp_path, capsys):
        given = [str(tmp_path) if word == "DIR" else word for word in command]
        assert quality.main(given) == 2
        assert re.search(says, capsys.readouterr().err)


class TestTables:
    ROWS = (
        row("digits", OURS, 0, ACC=0.9, NMI=0.8, flagged=0.01),
        row("digits", OURS, 1, ACC=0.96, NMI=0.8, flagged=0.03),
        row("digits", SPECTRAL, 0, seconds=0.25, ACC=0.8, NMI=0.85),
        row("Umist", OURS, ACC=0.7, NMI=0.8),
        row("Umist", "k-means", error="ValueError: no"),
    )

    def test_accuracy(self):
        text = tables.TABLES["accuracy"](list(self.ROWS)).splitlines()
        assert text[0] == f"| set | tubal | {tables.FIGURE} | kNN spectral |"
        paper = published()["umist-frdue", "umist", "complete", "OR-TLRR-DFT", "ACC"]
        assert text[2] == f"| Umist (page) | **0.700 (1 draw)** | {paper:.3f} |  |"
        assert text[3] == "| digits (page) | **0.930 ± 0.042** |  | 0.800 (1 draw) |"

    def test_fewer_draws_than_others_are_told(self):
        mean = tables.Mean(0.5, 0.1, 2)
        assert mean.text(5) == "0.500 ± 0.100 (2 draws)"
        assert mean.text(2) == "0.500 ± 0.100"
        assert tables.Mean(0.5, 0.0, 1).text(1) == "0.500"

    def test_ratio_flagged_memory_and_seconds(self):
        rows = list(self.ROWS)
        assert tables.ratio_table(rows).splitlines()[2:] == [
            "| digits (page) | 1.00 | 0.25 | 4.0 |"
        ]
        assert tables.flagged_table(rows).splitlines()[2:] == ["| digits (page) | 2.00% |"]
        assert "| Umist | 3 |  |" in tables.memory_table(rows)
        assert "| digits | 1.00 | 0.25 |" in tables.seconds_table(rows)

    def test_f1_stands_beside_the_best(self):
        rows = [
            row("ORL+100", OURS, AUC=0.9, F1=0.5, F1_best=0.75),
            row("ORL+100", "kNN distance", AUC=0.8, F1_best=0.7),
        ]
        assert "| 0.500 / 0.750 | - / 0.700 |" in tables.f1_table(rows)

    def test_ranks_share_places(self):
        found = {
            ("a", "x"): tables.Mean(0.9, 0, 1),
            ("a", "y"): tables.Mean(0.9001, 0, 1),
            ("a", "z"): tables.Mean(0.5, 0, 1),
        }
        assert tables.ranks(found, ["a"]) == {"x": [1.5], "y": [1.5], "z": [3]}

    def test_ranks_part_known_from_new_sets(self):
        rows = [*clusterings("digits", 0.9, 0.8), *clusterings("jaffe", 0.6, 0.9)]
        text = tables.ranks_table(rows)
        assert "| ACC | page | tubal | 1.0 | 1 of 1 | 0.000 |" in text
        assert "| ACC | development | tubal | 2.0 | 0 of 1 | 0.300 |" in text

    def test_every_table_is_made_from_few_rows(self):
        for make in tables.TABLES.values():
            assert make(list(self.ROWS)).startswith("| ")


class TestBars:
    def test_accuracy(self):
        rows = [row("digits", OURS, draw, ACC=value) for draw, value in enumerate((0.91, 0.94))]
        assert bar_of(rows, "accuracy", "digits").holds is False
        assert bar_of([*rows, row("digits", OURS, 2, ACC=0.95)], "accuracy", "digits").holds
        assert bar_of(rows, "accuracy", "Umist").holds is None

    @pytest.mark.parametrize(("won", "holds"), [(8, True), (7, False)])
    def test_first_on_eight_of_ten(self, won, holds):
        rows = []
        for place, name in enumerate(tables.TEN):
            rows += clusterings(name, 0.9, 0.8 if place < won else 0.91)
        bar = bar_of(rows, "first in ACC", "ten sets")
        assert (bar.holds, bar.measured) == (holds, f"on {won} of 10")
        assert bar_of(rows, "behind the first in NMI", "ten sets").holds

    def test_far_behind_on_one_set(self):
        rows = [each for name in tables.TEN[1:] for each in clusterings(name, 0.9, 0.8)]
        rows += clusterings(tables.TEN[0], 0.9, 0.93)
        bar = bar_of(rows, "behind the first in ACC", "ten sets")
        assert (bar.holds, bar.measured) == (False, "0.030 (ORL+100)")

    def test_nobody_is_first_alone(self):
        rows = [row(name, OURS, ACC=0.9, NMI=0.9) for name in tables.TEN]
        assert bar_of(rows, "first in ACC", "ten sets").holds is None

    def test_outliers(self):
        where = "ORL+100 (page)"
        rows = [row("ORL+100", tool, AUC=0.9, F1_best=0.9) for tool in tables.RIVALS]
        mine = row("ORL+100", OURS, AUC=0.9, F1=0.86, F1_best=0.9)
        assert bar_of([*rows, mine], "AUC", where).holds is True
        assert bar_of([*rows[1:], mine], "AUC", where).holds is None  # one rival has not run
        assert bar_of([*rows, mine], "F1 of the decision", where).holds is False
        better = row("ORL+100", "LOF" + UNIT, 1, AUC=0.95, F1_best=0.9)
        bar = bar_of([*rows, mine, better], "AUC", where)
        assert (bar.holds, bar.asked) == (False, ">= 0.925 (LOF, unit norm)")

    @pytest.mark.parametrize(("share", "holds"), [(0.02, True), (0.021, False)])
    def test_flags_on_clean_sets(self, share, holds):
        rows = [row("digits", OURS, flagged=share), row("ORL+100", OURS, flagged=0.2)]
        (bar,) = (bar for bar in tables.bars(rows) if bar.name.startswith("flagged"))
        assert bar.holds is holds

    @pytest.mark.parametrize(("seconds", "holds"), [(9.0, True), (11.0, False)])
    def test_time(self, seconds, holds):
        rows = [row("digits", OURS, seconds=seconds), row("digits", SPECTRAL)]
        assert bar_of(rows, "time over kNN spectral", "digits (page)").holds is holds

    def test_the_command_ends_with_one_when_a_bar_fails(self, tmp_path, capsys):
        def write(value):
            text = json.dumps(row("digits", OURS, ACC=value)) + "\n"
            (tmp_path / quality.FILE).write_text(text)

        write(0.95)
        assert quality.main(["bars", str(tmp_path)]) == 0
        assert "| accuracy | digits | >= 0.93 | 0.950 | 1 | yes |" in capsys.readouterr().out
        write(0.85)
        assert quality.main(["bars", str(tmp_path)]) == 1
        assert "**no**" in capsys.readouterr().out


class TestPage:
    @pytest.fixture
    def folder(self, tmp_path):
        lines = [json.dumps(each) + "\n" for each in TestTables.ROWS]
        (tmp_path / quality.FILE).write_text("".join(lines))
        return tmp_path

    def test_tables_go_to_their_places_and_only_there(self, folder):
        page = folder / "page.md"
        old = "# Title\n\n<!-- table: flagged -->\nold\n<!-- end -->\n\nWords ± stay.\n"
        page.write_text(old, encoding="utf-8")
        for _ in range(2):  # the second time finds the first one's table
            assert quality.main(["page", str(folder), str(page)]) == 0
            text = page.read_text(encoding="utf-8")
            assert "old" not in text and "| digits (page) | 2.00% |" in text
            assert text.startswith("# Title\n\n<!--") and text.endswith("\n\nWords ± stay.\n")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("no place", "opens 0 tables"),
            ("<!-- table: sets -->\n", "opens 1 tables and closes 0"),
            ("<!-- table: what -->\n<!-- end -->", "asks for what"),
        ],
    )
    def test_a_page_without_places_is_left_alone(self, folder, text, says, capsys):
        page = folder / "page.md"
        page.write_text(text)
        assert quality.main(["page", str(folder), str(page)]) == 2
        assert says in capsys.readouterr().err
        assert page.read_text() == text

    def test_the_pages_of_the_documentation_have_the_tables(self):
        text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        there = {match[2] for match in tables.PLACE.finditer(text)}
        assert set(tables.TABLES) - there == {"nmi", "ranks", "seconds", "memory"}

    def test_table_prints_what_was_asked_for(self, folder, capsys):
        assert quality.main(["table", str(folder), "ratio"]) == 0
        assert capsys.readouterr().out.startswith("### ratio\n\n| set |")

    def test_figure(self, folder):
        pytest.importorskip("matplotlib")
        file = folder / "figure.svg"
        assert quality.main(["figure", str(folder), str(file)]) == 0
        assert file.read_text(encoding="utf-8").lstrip().startswith("<?xml")
