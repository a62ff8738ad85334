"""The report holds the numbers of the fit, whatever the estimator and the data are like."""

import base64
import io
import json
import os
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from sklearn.exceptions import ConvergenceWarning

from tubal import (
    LSR,
    ORTLRR,
    SSC,
    SSCOMP,
    Lambda,
    LowRankClusterer,
    TensorCompleter,
    TensorOutlierDetector,
    datasets,
    make,
    report,
)
from tubal.estimators.summary import certificate_in_words, facts, percent
from tubal.report import data as findings
from tubal.report import sprites


@pytest.fixture(scope="module")
def demo():
    return datasets.load_demo(120, outliers=12)


@pytest.fixture(scope="module")
def fitted(demo):
    return ORTLRR(5, random_state=0).fit(demo.X)


class Page(HTMLParser):
    """Elements, data and text of a report."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.scripts, self.ids, self.words, self.tags, self._in = {}, set(), [], [], None
        self.feed(self.source)
        self.close()
        self.data = json.loads(self.scripts["data"])
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        self._in = attrs.get("id", tag) if tag in ("script", "style") else None
        self.ids.add(attrs.get("id"))

    def handle_endtag(self, tag):
        self._in = None

    def handle_data(self, text):
        if self._in:
            self.scripts[self._in] = self.scripts.get(self._in, "") + text
        else:
            self.words.append(text)

    def tiles(self, name):
        """Decode the sheets of tiles back to an array (n, height, width, layers)."""
        layout = self.data["tiles"][name]
        h, w, k = layout["height"], layout["width"], layout["columns"]
        found = []
        for i in range(-(-self.data["n"] // k**2)):
            raw = base64.b64decode(self.scripts[f"sheet-{name}-{i}"])
            sheet = np.asarray(Image.open(io.BytesIO(raw)))
            sheet = sheet.reshape(*sheet.shape[:2], -1)
            grid = sheet.reshape(-1, h, k, w, sheet.shape[-1]).swapaxes(1, 2)
            found.append(grid.reshape(-1, h, w, sheet.shape[-1]))
        return np.concatenate(found)[: self.data["n"]]


def assert_shows(tiles, values):
    """Tiles are values in [0, 1], rounded to 8 bits (a half may go either way)."""
    assert np.abs(tiles - 255 * values).max() < 0.5001


def page_of(est, folder, **options):
    return Page(est.report(folder / "report.html", **options))


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory):
    return page_of(fitted, tmp_path_factory.mktemp("report"))


class TestNumbers:
    def test_labels_follow_from_what_the_page_holds(self, demo, page):
        est = ORTLRR(5, random_state=0).fit(demo.X)
        decision = page.data["decision"]
        assert decision["scores"] == est.outlier_scores_.tolist()
        assert decision["threshold"] == est.threshold_
        scores, clusters = np.array(decision["scores"]), np.array(decision["clusters"])
        for t in (est.threshold_, *np.quantile(scores, [0, 0.3, 0.9, 1]), np.inf):
            expected = est.relabel(threshold=t, recut=False).labels_
            np.testing.assert_array_equal(np.where(scores > t, -1, clusters), expected)

    def test_counts_and_certificate_are_in_words(self, fitted, page):
        assert f"Outliers {fitted.outliers_.sum()}" in page.text
        assert f"Samples {len(fitted.labels_)}" in page.text
        assert "Clusters 5 as asked for" in page.text
        assert f"The solution is {certificate_in_words(fitted)}" in page.text

    def test_history(self, fitted, page):
        history = fitted.solution_.history
        assert [row["primal"] for row in page.data["history"]] == [c.primal for c in history]
        assert [row["gap"] for row in page.data["history"]] == [c.gap for c in history]

    def test_tiles_are_the_samples(self, demo, fitted, page):
        assert_shows(page.tiles("input")[..., 0], demo.X)
        assert_shows(page.tiles("clean")[..., 0], np.clip(fitted.X_clean_, 0, 1))
        assert page.data["tiles"]["input"]["kind"] == "picture"

    def test_typicality_is_the_weight_of_ties_within_the_cluster(self, fitted, page):
        W, labels = fitted.affinity_.toarray(), fitted.labels_
        found = page.data["decision"]["typicality"]
        for i in np.flatnonzero(labels >= 0):
            same = (labels == labels[i]) & (np.arange(len(labels)) != i)
            assert found[i] == pytest.approx(W[i, same].sum(), rel=1e-5)
        inside = labels >= 0
        assert max(np.array(found)[~inside]) <= 0 <= min(np.array(found)[inside])

    def test_affinity_is_ordered_by_cluster(self, fitted, page):
        cut = page.data["cut"]
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(cut["matrix"]))))
        kept = fitted.labels_[fitted.labels_ >= 0]
        assert picture.shape == (len(kept), len(kept))
        sizes = np.diff(np.array(cut["bounds"]) * len(kept))
        np.testing.assert_allclose(sizes, np.bincount(kept))
        W = fitted.affinity_.tocoo()
        labels = np.sort(kept)
        inside = labels[:, None] == labels
        row, column = W.coords
        share = W.data[fitted.labels_[row] == fitted.labels_[column]].sum() / W.data.sum()
        assert share > 0.8
        assert (picture[inside] > 0).sum() > (picture[~inside] > 0).sum()

    def test_large_affinities_are_averaged(self, fitted):
        small, bounds = findings.affinity_picture(fitted, size=20)
        assert small.shape == (20, 20)
        assert 0 <= small.min() <= small.max() == 1
        assert bounds[0] == 0
        assert bounds[-1] == 1

    def test_eigenvalues_go_beyond_the_clusters(self, fitted, page):
        values = page.data["cut"]["eigenvalues"]
        assert len(values) == len(page.data["cut"]["gaps"]) + 1 >= 15
        np.testing.assert_allclose(values[:5], fitted.eigenvalues_, atol=1e-6)

    def test_places_have_clusters_apart(self, fitted):
        places = findings.plane(fitted)
        np.testing.assert_array_equal(np.isnan(places[:, 0]), fitted.labels_ == -1)
        middles = [np.median(places[fitted.labels_ == k], axis=0) for k in range(5)]
        nearest = [
            np.argmin([np.linalg.norm(p - m) for m in middles]) for p in places[~fitted.outliers_]
        ]
        assert np.mean(nearest == fitted.labels_[~fitted.outliers_]) > 0.75

    def test_the_same_fit_gives_the_same_bytes(self, fitted, page, tmp_path):
        again = fitted.report(tmp_path / "again.html")
        assert again.read_text(encoding="utf-8") == page.source


class TestReproduce:
    def run(self, code, X):
        space = {"X": X}
        exec(code, space)
        return space["est"]

    def test_the_code_gives_the_same_labels(self, demo, fitted):
        code = findings.code(fitted)
        assert code.splitlines()[2:] == [
            "est = ORTLRR(n_clusters=5, random_state=0)",
            "est.fit(X)  # X: array of shape (120, 8, 8)",
        ]
        np.testing.assert_array_equal(self.run(code, demo.X).labels_, fitted.labels_)

    @pytest.mark.parametrize(
        "change",
        [
            {"contamination": 0.2},
            {"n_clusters": 4},
            {"n_clusters": "auto"},
            {"threshold": np.inf},
            {"threshold": 2.5, "recut": False},
        ],
    )
    def test_later_decisions_are_part_of_it(self, demo, change):
        est = ORTLRR(5, random_state=0).fit(demo.X).relabel(**change)
        code = findings.code(est)
        assert code.count("relabel") == 1
        np.testing.assert_array_equal(self.run(code, demo.X).labels_, est.labels_)

    def test_objects_are_imported(self, demo):
        est = make("OR-TLRR-DFT", 5, random_state=0, lam=Lambda.relative(0.5)).fit(demo.X)
        again = self.run(findings.code(est), demo.X)
        np.testing.assert_array_equal(again.labels_, est.labels_)

    def test_parameters_of_the_fit_not_later_ones(self, demo):
        est = TensorOutlierDetector(contamination=0.1).fit(demo.X)
        est.set_params(contamination=0.3)
        assert "contamination=0.1" in findings.code(est)
        est.relabel(contamination=0.2)
        again = self.run(findings.code(est), demo.X)
        np.testing.assert_array_equal(again.outliers_, est.outliers_)


class TestKinds:
    """Every estimator, and every shape of samples."""

    def test_ssc_has_a_bound_but_no_iteration(self, demo, tmp_path):
        page = page_of(SSC(5, random_state=0).fit(demo.X), tmp_path)
        assert "Every sample solved to within" in page.text
        assert "convergence" not in page.ids
        assert page.data["decision"]["threshold"] is None
        assert "gallery" in page.ids

    def test_ssc_omp_has_no_certificate(self, demo, tmp_path):
        page = page_of(SSCOMP(5, random_state=0).fit(demo.X), tmp_path)
        assert "No certificate" in page.text
        assert not page.data["history"]

    def test_lsr_needs_no_certificate(self, demo, tmp_path):
        page = page_of(LSR(5, random_state=0).fit(demo.X), tmp_path)
        assert "No certificate is needed: the solution has a closed form" in page.text
        assert not page.data["history"]

    def test_published_schedules_say_how_far_they_are(self, demo, tmp_path):
        est = make("OR-TLRR-DFT", 5, random_state=0).fit(demo.X)
        page = page_of(est, tmp_path)
        certificate = est.certificate_
        above = certificate.primal / certificate.dual - 1
        assert above > 0.01
        assert f"at most {percent(above)} above the optimum" in page.text
        assert "within" not in certificate_in_words(est)

    def test_detector(self, demo, tmp_path):
        est = TensorOutlierDetector().fit(demo.X)
        page = page_of(est, tmp_path)
        assert page.data["cut"] is None
        assert {"gallery", "graph"}.isdisjoint(page.ids)
        assert {"ranking", "histogram", "convergence"} <= page.ids
        assert set(page.data["decision"]["clusters"]) == {1}

    @pytest.mark.parametrize("missing", [0.0, 0.2])
    def test_completer(self, tmp_path, missing):
        data = datasets.load_demo(80, outliers=0, missing=missing)
        est = TensorCompleter().fit(data.X)
        page = page_of(est, tmp_path)
        assert page.data["decision"] is None
        assert ("holes" in page.ids) == bool(missing)
        if missing:
            filled = np.round(255 * np.clip(est.transform(data.X), 0, 1))
            assert np.abs(page.tiles("clean")[..., 0] - filled).max() <= 1
        else:
            assert "nothing was solved" in page.text

    def test_missing_entries_are_counted_and_transparent(self, tmp_path):
        data = datasets.load_demo(100, outliers=8, missing=0.2)
        page = page_of(ORTLRR(5, random_state=0).fit(data.X), tmp_path)
        holes = np.isnan(data.X)
        assert page.data["missing"] == holes.sum(axis=(1, 2)).tolist()
        assert f"{holes.sum():,} recovered" in page.text
        tiles = page.tiles("input")
        np.testing.assert_array_equal(tiles[..., 1] == 0, holes)
        assert page.tiles("clean").shape[-1] == 1

    def test_holes_are_known_after_a_completion_too(self):
        data = datasets.load_demo(100, outliers=8, missing=0.2)
        est = SSC(5, completion="tnn", random_state=0).fit(data.X)
        found = report.examine(est)
        np.testing.assert_array_equal(np.isnan(found.inputs), np.isnan(data.X))

    def test_tables_become_lines(self, tmp_path):
        X = datasets.make_tensor_subspaces(12, 1, 2, 2, 20, outliers=0, random_state=0).X[..., 0]
        page = page_of(ORTLRR(2, random_state=0).fit(X), tmp_path)
        assert page.data["tiles"]["input"]["kind"] == "lines"
        assert (page.data["tiles"]["input"]["height"], page.data["tiles"]["input"]["width"]) == (
            1,
            12,
        )

    def test_sensor_panels_become_lines_and_others_heat_maps(self, tmp_path):
        rng = np.random.default_rng(0)
        shapes = {(4, 200): "lines", (12, 9): "heat", (6, 6): "heat"}
        for shape, kind in shapes.items():
            est = ORTLRR(2, outliers=None, random_state=0).fit(rng.normal(size=(24, *shape)))
            tiles = page_of(est, tmp_path).data["tiles"]["input"]
            assert tiles["kind"] == kind
            assert tiles["diverging"] == (kind == "heat")

    def test_colour(self, demo, tmp_path):
        X = np.stack([demo.X, demo.X**2, 1 - demo.X], axis=-1)
        est = ORTLRR(5, transform="none", random_state=0).fit(X)
        page = page_of(est, tmp_path)
        assert page.data["tiles"]["input"]["colour"]
        assert_shows(page.tiles("input"), X)

    def test_one_cluster_and_as_many_as_samples(self, demo, tmp_path):
        for k in (1, 2, 120):
            page = page_of(ORTLRR(k, outliers=None, random_state=0).fit(demo.X), tmp_path)
            assert page.data["cut"]["n_clusters"] == k

    def test_identical_samples(self, tmp_path):
        X = np.tile(np.random.default_rng(0).normal(size=(1, 6, 4)), (20, 1, 1))
        page = page_of(ORTLRR(1, random_state=0).fit(X), tmp_path)
        assert page.data["n"] == 20

    def test_matrix_methods_and_single_precision(self, demo, tmp_path):
        est = LowRankClusterer(5, vectorize=True, random_state=0).fit(demo.X.astype(np.float32))
        assert_shows(page_of(est, tmp_path).tiles("input")[..., 0], demo.X)


class TestOptions:
    def test_images_are_shown_beside_the_samples(self, demo, fitted, tmp_path):
        images = np.repeat(np.repeat(demo.X, 3, axis=1), 3, axis=2)
        page = page_of(fitted, tmp_path, images=images)
        assert_shows(page.tiles("picture")[..., 0], images)

    def test_images_that_are_the_samples_are_not_shown_twice(self, demo, fitted, tmp_path):
        assert "picture" not in page_of(fitted, tmp_path, images=demo.X).data["tiles"]

    def test_images_of_several_sizes(self, demo, fitted, tmp_path):
        images = [Image.fromarray(np.full((4 + i % 3, 9, 3), i, np.uint8)) for i in range(120)]
        page = page_of(fitted, tmp_path, images=images)
        tiles = page.tiles("picture")
        assert tiles.shape == (120, 6, 9, 4)
        assert (tiles[3, 0, :, 3] == 0).all()  # nothing above a lower picture
        assert (tiles[3, 1:5, :, 3] == 255).all()

    def test_show_decides(self, fitted, tmp_path):
        assert page_of(fitted, tmp_path, show="heat").data["tiles"]["input"]["kind"] == "heat"

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"names": ["a"]}, "names must hold one name for each of the 120 samples, got 1"),
            ({"names": "x" * 120}, "names must be a sequence of 120 strings"),
            ({"title": 3}, "title must be a string"),
            ({"show": "film"}, "show must be one of"),
            ({"images": np.zeros((3, 8, 8))}, "one picture for each of the 120 samples, got 3"),
            ({"images": np.zeros((120, 8))}, "images must be arrays of height x width"),
            ({"images": 3}, "images must hold one picture"),
        ],
    )
    def test_wrong_options(self, fitted, tmp_path, options, words):
        with pytest.raises(ValueError, match=words):
            fitted.report(tmp_path / "report.html", **options)
        assert not list(tmp_path.iterdir())

    def test_wrong_places(self, fitted, tmp_path):
        for path in (tmp_path, tmp_path / "nowhere" / "report.html"):
            with pytest.raises(ValueError, match="path must name a file"):
                fitted.report(path)

    def test_not_fitted(self, tmp_path):
        with pytest.raises(ValueError, match="not fitted"):
            ORTLRR().report(tmp_path / "report.html")
        with pytest.raises(ValueError, match="estimator must be"):
            report.write("model", tmp_path / "report.html")

    @pytest.mark.parametrize(("module", "word"), [("jinja2", "jinja2"), ("PIL.Image", "pillow")])
    def test_a_missing_package_is_named(self, fitted, tmp_path, monkeypatch, module, word):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"{word}: pip install .tubal\[report\]"):
            fitted.report(tmp_path / "report.html")
        assert not list(tmp_path.iterdir())


class TestFile:
    def test_it_replaces_whole(self, fitted, tmp_path, monkeypatch):
        path = tmp_path / "report.html"
        path.write_text("old")
        with monkeypatch.context() as broken:
            broken.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(OSError, match="disk full"):
                fitted.report(path)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
        assert fitted.report(str(path)) == path
        assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")

    def test_hostile_names_stay_text(self, fitted, tmp_path):
        evil = ["</script><script>alert(1)</script>", "<!--", "a,b\"'&\u2028", "\ud800"]
        names = [*evil, *map(str, range(116))]
        page = page_of(fitted, tmp_path, names=names, title="</title><img src=x onerror=alert(1)>")
        assert page.data["names"] == names
        scripts = [attrs for tag, attrs in page.tags if tag == "script"]
        assert [a for a in scripts if "type" not in a] == [{}]
        assert not [tag for tag, _ in page.tags if tag == "img"]

    def test_nothing_is_loaded(self, page):
        policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
        assert policy.startswith("default-src 'none'")
        for tag, attrs in page.tags:
            assert "src" not in attrs, tag
            assert not re.match(r"(https?:)?//", attrs.get("href", "")), tag
        assert "@import" not in page.source
        assert "url(http" not in page.source

    def test_parts_of_the_program_cannot_end_their_element(self, page):
        assert "</script" not in page.scripts["script"].lower()
        assert page.source.count("</style>") == 1

    @pytest.mark.slow
    def test_five_thousand_pictures_stay_small(self, tmp_path):
        """Photographs compress badly; noise on top of digits does too."""
        rng = np.random.default_rng(0)
        digits = datasets.load_demo(500, outliers=0).X
        large = np.kron(digits[rng.integers(0, 500, 5000)], np.ones((1, 4, 4)))
        X = np.clip(0.8 * large + 0.1 * rng.random(large.shape), 0, 1)
        est = SSCOMP(10, n_nonzero=5, random_state=0).fit(X)
        for images in (None, np.stack([X, X[:, ::-1], X[:, :, ::-1]], axis=-1)):
            path = est.report(tmp_path / "report.html", images=images)
            assert path.stat().st_size < 25e6


class TestSprites:
    def test_shrink_is_the_mean_of_what_is_there(self):
        values = np.arange(16.0).reshape(1, 4, 4)
        values[0, 0, 0] = np.nan
        small = sprites.shrink(values, 2)
        np.testing.assert_allclose(small, [[[(1 + 4 + 5) / 3, 4.5], [10.5, 12.5]]])
        assert np.isnan(sprites.shrink(np.full((1, 4, 4), np.nan), 2)).all()

    @pytest.mark.parametrize("sizes", [(7, 3), (10, 4), (5, 5)])
    def test_boxes_keep_the_mean(self, sizes):
        table = sprites._boxes(*sizes)
        np.testing.assert_allclose(table.sum(axis=1), 1)
        np.testing.assert_allclose(table.mean(axis=0), 1 / sizes[0])

    def test_columns_of_other_size_get_a_scale_of_their_own(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(50, 6)) * [1, 1, 1, 1, 1, 1000]
        values, kind = sprites.arrange(X)
        tiles = sprites.draw(values, kind)
        assert tiles.scale.by_column
        assert tiles.values[:, 0, :, 0].std(axis=0).min() > 40
        assert not sprites.draw(*sprites.arrange(X[:, :5])).scale.by_column

    def test_a_column_without_values(self):
        X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 1, 1, 500]
        X[:, 1] = np.nan
        tiles = sprites.draw(*sprites.arrange(X))
        assert not tiles.observed[:, 0, 1].any()

    def test_more_axes_are_averaged(self):
        values, kind = sprites.arrange(np.ones((3, 9, 8, 5)))
        assert values.shape == (3, 9, 8)
        assert kind == "picture"


class TestWords:
    @pytest.mark.parametrize("share", [3e-9, 1e-6, 1.0001e-4, 0.00999, 0.0999, 0.5234, 7.123])
    def test_bounds_hold_as_they_are_written(self, share):
        written = float(percent(share).removesuffix(" %")) / 100
        assert share <= written * (1 + 1e-12)
        assert written <= max(1.11 * share, 1.01e-6)

    def test_facts(self, fitted):
        found = dict(facts(fitted))
        assert found["samples"] == "120 of 8 x 8"
        assert found["clusters"] == "5"
        assert found["outliers"].startswith(f"{fitted.outliers_.sum()} (")
        assert found["certificate"].startswith("within")

    def test_a_run_that_was_stopped(self, demo):
        est = ORTLRR(5, max_iter=2)
        with pytest.warns(ConvergenceWarning):
            est.fit(demo.X)
        assert certificate_in_words(est).startswith("stopped at the iteration limit")


class TestNotebook:
    def test_a_fitted_estimator_says_what_it_found(self, fitted):
        for html in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
            assert html.count("tubal-facts") == 1
            assert certificate_in_words(fitted) in html
            assert "sk-estimator" in html

    def test_before_a_fit_nothing_changes(self):
        from sklearn.utils import estimator_html_repr

        html = re.sub(r"\d+", "", ORTLRR(3)._repr_html_())
        assert html == re.sub(r"\d+", "", estimator_html_repr(ORTLRR(3)))

    def test_text_display_stays_text(self, fitted):
        import sklearn

        with sklearn.config_context(display="text"):
            assert "text/html" not in fitted._repr_mimebundle_()
