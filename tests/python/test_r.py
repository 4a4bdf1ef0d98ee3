"""The R package: built, checked and tested with R, beside the real command and a real hub."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from hub_process import Demo, Hub

PACKAGE = pathlib.Path(__file__).parents[2] / "r/potluck"
# So that R writes and reads text as people's R does.
LOCALE = {"LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The page of a study with a public dataset."""
    folder = tmp_path_factory.mktemp("hub")
    hub = Hub(folder, "--requests-per-minute", "0")
    yield f"{hub.address}/studies/{Demo(folder / 'demo', rows=50_000).publish(hub)}"
    hub.stop()


def run_r(*arguments, cwd, **variables):
    environment = {**os.environ, **LOCALE, **variables}
    done = subprocess.run(
        ["R", "CMD", *arguments], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


def test_the_package_passes_the_check_of_r_and_its_own_tests(tmp_path, study):
    shutil.copytree(PACKAGE, tmp_path / "potluck")
    code, said = run_r("build", "potluck", cwd=tmp_path)
    assert code == 0, said
    (archive,) = tmp_path.glob("potluck_*.tar.gz")

    code, said = run_r("check", "--no-manual", archive.name, cwd=tmp_path, POTLUCK_TEST_HUB=study)
    report = tmp_path / "potluck.Rcheck"
    told = said + "".join(path.read_text() for path in report.glob("tests/*.fail"))
    assert code == 0, told
    assert not re.findall(r"\.\.\. (ERROR|WARNING|NOTE)", said), told
    # Tests that skipped would pass as well.
    assert "every test of fits ran" in (report / "tests/fits.Rout").read_text()
    assert "every test of hubs ran" in (report / "tests/hubs.Rout").read_text()
    # The vignette was built with the command, so it has results.
    page = (report / "potluck/doc/potluck.html").read_text()
    assert "R-squared = " in page and "<img " in page


def test_the_package_has_the_version_of_the_workspace():
    workspace = (PACKAGE.parents[1] / "Cargo.toml").read_text()
    version = re.search(r'^version = "(.+)"$', workspace, re.MULTILINE)[1]
    assert f"\nVersion: {version}\n" in (PACKAGE / "DESCRIPTION").read_text()
