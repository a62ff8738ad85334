"""The report in a browser: what a reader does with it, and that nothing goes wrong meanwhile."""

import copy
import csv
import re
import shutil

import numpy as np
import pytest

from tubal import ORTLRR, SSCOMP, TensorCompleter, TensorOutlierDetector, datasets

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)

pytestmark = pytest.mark.slow
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def window():
    """Return a page of a browser, and the list of what went wrong in it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page, problems = browser.new_page(), []
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: problems.append(f"request: {request.url}"))
        yield page, problems
        browser.close()


@pytest.fixture
def visit(window):
    """Open reports; at the end, no errors may have been logged and nothing been asked for."""
    page, problems = window
    problems.clear()

    def open_report(path, width=1280, color_scheme="light"):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=color_scheme)
        page.goto(path.as_uri())
        return page

    yield open_report
    own = ("request: file:", "request: data:", "request: blob:")
    assert [problem for problem in problems if not problem.startswith(own)] == []


@pytest.fixture(scope="module")
def data():
    return datasets.load_demo(300, outliers=30, missing=0.1)


@pytest.fixture(scope="module")
def fitted(data):
    return ORTLRR(6, random_state=0).fit(data.X)


@pytest.fixture(scope="module")
def path(fitted, tmp_path_factory):
    return fitted.report(tmp_path_factory.mktemp("report") / "report.html")


def counts(page):
    text = page.locator(".counts").inner_text()
    return tuple(int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?= )", text))


def samples(page, selector):
    """Return the samples that elements show, in their order."""
    return page.evaluate(
        "(css) => [...document.querySelectorAll(css)].map((e) => Number(e.dataset.sample))",
        selector,
    )


def settle(page):
    page.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)))")


def threshold_of(page):
    code = page.locator("#relabel").inner_text()
    return float(re.search(r"threshold=(?:float\(\")?([^,)\"]+)", code)[1])


def exported(page, folder):
    with page.expect_download() as download:
        page.click("#export")
    file = folder / "labels.csv"
    download.value.save_as(file)
    assert download.value.suggested_filename == "labels.csv"
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def whole(page):
    """Scroll through the page, so that everything is drawn."""
    height = page.evaluate("document.documentElement.scrollHeight")
    for top in range(0, height, 600):
        page.evaluate(f"window.scrollTo({{top: {top}, behavior: 'instant'}})")
        settle(page)
    page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
    page.wait_for_function(
        "[...document.querySelectorAll('.tile canvas')].slice(0, 5).every(c => c.dataset.painted)"
    )


class TestThreshold:
    def check(self, page, est, folder):
        """What the page says and exports is what `relabel` says."""
        settle(page)
        threshold = threshold_of(page)
        labels = est.relabel(threshold=threshold, recut=False).labels_
        assert counts(page) == ((labels >= 0).sum(), (labels < 0).sum())
        sizes = page.locator(".cluster .size").all_inner_texts()
        expected = [int((labels == k).sum()) for k in range(est.n_clusters_)]
        assert [int(text.split()[0].replace(",", "")) for text in sizes] == expected
        rows = exported(page, folder)
        assert [int(row["index"]) for row in rows] == list(range(len(labels)))
        assert [int(row["label"]) for row in rows] == labels.tolist()
        assert [float(row["outlier_score"]) for row in rows] == est.outlier_scores_.tolist()
        return threshold

    @pytest.fixture
    def est(self, fitted):
        return copy.deepcopy(fitted)

    def test_it_starts_with_the_fit(self, visit, path, est, tmp_path):
        page = visit(path)
        before = est.threshold_
        assert self.check(page, est, tmp_path) == before
        assert page.locator("#exact").input_value() == repr(before)

    def test_arrow_keys(self, visit, path, est, tmp_path):
        page = visit(path)
        before = counts(page)
        page.focus("#slider")
        for key in ("PageDown", "PageDown", "ArrowLeft", "ArrowLeft"):
            page.keyboard.press(key)
        after = self.check(page, est, tmp_path)
        assert after < page.evaluate("JSON.parse(data.textContent).decision.threshold")
        assert counts(page)[1] > before[1]
        assert f"{counts(page)[1]} outliers" in page.get_attribute("#slider", "aria-valuetext")
        page.focus("#slider")
        page.keyboard.press("End")
        self.check(page, est, tmp_path)
        assert counts(page)[1] == 0
        assert "None at this threshold" in page.locator("#ranking").inner_text()
        page.click("#reset")
        settle(page)
        assert counts(page) == before

    def test_dragging_in_the_histogram(self, visit, path, est, tmp_path):
        page = visit(path)
        box = page.locator("#histogram").bounding_box()
        y = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.8 * box["width"], y)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.1 * box["width"], y, steps=8)
        page.mouse.up()
        threshold = self.check(page, est, tmp_path)
        assert threshold == pytest.approx(0.1 * est.outlier_scores_.max(), rel=0.1)
        page.mouse.move(box["x"] + 0.5 * box["width"], y)  # the button is up: nothing moves
        settle(page)
        assert threshold_of(page) == threshold

    def test_exact_numbers(self, visit, path, est, tmp_path):
        page = visit(path)
        for value in (repr(float(np.median(est.outlier_scores_))), "-1", "1e9", "0"):
            page.fill("#exact", value)
            assert self.check(page, est, tmp_path) == float(value)
        page.fill("#exact", "")
        assert self.check(page, est, tmp_path) == np.inf

    def test_outliers_are_ranked(self, visit, path, fitted):
        page = visit(path)
        shown = samples(page, "#ranking .triple")
        expected = np.argsort(-fitted.outlier_scores_, kind="stable")[: len(shown)]
        assert shown == expected.tolist()
        page.fill("#exact", "0.5")
        settle(page)
        page.locator("#ranking .more").click()
        assert page.locator("#ranking .triple").count() > len(shown)

    def test_a_detector(self, visit, data, tmp_path):
        est = TensorOutlierDetector().fit(data.X)
        page = visit(est.report(tmp_path / "report.html"))
        page.fill("#exact", "2")
        settle(page)
        labels = np.where(est.relabel(threshold=2.0).outliers_, -1, 1)
        assert [int(row["label"]) for row in exported(page, tmp_path)] == labels.tolist()
        assert "recut" not in page.locator("#relabel").inner_text()


class TestGallery:
    def ids(self, page, k):
        return samples(page, f".cluster[data-cluster='{k}'] .tile canvas")

    def test_typical_samples_come_first(self, visit, path, fitted):
        page = visit(path)
        typical = np.array(page.evaluate("JSON.parse(data.textContent).decision.typicality"))
        for k in range(fitted.n_clusters_):
            members = np.flatnonzero(fitted.labels_ == k)
            expected = members[np.argsort(-typical[members], kind="stable")]
            shown = self.ids(page, k)
            assert shown == expected[: len(shown)].tolist()

    def test_show_more_until_all_are_there(self, visit, path, fitted):
        page = visit(path)
        for k in range(fitted.n_clusters_):
            more = page.locator(f".cluster[data-cluster='{k}'] .more")
            while more.count():
                more.click()
            assert len(self.ids(page, k)) == (fitted.labels_ == k).sum()

    @pytest.mark.parametrize("what", ["input", "clean"])
    def test_pictures_are_the_samples(self, visit, path, data, fitted, what):
        page = visit(path)
        page.check(f"input[value={what}]")
        page.locator("#clusters").scroll_into_view_if_needed()
        canvas = page.locator(".tile canvas").first
        page.wait_for_function("document.querySelector('.tile canvas').dataset.painted")
        i = int(canvas.get_attribute("data-sample"))
        pixels = np.array(
            canvas.evaluate("c => [...c.getContext('2d').getImageData(0, 0, 8, 8).data]")
        ).reshape(8, 8, 4)
        source = data.X[i] if what == "input" else np.clip(fitted.X_clean_[i], 0, 1)
        seen = ~np.isnan(source)
        np.testing.assert_array_equal(pixels[..., 3] == 255, seen)
        assert np.abs(pixels[seen][:, 0] - 255 * source[seen]).max() < 0.5001

    def test_keyboard(self, visit, path):
        page = visit(path)
        tiles = page.locator(".cluster[data-cluster='0'] .tile")
        assert [t.get_attribute("tabindex") for t in tiles.all()[:3]] == ["0", "-1", "-1"]
        tiles.first.focus()
        page.keyboard.press("ArrowRight")
        second = tiles.nth(1)
        assert second.evaluate("e => e === document.activeElement")
        page.keyboard.press("Enter")
        name = second.get_attribute("aria-label").split(",")[0]
        assert page.locator("dialog h3").inner_text() == name
        assert page.locator("dialog canvas").count() == 3
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")
        assert second.evaluate("e => e === document.activeElement")


class TestGraph:
    def test_hover_names_the_sample(self, visit, data, fitted, tmp_path):
        names = [f"picture {i} <b>" for i in range(len(data.X))]
        page = visit(fitted.report(tmp_path / "report.html", names=names))
        canvas = page.locator("#map")
        canvas.scroll_into_view_if_needed()
        canvas.focus()
        page.keyboard.press("ArrowRight")
        tip = page.locator("#tip")
        assert re.match(r"picture \d+ <b>", tip.inner_text())
        first = tip.inner_text()
        page.keyboard.press("ArrowRight")
        assert tip.inner_text() != first
        name = tip.locator("b").inner_text()
        page.keyboard.press("Enter")
        assert page.locator("dialog h3").inner_text() == name
        page.keyboard.press("Escape")
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        tip.wait_for(state="hidden")

    def test_charts_have_their_marks(self, visit, path, fitted):
        page = visit(path)
        whole(page)
        checks = len(fitted.solution_.history)
        assert page.locator("#bounds circle").count() == 2 * checks
        assert page.locator("#gap circle").count() == checks
        gaps = page.evaluate("JSON.parse(data.textContent).cut.gaps.length")
        assert page.locator("#spectrum rect").count() == gaps
        blank = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
        assert page.locator("#matrix").evaluate(blank) > 10
        assert page.locator("#map").evaluate(blank) > 10


class TestAppearance:
    def background(self, page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    def test_themes(self, visit, path):
        page = visit(path, color_scheme="light")
        light = self.background(page)
        page = visit(path, color_scheme="dark")
        dark = self.background(page)
        assert light != dark
        page.click("#theme")
        assert self.background(page) == light
        page.click("#theme")
        assert self.background(page) == dark

    def test_nothing_sticks_out(self, visit, path):
        page = visit(path, width=390)
        whole(page)
        for width in (320, 390, 768, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            settle(page)
            assert page.evaluate("document.documentElement.scrollWidth") == width

    def test_text_has_contrast(self, visit, path):
        """WCAG AA: 4.5 to 1 for text, in both themes."""
        measure = """() => {
          const style = getComputedStyle(document.documentElement);
          const light = (name) => {
            const hex = style.getPropertyValue(name).trim().slice(1);
            const [r, g, b] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255)
              .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const pairs = [["--ink", "--page"], ["--soft", "--page"], ["--soft", "--panel"],
            ["--accent", "--page"], ["--hot", "--panel"], ["--accent-ink", "--accent"],
            ["--soft", "--wash"]];
          return pairs.map(([a, b]) => {
            const [x, y] = [light(a), light(b)].sort();
            return [a, b, (y + 0.05) / (x + 0.05)];
          });
        }"""
        for scheme in ("light", "dark"):
            for one, other, ratio in visit(path, color_scheme=scheme).evaluate(measure):
                assert ratio >= 4.5, (scheme, one, other)

    def test_everything_has_a_name(self, visit, path):
        page = visit(path)
        whole(page)
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll('button, input, canvas[role=img], svg')]
            .filter((e) => !e.closest('[aria-hidden=true]'))
            .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim()
              || (e.labels && e.labels.length)))
            .map((e) => e.outerHTML.slice(0, 120))"""
        )
        assert unnamed == []


@pytest.mark.slow  # a fit and a report each
class TestOtherReports:
    def test_hostile_names(self, visit, data, fitted, tmp_path):
        evil = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", '=1,"x"\n']
        names = [*evil, *map(str, range(len(data.X) - 3))]
        page = visit(fitted.report(tmp_path / "report.html", names=names, title="<script>alert(3)"))
        whole(page)
        assert page.locator("h1").inner_text() == "<script>alert(3)"
        assert [row["name"] for row in exported(page, tmp_path)] == names

    @pytest.mark.parametrize("estimator", [SSCOMP(4, random_state=0), TensorCompleter()])
    def test_estimators(self, visit, tmp_path, estimator):
        data = datasets.load_demo(100, outliers=0)
        X = data.X.copy()
        if isinstance(estimator, TensorCompleter):
            X[:, 3, 3] = np.nan
            X[0, 3, 3] = 0.5
        page = visit(estimator.fit(X).report(tmp_path / "report.html"))
        page.locator("#reproduce").scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('canvas.art').dataset.painted")

    def test_lines(self, visit, tmp_path):
        rng = np.random.default_rng(0)
        waves = np.sin(np.arange(80) * rng.choice([0.1, 0.3], (40, 3, 1)) + rng.random((40, 3, 1)))
        waves[0, 1, 10:30] = np.nan
        page = visit(ORTLRR(2, random_state=0).fit(waves).report(tmp_path / "report.html"))
        whole(page)
        assert "one line a channel" in page.locator("#clusters .hint").inner_text()
        used = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((v) => v)"
        assert page.locator(".tile canvas").first.evaluate(used)

    def test_five_thousand_pictures_stay_responsive(self, visit, tmp_path):
        rng = np.random.default_rng(0)
        digits = datasets.load_demo(500, outliers=0).X
        large = np.kron(digits[rng.integers(0, 500, 5000)], np.ones((1, 4, 4)))
        X = np.clip(0.8 * large + 0.1 * rng.random(large.shape), 0, 1)
        est = SSCOMP(10, n_nonzero=5, outliers="published", random_state=0).fit(X)
        page = visit(est.report(tmp_path / "report.html"))
        whole(page)
        seconds = page.evaluate(
            """async () => {
              const slider = document.getElementById('slider');
              const frame = () => new Promise((go) => requestAnimationFrame(go));
              const start = performance.now();
              for (let v = 100; v < 500; v += 20) {
                slider.value = v;
                slider.dispatchEvent(new Event('input'));
                await frame();
                await frame();
              }
              return (performance.now() - start) / 20000;
            }"""
        )
        assert seconds < 0.5  # for one step, two frames included; 0.05 to 0.1 on two cores
