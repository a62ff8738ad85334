"""Image sets: downloads that survive bad servers, exact conversions, and files that are checked."""

import bz2
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from tubal import datasets
from tubal.datasets import convert, download, fetching, registry, store
from tubal.datasets.download import DownloadError
from tubal.datasets.registry import Dataset, Remote, Source

PAPER = {"orl": 40, "coil20": 20, "umist": 20, "frdue": 152, "usps": 10, "mirflickr": None}
BODY = bytes(np.random.default_rng(0).integers(0, 256, 300_000, dtype=np.uint8))
SHA256 = "sha256:" + hashlib.sha256(BODY).hexdigest()
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


class Site:
    """A web site whose faults can be set, and which remembers what it was asked for."""

    def __init__(self):
        self.files = {"/data.bin": BODY}
        self.etag = '"v1"'
        self.ranges = True  # obeys Range
        self.if_range = True  # obeys If-Range
        self.cuts = []  # bytes after which the next answers end
        self.codes = []  # status of the next answers
        self.claim = 0  # bytes by which Content-Length is too large
        self.length = True  # sends Content-Length
        self.redirect = None
        self.log = []
        handler = type("Handler", (_Handler,), {"site": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path="/data.bin"):
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def log_message(self, *args):
        pass

    def do_GET(self):
        site = self.site
        site.log.append(dict(self.headers))
        code = site.codes.pop(0) if site.codes else 200
        if site.redirect:
            self.send_response(302)
            self.send_header("Location", site.redirect)
            self.end_headers()
        elif self.path not in site.files or code != 200:
            self.send_error(404 if code == 200 else code)
        else:
            self.send_body(site.files[self.path])

    def send_body(self, body):
        site, asked = self.site, self.headers.get("Range")
        start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and site.ranges else 0
        same = self.headers.get("If-Range") in (None, site.etag)
        if start and site.if_range and not same:
            start = 0
        if start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        if site.length:
            self.send_header("Content-Length", str(len(body) - start + site.claim))
        if site.etag:
            self.send_header("ETag", site.etag)
        self.end_headers()
        stop = start + site.cuts.pop(0) if site.cuts else len(body)
        self.wfile.write(body[start:stop])
        self.close_connection = True


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    site = Site()
    yield site
    site.close()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "files" / "data.bin"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path, request):
    """No test sees the data of this machine, but for those that ask for it."""
    if "data_dir" not in request.fixturenames:
        monkeypatch.delenv("TUBAL_DATA", raising=False)
    monkeypatch.setenv("TUBAL_CACHE", str(tmp_path / "cache"))


def names(folder):
    """Names of the files in a folder but for locks."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def get(site, target, **options):
    return download.download(site.url(), target, **options)


# ---- downloads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", [None, SHA256, MD5, MD5.upper().replace("MD5", "md5")])
def test_a_file_arrives(site, target, digest):
    seen = []
    sha256 = get(site, target, digest=digest, progress=lambda *step: seen.append(step))
    assert target.read_bytes() == BODY
    assert f"sha256:{sha256}" == SHA256
    assert names(target.parent) == ["data.bin"]
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert "Range" not in site.log[0]
    assert site.log[0]["Accept-Encoding"] == "identity"  # the bytes that the hash is of
    assert site.log[0]["User-Agent"].startswith("tubal/")


def test_a_file_that_is_there_is_not_asked_for(site, target):
    get(site, target)
    get(site, target, digest=SHA256)
    assert len(site.log) == 1


def test_a_file_that_is_there_is_checked_and_left(site, target):
    target.parent.mkdir()
    target.write_bytes(b"mine")
    with pytest.raises(
        ValueError, match=f"data.bin has the wrong hash: expected {SHA256}, got sha"
    ):
        get(site, target, digest=SHA256)
    assert target.read_bytes() == b"mine"
    assert site.log == []


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_is_resumed(site, target, ranges):
    """From there, or from the beginning where the server knows no ranges."""
    site.ranges = ranges
    site.cuts = [100_000, 50_000] if ranges else [100_000, 150_000]
    get(site, target)
    assert target.read_bytes() == BODY
    assert names(target.parent) == ["data.bin"]
    asked = [headers.get("Range") for headers in site.log]
    assert asked == [None, "bytes=100000-", "bytes=150000-"]
    assert site.log[1]["If-Range"] == '"v1"'


def test_a_server_may_not_tell_the_length(site, target):
    site.length = False
    seen = []
    get(site, target, digest=SHA256, progress=lambda *step: seen.append(step))
    assert seen[-1] == (len(BODY), None)
    target.unlink()
    site.cuts = [1000]  # looks like the end
    with pytest.raises(ValueError, match="has the wrong hash"):
        get(site, target, digest=SHA256)


def test_a_server_that_always_cuts_too_early_is_given_up(site, target):
    site.ranges = False
    site.cuts = [1000] * 100
    with pytest.raises(DownloadError, match="ended after 1000 of 300000 bytes; gave up after 5"):
        get(site, target)
    assert len(site.log) == download.ATTEMPTS
    assert names(target.parent) == ["data.bin.part", "data.bin.part.json"]


def test_patience_lasts_as_long_as_much_comes(site, target, monkeypatch):
    monkeypatch.setattr(download, "STRIDE", 20_000)
    site.cuts = [20_000] * 14
    get(site, target, digest=SHA256)
    assert len(site.log) == 15


def test_a_wrong_length_is_no_file(site, target):
    site.claim = 7
    with pytest.raises(DownloadError, match="ended after 300000 of 300007 bytes"):
        get(site, target)
    assert not target.exists()


def test_a_wrong_hash_is_refused(site, target):
    wrong = "sha256:" + "0" * 64
    with pytest.raises(
        ValueError, match=f"data.bin .* expected {wrong}, got {SHA256}.*{site.url()}"
    ):
        get(site, target, digest=wrong)
    assert names(target.parent) == []
    assert len(site.log) == 1


def test_a_wrong_hash_after_a_resumed_download_is_tried_once_more(site, target):
    target.parent.mkdir()
    target.with_name("data.bin.part").write_bytes(b"?" * 1000)  # not the beginning of this file
    note = {"url": site.url(), "total": len(BODY), "validator": site.etag}
    target.with_name("data.bin.part.json").write_text(json.dumps(note))
    get(site, target, digest=SHA256)
    assert target.read_bytes() == BODY
    assert [headers.get("Range") for headers in site.log] == ["bytes=1000-", None]


def interrupt(site, target, after=100_000, **options):
    """Leave a part, as Ctrl-C does."""

    def stop(done, total):
        if done >= after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(site, target, progress=stop, **options)
    part = target.with_name("data.bin.part")
    assert not target.exists()
    assert 0 < part.stat().st_size < len(BODY)
    assert BODY.startswith(part.read_bytes())
    return part.stat().st_size


def test_control_c_leaves_a_part_and_the_next_run_goes_on(site, target):
    size = interrupt(site, target)
    get(site, target)
    assert target.read_bytes() == BODY
    assert site.log[-1]["Range"] == f"bytes={size}-"


@pytest.mark.parametrize("if_range", [True, False])
@pytest.mark.parametrize("change", [0, -250_000, 10])
def test_a_file_that_changed_meanwhile_is_started_again(site, target, if_range, change):
    """Also when the server overlooks If-Range, and when its copy became shorter than the part."""
    interrupt(site, target)
    other = (BODY[::-1] + b"x" * 10)[: len(BODY) + change]
    site.files["/data.bin"], site.etag, site.if_range = other, '"v2"', if_range
    get(site, target)
    assert target.read_bytes() == other
    assert names(target.parent) == ["data.bin"]


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_a_strong_validator_only_a_hash_allows_to_resume(site, target, etag):
    site.etag = etag
    interrupt(site, target)
    get(site, target)
    assert "Range" not in site.log[-1]
    target.unlink()
    interrupt(site, target)
    get(site, target, digest=SHA256)
    assert "Range" in site.log[-1]
    assert target.read_bytes() == BODY


def test_a_part_of_another_address_is_not_continued(site, target):
    interrupt(site, target)
    site.files["/other.bin"] = BODY[::-1]
    download.download(site.url("/other.bin"), target)
    assert target.read_bytes() == BODY[::-1]


def test_a_complete_part_only_needs_its_name(site, target):
    def stop(done, total):
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(site, target, progress=stop)
    get(site, target)
    assert target.read_bytes() == BODY
    assert len(site.log) == 1


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_refusal_is_final(site, target, code):
    site.codes = [code] * 9
    with pytest.raises(DownloadError, match=rf"data\.bin: the server answers {code}"):
        get(site, target)
    assert len(site.log) == 1
    assert names(target.parent) == []


def test_a_busy_server_is_asked_again(site, target):
    site.codes = [503, 429, 500]
    get(site, target)
    assert len(site.log) == 4
    assert target.read_bytes() == BODY


def test_a_server_that_stays_busy_is_given_up(site, target):
    site.codes = [503] * 99
    with pytest.raises(DownloadError, match=r"503.*gave up after 5 attempts"):
        get(site, target)


def test_nobody_there(site, target):
    site.close()
    with pytest.raises(DownloadError, match=r"no answer \(.*refused.*\); gave up after 5 attempts"):
        get(site, target)


def test_a_silent_server_runs_into_the_timeout(site, target, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr(download, "ATTEMPTS", 2)
    monkeypatch.setattr(_Handler, "send_body", lambda self, body: threading.Event().wait(0.3))
    with pytest.raises(DownloadError, match=r"timed out.*gave up after 2"):
        get(site, target)


def test_a_redirect_leads_to_the_web_only(site, target, tmp_path):
    (tmp_path / "secret").write_text("secret")
    site.redirect = (tmp_path / "secret").as_uri()
    with pytest.raises(DownloadError):
        get(site, target)
    assert not target.exists()


def test_the_server_may_ask_for_a_pause():
    headers = download.Message()
    assert download._retry_after(headers) == 0
    headers["Retry-After"] = "7"
    assert download._retry_after(headers) == 7
    headers.replace_header("Retry-After", "99999")
    assert download._retry_after(headers) == download.LONGEST_PAUSE
    headers.replace_header("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")
    assert download._retry_after(headers) == 0


def test_many_at_once_get_one_whole_file(site, target):
    """Whoever comes second waits and finds the file: one request, no mixture."""
    threads = [threading.Thread(target=get, args=(site, target)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert target.read_bytes() == BODY
    assert names(target.parent) == ["data.bin"]
    assert len(site.log) == 1


def test_processes_wait_for_each_other(tmp_path):
    code = (
        "import sys, pathlib\n"
        "from tubal.datasets.download import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    print('in', flush=True)\n"
    )
    with download.locked(tmp_path / "lock"):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
        )
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(1.0)
    out, _ = child.communicate(timeout=30)
    assert out == "in\n"


def test_what_is_written_appears_complete_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), download.atomic(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    with download.atomic(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_damaged_record_counts_as_none(tmp_path, text):
    (tmp_path / "note.json").write_text(text)
    assert download.read_json(tmp_path / "note.json") == {}
    assert download.read_json(tmp_path / "nothing.json") == {}


# ---- conversions --------------------------------------------------------------------------------

# A picture with a bright upper right corner and a grey lower left one: no flip or turn looks alike.
PICTURE = np.zeros((4, 3), dtype=np.uint8)
PICTURE[0, 2], PICTURE[3, 0] = 255, 102


def columnwise(image):
    """As MATLAB lists the pixels of an image."""
    return image.ravel(order="F")


@pytest.mark.parametrize("keys", [("fea", "gnd"), ("X", "Y"), ("X", "y")])
@pytest.mark.parametrize("turned", [False, True])
def test_mat_rows_become_upright_images(tmp_path, keys, turned):
    rows = np.array([columnwise(PICTURE), columnwise(PICTURE // 2)], dtype=float)
    content = {keys[0]: rows.T if turned else rows, keys[1]: np.array([[1], [2]])}
    savemat(tmp_path / "a.mat", {**content, "Xn05": rows + 7})
    arrays = convert.from_mat([tmp_path / "a.mat"], size=(4, 3))
    np.testing.assert_array_equal(arrays["images"], [PICTURE, PICTURE // 2])
    assert arrays["images"].dtype == np.uint8
    assert arrays["images"].flags.c_contiguous
    assert arrays["labels"].tolist() == [0, 1]
    assert arrays["labels"].dtype == np.int16


def test_mat_values_in_0_1_are_scaled(tmp_path):
    savemat(tmp_path / "a.mat", {"fea": columnwise(PICTURE)[None] / 255, "gnd": [[1]]})
    arrays = convert.from_mat([tmp_path / "a.mat"], size=(4, 3), scale=255)
    np.testing.assert_array_equal(arrays["images"], PICTURE[None])


def test_mat_files_that_are_something_else(tmp_path):
    path = tmp_path / "a.mat"
    with pytest.raises(ValueError, match=r"a\.mat cannot be read as a MATLAB file"):
        convert.from_mat([path], size=(4, 3))
    path.write_bytes(b"<html>not here any more</html>" * 20)
    with pytest.raises(ValueError, match=r"a\.mat cannot be read as a MATLAB file"):
        convert.from_mat([path], size=(4, 3))
    savemat(path, {"A": np.zeros((2, 12))})
    with pytest.raises(ValueError, match=r"a\.mat has A, but none of fea, X, data"):
        convert.from_mat([path], size=(4, 3))
    savemat(path, {"fea": np.zeros((2, 13))})
    with pytest.raises(ValueError, match=r"shape \(2, 13\), not of images 4 x 3"):
        convert.from_mat([path], size=(4, 3))
    savemat(path, {"fea": np.full((1, 12), 300.0), "gnd": [[1]]})
    with pytest.raises(ValueError, match=r"from 300\.0 to 300\.0, times 1, are not grey levels"):
        convert.from_mat([path], size=(4, 3))


def test_olivetti_columns_become_upright_images(tmp_path):
    faces = np.zeros((20, 64, 64), dtype=np.uint8)
    faces[:, 0, 63] = 200
    faces[:, 63, 0] = np.arange(20)
    savemat(tmp_path / "a.mat", {"faces": np.stack([columnwise(face) for face in faces], axis=1)})
    arrays = convert.from_olivetti([tmp_path / "a.mat"])
    np.testing.assert_array_equal(arrays["images"], faces)
    assert arrays["labels"].tolist() == [0] * 10 + [1] * 10


DIGIT = np.full((16, 16), -1.0)
DIGIT[0, 15], DIGIT[15, 0] = 1, 0.25
DIGIT[8, :5] = [-0.8, -0.4, 0, 0.4, 0.8]  # halves: 25.5, 76.5, 127.5, 178.5, 229.5
LEVELS = np.zeros((16, 16), dtype=np.uint8)
LEVELS[0, 15], LEVELS[15, 0] = 255, 159
# As in the reference arrays, at places where the text of zip.test has these values.
LEVELS[8, :5] = [25, 77, 128, 179, 230]


def check_digits(arrays):
    np.testing.assert_array_equal(arrays["images"], [LEVELS, LEVELS, np.zeros((16, 16))])
    assert arrays["labels"].tolist() == [6, 0, 9]
    assert arrays["labels"].dtype == np.int16


def digit_rows(first):
    return [
        [6 + first, *DIGIT.ravel()],
        [0 + first, *DIGIT.ravel()],
        [9 + first, *np.full(256, -1.0)],
    ]


def test_zip_code_text_becomes_digits(tmp_path):
    lines = [" ".join(f"{value:.4f}" for value in row) + " \n" for row in digit_rows(0)]
    (tmp_path / "zip.train.gz").write_bytes(gzip.compress("".join(lines[:2]).encode()))
    (tmp_path / "zip.test").write_text(lines[2])
    check_digits(convert.from_zip_code_text([tmp_path / "zip.train.gz", tmp_path / "zip.test"]))


def test_libsvm_text_becomes_digits(tmp_path):
    lines = [
        f"{row[0]} " + " ".join(f"{i}:{value:.6f}" for i, value in enumerate(row[1:], 1) if value)
        for row in digit_rows(1)
    ]
    (tmp_path / "usps.bz2").write_bytes(bz2.compress("\n".join(lines[:2]).encode()))
    (tmp_path / "usps.t.bz2").write_bytes(bz2.compress(lines[2].encode()))
    check_digits(convert.from_libsvm([tmp_path / "usps.bz2", tmp_path / "usps.t.bz2"]))


def test_arff_text_becomes_digits(tmp_path):
    head = "% digits\n@RELATION usps\n@ATTRIBUTE int0 {1,2}\n@DATA\n"
    rows = "\n".join(",".join(map(str, row)) for row in digit_rows(1))
    (tmp_path / "USPS.arff").write_text(head + rows)
    check_digits(convert.from_arff([tmp_path / "USPS.arff"]))


@pytest.mark.parametrize(
    "read", [convert.from_zip_code_text, convert.from_libsvm, convert.from_arff]
)
@pytest.mark.parametrize("text", ["<html>moved</html>", "1 2 3\n", "6 1:9.0\n", ""])
def test_text_that_is_something_else(tmp_path, read, text):
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match=r"cannot be read|has no lines|not grey levels"):
        read([tmp_path / "file"])


@pytest.fixture
def Image():
    return pytest.importorskip("PIL.Image", reason="Pillow is not installed: it reads pictures")


def make_zip(path, Image, pictures):
    """Write pictures (arrays, or bytes for something else) into an archive, in this order."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in pictures.items():
            if isinstance(content, bytes):
                archive.writestr(name, content)
                continue
            buffer = io.BytesIO()
            kind = {"jpg": "JPEG", "png": "PNG", "pgm": "PPM"}[name[-3:].lower()]
            Image.fromarray(content).save(buffer, kind, quality=95)
            archive.writestr(name, buffer.getvalue())
    return path


def test_pictures_come_in_order(tmp_path, Image):
    shades = {"obj10__0": 100, "obj2__10": 29, "obj2__9": 25, "obj1__0": 10}
    pictures = {
        f"coil/{name}.png": PICTURE // 255 * 100 + np.uint8(n) for name, n in shades.items()
    }
    pictures |= {
        "coil/readme.txt": b"no picture",
        "__MACOSX/coil/obj1__0.png": b"no picture",
        "coil/._obj1__0.png": b"no picture",
    }
    path = make_zip(tmp_path / "a.zip", Image, pictures)
    pattern = r"obj(?P<label>\d+)__(?P<number>\d+)\.png"
    arrays = convert.from_pictures([path], pattern=pattern, size=(4, 3))
    assert arrays["images"][:, 1, 1].tolist() == [10, 25, 29, 100]
    assert arrays["labels"].tolist() == [0, 1, 1, 2]
    assert (arrays["images"].argmax(axis=(2)).max(axis=1) == 2).all()  # the corner is on the right
    assert arrays["images"][0, 0, 2] == 110
    assert set(arrays) == {"images", "labels"}


def test_pgm_pictures(tmp_path, Image):
    pictures = {f"s{person}/{n}.pgm": PICTURE // person for person in (1, 2) for n in (2, 1, 10)}
    path = make_zip(tmp_path / "a.zip", Image, pictures)
    convert_pgm = registry.find_dataset("orl_att").sources[0].convert
    arrays = partial(convert_pgm, size=(4, 3))([path])
    np.testing.assert_array_equal(arrays["images"], [PICTURE] * 3 + [PICTURE // 2] * 3)


def test_colour_becomes_grey_by_itu_r_601_and_large_becomes_small(tmp_path, Image):
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 20, 30]], dtype=np.uint8)
    pictures = {
        f"faces94/male/x/x.{n}.jpg": np.broadcast_to(colour, (200, 180, 3)).copy()
        for n, colour in enumerate(colours, 1)
    }
    pictures["faces94/female/gotone/gotone.1.jpg"] = pictures["faces94/male/x/x.1.jpg"]
    corner = np.zeros((200, 180, 3), dtype=np.uint8)
    corner[:40, 140:] = 255
    pictures["faces94/malestaff/y/y.12.jpg"] = corner
    path = make_zip(tmp_path / "faces94.zip", Image, pictures)
    arrays = registry.find_dataset("frdue").sources[0].convert([path])
    assert arrays["images"].shape == (5, 25, 22)
    assert arrays["names"].tolist() == ["male/x", "malestaff/y"]
    assert arrays["labels"].tolist() == [0, 0, 0, 0, 1]
    grey = np.rint(colours @ [0.299, 0.587, 0.114])
    assert np.abs(arrays["images"][:4, 12, 11] - grey).max() <= 2  # JPEG
    assert arrays["images"][4, :3, -3:].min() > 240
    assert arrays["images"][4, :, :12].max() < 15
    assert arrays["images"][4, 10:].max() < 15


def test_a_reduction_is_antialiased(tmp_path, Image):
    """A checkerboard becomes grey, not black or white."""
    board = np.indices((128, 128)).sum(axis=0) % 2 * np.uint8(255)
    path = make_zip(tmp_path / "a.zip", Image, {"obj1__0.png": board.astype(np.uint8)})
    arrays = registry.find_dataset("coil20_columbia").sources[0].convert([path])
    assert np.abs(arrays["images"].astype(int) - 127.5).max() < 8


def test_cells_become_upright_images(tmp_path, Image):
    stacks = np.empty((1, 2), dtype=object)
    for person, count in enumerate((3, 2)):
        stacks[0, person] = np.zeros((112, 92, count), dtype=np.uint8)
        stacks[0, person][:56, 46:] = 50 * (1 + np.arange(count) + 3 * person)
    savemat(tmp_path / "a.mat", {"facedat": stacks})
    arrays = convert.from_cells([tmp_path / "a.mat"], size=(56, 46))
    assert arrays["images"].shape == (5, 56, 46)
    assert arrays["images"][:, 10, 40].tolist() == [50, 100, 150, 200, 250]
    assert not arrays["images"][:, 30:].any()
    assert not arrays["images"][:, :, :20].any()
    assert arrays["labels"].tolist() == [0, 0, 0, 1, 1]
    assert arrays["exact"].all()
    savemat(tmp_path / "b.mat", {"facedat": np.zeros((1, 2))})
    with pytest.raises(ValueError, match="not a list of stacks"):
        convert.from_cells([tmp_path / "b.mat"], size=(56, 46))


def test_numbered_pictures_are_drawn_once_and_for_all(tmp_path, Image):
    pictures = {f"mirflickr/im{n}.jpg": np.full((8, 6), n * 10, np.uint8) for n in range(1, 21)}
    path = make_zip(tmp_path / "a.zip", Image, pictures)
    read = partial(
        convert.from_numbered_pictures, pattern=r"im(?P<number>\d+)\.jpg", size=(4, 4), first=1
    )
    arrays = read([path], last=20, count=5)
    expected = 1 + np.sort(np.random.default_rng(0).choice(20, 5, replace=False))
    np.testing.assert_array_equal(arrays["ids"], expected)
    assert np.abs(arrays["images"].mean(axis=(1, 2)) - 10 * expected).max() < 2
    with pytest.raises(ValueError, match=r"lacks \d+ of 5 pictures, the first is \d+"):
        read([path], last=2000, count=5)


def test_archives_are_never_unpacked(tmp_path, Image, monkeypatch):
    """Names that lead out of the folder are names like any others."""
    work = tmp_path / "a" / "b"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    pictures = {"../../obj1__0.png": PICTURE, "/obj2__0.png": PICTURE, "..\\obj3__0.png": b"evil"}
    path = make_zip(tmp_path / "evil.zip", Image, pictures)
    before = sorted(tmp_path.rglob("*"))
    pattern = r"obj(?P<label>\d+)__(?P<number>\d+)\.png"
    arrays = convert.from_pictures([path], pattern=pattern, size=(4, 3))
    assert len(arrays["images"]) == 2
    assert sorted(tmp_path.rglob("*")) == before


def test_archives_that_are_something_else(tmp_path, Image, monkeypatch):
    path, pattern = tmp_path / "a.zip", r"obj(?P<label>\d+)__(?P<number>\d+)\.png"
    read = partial(convert.from_pictures, [path], pattern=pattern, size=(4, 3))
    path.write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"a\.zip cannot be read as a zip archive"):
        read()
    make_zip(path, Image, {"readme.txt": b""})
    with pytest.raises(ValueError, match=r"a\.zip has no pictures of the form obj"):
        read()
    make_zip(path, Image, {"obj1__0.png": b"\x89PNG"})
    with pytest.raises(ValueError, match=r"obj1__0\.png cannot be read as a picture"):
        read()
    make_zip(path, Image, {"obj1__0.png": np.zeros((4, 3), dtype=np.uint16)})
    with pytest.raises(ValueError, match=r"mode I(;16)? have no 8-bit grey levels"):
        read()
    make_zip(path, Image, {"obj1__0.png": PICTURE})
    monkeypatch.setattr(convert, "LARGEST_PICTURE", 10)
    with pytest.raises(ValueError, match="cannot be read as a picture: more than 10 bytes"):
        read()


def test_without_pillow_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"pillow: pip install 'tubal\[images\]'"):
        convert.need_pillow()


# ---- fetch --------------------------------------------------------------------------------------

TINY = np.random.default_rng(1).integers(0, 256, (6, 4, 3), dtype=np.uint8)
TINY_LABELS = np.repeat([0, 1], 3).astype(np.int16)


def tiny_mat(images=TINY, labels=TINY_LABELS, **more):
    buffer = io.BytesIO()
    rows = np.stack([columnwise(image) for image in images])
    savemat(buffer, {"fea": rows, "gnd": labels[:, None] + 1, **more})
    return b"tubal".ljust(116) + buffer.getvalue()[116:]  # instead of a text with the time


@pytest.fixture
def tiny(site, monkeypatch):
    """A data set of two sources on the local site, known like those of the paper."""
    arrays = {"images": TINY, "labels": TINY_LABELS}
    read = partial(convert.from_mat, size=(4, 3))
    dataset = Dataset(
        name="tiny",
        title="Tiny",
        shape=TINY.shape,
        classes=2,
        sources=(
            Source("home", (Remote(site.url("/home.mat"), "tiny.mat"),), read),
            Source("copy", (Remote(site.url("/copy.mat"), "tiny.mat"),), read),
        ),
        terms="none",
        citation="nobody",
        content=store.content_hash(arrays),
        truth=store.content_hash({"labels": TINY_LABELS}),
        spots=store.spots(TINY).hex(),
    )
    site.files["/home.mat"] = site.files["/copy.mat"] = tiny_mat()
    monkeypatch.setitem(registry.DATASETS, "tiny", dataset)
    return dataset


def declare(monkeypatch, dataset, **changes):
    monkeypatch.setitem(registry.DATASETS, dataset.name, replace(dataset, **changes))


def test_fetch_then_load(site, tiny, tmp_path):
    seen = []
    path = datasets.fetch("tiny", progress=lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "cache" / "tiny.npz"
    assert seen[-1][0] == seen[-1][1] == len(tiny_mat())
    data = datasets.load("tiny")
    np.testing.assert_array_equal(data.images, TINY)
    np.testing.assert_array_equal(data.labels, TINY_LABELS)
    assert data.reference
    sha256 = hashlib.sha256(tiny_mat()).hexdigest()
    assert f"{site.url('/home.mat')} (sha256 {sha256})" in data.source
    assert f"from {site.url('/home.mat')} (sha256:{sha256})" in datasets.describe("tiny")
    assert names(path.parent) == ["downloads", "tiny.json", "tiny.npz"]
    assert datasets.fetch("tiny") == path  # nothing is asked for again
    assert len(site.log) == 1


def test_fetch_into_a_folder(tiny, tmp_path):
    path = datasets.fetch("tiny", folder=tmp_path / "here")
    assert path == tmp_path / "here" / "tiny.npz"
    assert datasets.find("tiny") is None
    assert datasets.find("tiny", folder=str(path.parent)) == path
    assert not (tmp_path / "cache").exists()


def test_the_next_source_is_asked_when_one_is_gone(site, tiny):
    del site.files["/home.mat"]
    record = store.read_record(datasets.fetch("tiny"))
    assert record["source"] == "copy"
    assert [file["url"] for file in record["files"]] == [site.url("/copy.mat")]


def test_all_sources_gone(site, tiny, tmp_path):
    site.files.clear()
    with pytest.raises(OSError, match=r"no source of tiny .*home: .*404.*copy: .*404.*put here by"):
        datasets.fetch("tiny")
    with pytest.raises(OSError, match=r"copy: .*404") as caught:
        datasets.fetch("tiny", source="copy")
    by_hand = Path(str(caught.value).rpartition("by hand: ")[2])
    by_hand.write_bytes(tiny_mat())
    assert datasets.fetch("tiny", source="copy").exists()


def test_a_source_by_name(site, tiny):
    datasets.fetch("tiny", source="copy")
    assert len(site.log) == 1
    with pytest.raises(ValueError, match="unknown source 'x' of tiny; there are home, copy"):
        datasets.fetch("tiny", source="x")


def test_a_published_hash_is_binding(site, tiny, monkeypatch, tmp_path):
    wrong = "md5:" + "0" * 32
    home, copy = tiny.sources
    strict = replace(home, files=(replace(home.files[0], digest=wrong),))
    declare(monkeypatch, tiny, sources=(strict, copy))
    with pytest.raises(
        ValueError, match=rf"tiny\.mat has the wrong hash: expected {wrong}, got md5"
    ):
        datasets.fetch("tiny")  # and the copy is not asked
    assert len(site.log) == 1
    assert datasets.find("tiny") is None
    assert names(tmp_path / "cache" / "downloads" / "tiny" / "home") == []


def test_what_was_seen_first_is_binding(site, tiny):
    path = datasets.fetch("tiny")
    downloaded = path.parent / "downloads" / "tiny" / "home" / "tiny.mat"
    memory = json.loads(downloaded.with_name("tiny.mat.json").read_text())
    first = "sha256:" + hashlib.sha256(tiny_mat()).hexdigest()
    assert memory["digest"] == first
    downloaded.unlink()
    path.unlink()
    site.files["/home.mat"] += b"\0"
    with pytest.raises(ValueError, match=rf"expected {first}, got .*tiny\.mat\.json has it"):
        datasets.fetch("tiny")
    site.files["/home.mat"] = tiny_mat()
    assert datasets.fetch("tiny") == path


def test_a_file_that_is_something_else_is_not_believed(site, tiny, tmp_path):
    site.files["/home.mat"] = b"<html>We moved.</html>" * 9
    with pytest.raises(
        ValueError, match=r"what home has is not tiny: .*MATLAB.*remove them to"
    ) as e:
        datasets.fetch("tiny")
    downloaded = tmp_path / "cache" / "downloads" / "tiny" / "home" / "tiny.mat"
    assert str(downloaded) in str(e.value)
    assert names(downloaded.parent) == ["tiny.mat"]  # no hash was written down
    downloaded.unlink()
    site.files["/home.mat"] = tiny_mat()
    datasets.fetch("tiny")


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (TINY.transpose(0, 2, 1).reshape(TINY.shape), TINY_LABELS, "another orientation, order"),
        (TINY[::-1], TINY_LABELS, "another orientation, order"),
        (TINY, 1 - TINY_LABELS, "labels, or their order"),
        (TINY, np.zeros(6, np.int16), r"labels are \[0\], not all of 0 to 1"),
        (TINY[:5], TINY_LABELS[:5], r"shape \(5, 4, 3\), not uint8 of shape \(6, 4, 3\)"),
    ],
)
def test_other_images_are_refused(site, tiny, images, labels, message):
    site.files["/home.mat"] = tiny_mat(images, labels)
    with pytest.raises(ValueError, match=f"what home has is not tiny: .*{message}"):
        datasets.fetch("tiny")
    assert datasets.find("tiny") is None


def test_rounding_is_forgiven_and_told(site, tiny):
    rounded = np.clip(TINY.astype(int) + 1, 0, 255).astype(np.uint8)
    site.files["/home.mat"] = tiny_mat(rounded)
    path = datasets.fetch("tiny")
    data = datasets.load("tiny")
    np.testing.assert_array_equal(data.images, rounded)
    assert not data.reference
    path.with_suffix(".json").unlink()
    with pytest.raises(ValueError, match=r"tiny\.npz is not the data set tiny: the SHA-256"):
        datasets.load("tiny")


def test_a_variant_without_reference(site, tiny, monkeypatch):
    declare(monkeypatch, tiny, content="", truth="", spots="")
    path = datasets.fetch("tiny")
    assert not datasets.load("tiny").reference
    path.with_suffix(".json").unlink()
    np.testing.assert_array_equal(datasets.load("tiny").images, TINY)


def test_a_result_that_is_there_is_checked_and_left(site, tiny, tmp_path):
    path = tmp_path / "cache" / "tiny.npz"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"tiny\.npz cannot be read as an npz file"):
        datasets.fetch("tiny")
    assert path.read_bytes() == b"mine"
    assert site.log == []


def test_pillow_is_missed_before_the_download(site, tiny, monkeypatch):
    declare(monkeypatch, tiny, sources=tuple(replace(s, pillow=True) for s in tiny.sources))
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ImportError, match=r"tubal\[images\]"):
        datasets.fetch("tiny")
    assert site.log == []


def test_an_interrupted_fetch_leaves_no_result_and_goes_on(site, tiny):
    site.files["/home.mat"] = tiny_mat(noise=np.frombuffer(BODY, np.uint8))  # several chunks

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        datasets.fetch("tiny", progress=stop)
    assert datasets.find("tiny") is None
    datasets.fetch("tiny")
    assert site.log[-1]["Range"].startswith("bytes=")
    assert datasets.load("tiny").reference


def test_a_failed_save_leaves_nothing(tiny, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        datasets.fetch("tiny")
    assert names(datasets.cache_folder()) == ["downloads", "tiny.json"]


def test_many_fetch_at_once(site, tiny):
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(datasets.fetch("tiny"))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 6
    assert len(set(paths)) == 1
    assert len(site.log) == 1
    np.testing.assert_array_equal(datasets.load("tiny").images, TINY)


# ---- load ---------------------------------------------------------------------------------------


def write(folder, name="tiny", **arrays):
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / f"{name}.npz", **{"images": TINY, "labels": TINY_LABELS, **arrays})
    return folder / f"{name}.npz"


def test_the_order_of_the_folders(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("TUBAL_DATA", str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError):
        datasets.load("tiny", folder=tmp_path / "mine")
    for place in ("cache", "data", "mine"):
        path = write(tmp_path / place)
        assert datasets.find("tiny", folder=tmp_path / "mine") == path
        np.testing.assert_array_equal(datasets.load("tiny", folder=tmp_path / "mine").images, TINY)


def test_what_is_missing_and_how_to_get_it(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("TUBAL_DATA", str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("tiny", folder=tmp_path / "mine")
    message = str(caught.value)
    assert message.startswith("no tiny.npz. Looked in: ")
    assert f"{tmp_path / 'mine'} (folder); {tmp_path / 'data'} (TUBAL_DATA); " in message
    assert f"{tmp_path / 'cache'} (cache)" in message
    assert "`tubal datasets fetch tiny`" in message


def test_umist_says_what_to_take_instead():
    for call in (datasets.load, datasets.fetch):
        with pytest.raises((FileNotFoundError, ValueError), match="fetch umist_cropped`"):
            call("umist")


@pytest.mark.parametrize("call", [datasets.load, datasets.fetch, datasets.find, datasets.describe])
def test_an_unknown_name(call):
    with pytest.raises(ValueError, match="unknown data set 'mnist'; there are orl, orl_olivetti"):
        call("mnist")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": TINY.astype(float)}, "images are float64 of shape"),
        ({"images": TINY[:, :3]}, r"not uint8 of shape \(6, 4, 3\)"),
        ({"labels": TINY_LABELS.astype(float)}, "labels are float64"),
        ({"labels": TINY_LABELS[:5]}, r"labels are int16 of shape \(5,\); .* should be \(6,\)"),
        ({"labels": TINY_LABELS + 1}, r"labels are \[1, 2\], not all of 0 to 1"),
        ({"exact": np.ones(5, dtype=bool)}, "exact are bool of shape"),
        ({"names": np.array(["a"])}, "names are <U1 of shape"),
        ({"images": 255 - TINY}, "the SHA-256 of its arrays should be"),
        ({"labels": 1 - TINY_LABELS}, "the SHA-256 of its arrays should be"),
    ],
)
def test_files_that_are_something_else(tiny, tmp_path, arrays, message):
    path = write(tmp_path / "cache", **arrays)
    with pytest.raises(
        ValueError, match=f"{re.escape(str(path))} is not the data set tiny: .*{message}"
    ):
        datasets.load("tiny")


def test_files_without_what_is_needed(tiny, tmp_path):
    path = tmp_path / "cache" / "tiny.npz"
    path.parent.mkdir()
    np.savez(path, images=TINY)
    with pytest.raises(ValueError, match="it has no labels"):
        datasets.load("tiny")
    np.savez(path, labels=TINY_LABELS)
    with pytest.raises(ValueError, match="it has labels, but no images"):
        datasets.load("tiny")
    with path.open("wb") as file:
        np.save(file, TINY)
    with pytest.raises(ValueError, match="cannot be read as an npz file: one array"):
        datasets.load("tiny")
    np.savez(path, images=np.array([{}]))
    with pytest.raises(ValueError, match="cannot be read as an npz file"):  # no pickles
        datasets.load("tiny")
    write(path.parent)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="cannot be read as an npz file"):
        datasets.load("tiny")


def test_an_image_set(tiny, tmp_path, monkeypatch):
    more = {"exact": np.arange(6) > 2, "names": np.array(["a", "b"]), "course_ids": np.arange(6)}
    declare(monkeypatch, tiny, content="", spots="")
    write(tmp_path / "cache", **more)
    data = datasets.load("tiny")
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X * 255, TINY)
    assert data.labels.dtype == np.int64
    np.testing.assert_array_equal(data.exact, more["exact"])
    np.testing.assert_array_equal(data.ids, np.arange(6))
    assert data.names.tolist() == ["a", "b"]
    assert repr(data) == "ImageSet(name='tiny', reference=False, source='Tiny.')"
    data.X[:] = 7  # arrays of its own
    assert data.X.max() <= 1
    with pytest.raises(AttributeError):
        data.images = TINY


@pytest.mark.parametrize(
    ("environ", "platform", "folder"),
    [
        ({"TUBAL_CACHE": "/t", "XDG_CACHE_HOME": "/x"}, "linux", "/t"),
        ({"XDG_CACHE_HOME": "/x"}, "linux", "/x/tubal"),
        ({}, "linux", "~/.cache/tubal"),
        ({"XDG_CACHE_HOME": "/x"}, "darwin", "~/Library/Caches/tubal"),
        ({"LOCALAPPDATA": "/l"}, "win32", "/l/tubal"),
        ({}, "win32", "~/AppData/Local/tubal"),
    ],
)
def test_the_cache_follows_the_platform(environ, platform, folder):
    assert store._cache_folder(environ, platform) == Path(folder).expanduser()


# ---- the registry -------------------------------------------------------------------------------


def test_the_sets_of_the_paper_are_there():
    assert set(PAPER) < set(datasets.available())
    for name, classes in PAPER.items():
        assert registry.find_dataset(name).classes == classes


@pytest.mark.parametrize("name", datasets.available())
def test_an_entry_is_complete(name):
    dataset = registry.find_dataset(name)
    assert dataset.name == name
    assert dataset.title
    assert dataset.terms
    assert dataset.citation
    assert dataset.sources or set(dataset.instead) <= set(datasets.available())
    assert bool(dataset.content) == bool(dataset.spots)
    assert bool(dataset.truth) == bool(dataset.content and dataset.classes)
    assert len({source.name for source in dataset.sources}) == len(dataset.sources)
    for source in dataset.sources:
        assert len({remote.file for remote in source.files}) == len(source.files)
        for remote in source.files:
            assert re.match("https?://", remote.url)
            assert re.fullmatch(r"[\w.-]+", remote.file)
            assert re.fullmatch("sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", remote.digest or MD5)
    text = datasets.describe(name)
    assert dataset.citation in text
    assert "not on this machine" in text
    assert text.isascii()


@pytest.mark.parametrize("name", PAPER)
def test_the_real_sets(data_dir, name):
    path = data_dir / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"TUBAL_DATA has no {path.name}")
    data = datasets.load(name)
    assert data.reference
    with np.load(path) as stored:
        np.testing.assert_array_equal(data.images, stored["images"])
        np.testing.assert_array_equal(data.X, stored["images"] / 255)
        for ours, theirs in [(data.labels, "labels"), (data.names, "names"), (data.exact, "exact")]:
            assert (ours is None) == (theirs not in stored.files)
            if ours is not None:
                np.testing.assert_array_equal(ours, stored[theirs])
        if name == "mirflickr":
            np.testing.assert_array_equal(data.ids, stored["course_ids"])
            drawn = np.random.default_rng(0).choice(5000, 2000, replace=False)
            np.testing.assert_array_equal(data.ids, 20001 + np.sort(drawn))
    store.check_resemblance(registry.find_dataset(name), {"images": data.images})
    with pytest.raises(ValueError, match="another orientation"):
        store.check_resemblance(registry.find_dataset(name), {"images": data.images[:, ::-1]})


@pytest.mark.parametrize("name", ["orl", "coil20", "umist_28x23", "umist_32x32"])
def test_a_mat_file_of_the_real_images_is_recognised(data_dir, name, tmp_path):
    """The declared conversion, from rows column by column, leads back to the reference."""
    if not (data_dir / f"{name}.npz").is_file():
        pytest.skip(f"TUBAL_DATA has no {name}.npz")
    data = datasets.load(name)
    rows = data.images.transpose(0, 2, 1).reshape(len(data.images), -1)
    scale = 255 if name == "coil20" else 1
    savemat(tmp_path / "a.mat", {"fea": rows / scale, "gnd": data.labels[:, None] + 1})
    dataset = registry.find_dataset(name)
    for source in dataset.sources:
        arrays = source.convert([tmp_path / "a.mat"])
        assert store.content_hash(arrays) == dataset.content


def test_fetching_needs_no_optional_package():
    assert "PIL" not in vars(fetching)
    assert "PIL" not in vars(convert)
