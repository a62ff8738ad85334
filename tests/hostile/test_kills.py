"""Fits that are killed go on, and give the answer of a fit that nobody disturbed."""

import os
import shutil
import signal

import pytest

from hostile.kills import Kill, check_kill, check_two, prepare

pytestmark = [
    pytest.mark.slow,  # starts processes
    pytest.mark.skipif(os.name != "posix", reason="signals"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    return folder, prepare(folder)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seconds", [(0.1,), (1.2,), (1.6, 1.4)])
def test_killed_fits_go_on(prepared, number, seconds):
    folder, wanted = prepared
    check_kill(folder, Kill(number, seconds), wanted)
    shutil.rmtree(folder / "out", ignore_errors=True)


def test_two_processes_with_one_folder(prepared):
    folder, wanted = prepared
    check_two(folder, wanted)
    shutil.rmtree(folder / "both")
