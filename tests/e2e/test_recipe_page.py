"""The demo page in a real browser: Debian's Chromium, driven by tests/e2e/browser."""

import filecmp
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from hadal_server import REQUEST_SECONDS, SLOWNESS, Server

BROWSER = pathlib.Path(__file__).parent / "browser"
KEY = "s3cret"
SCENARIOS = re.findall(r"^scenario\(['`]([^'`]+)['`]", (BROWSER / "scenarios.mjs").read_text(encoding="utf-8"), re.MULTILINE) + [
    f"renders-the-examples-of-{protocol}" for protocol in ("chat", "messages", "responses")
] + [f"is-readable-in-{scheme}" for scheme in ("light", "dark")]


def find_program(*names):
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.skip(f"{names[0]} is not installed")


def install_driver():
    """The pinned driver; nothing is fetched while the lock file stays the same."""
    lock, stamp = BROWSER / "package-lock.json", BROWSER / "node_modules" / "installed-lock.json"
    if stamp.exists() and filecmp.cmp(lock, stamp, shallow=False):
        return
    npm = find_program("npm")
    run = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=BROWSER, capture_output=True, text=True, timeout=300 * SLOWNESS, check=False,
    )
    assert run.returncode == 0, f"npm ci failed:\n{run.stdout}{run.stderr}"
    shutil.copyfile(lock, stamp)


@pytest.fixture(scope="module")
def outcomes(server):
    """What became of each scenario. All run in one browser, since its start takes longer than most of them."""
    node, chromium = find_program("node", "nodejs"), find_program("chromium", "chromium-browser")
    install_driver()
    guarded = Server("--api-key", KEY, key=KEY)
    try:
        given = {"url": server.url, "guardedUrl": guarded.url, "key": KEY, "timeout": 1000 * REQUEST_SECONDS}
        run = subprocess.run(
            [node, BROWSER / "run.mjs", chromium, json.dumps(given)],
            capture_output=True, text=True, timeout=600 * SLOWNESS, check=False,
            env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        )
    finally:
        assert guarded.stop() == 0
    if run.returncode == 3:
        pytest.skip(f"Chromium cannot be started: {run.stderr[:2000]}")
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    return {outcome["name"]: outcome for outcome in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("name", SCENARIOS)
def test_page(outcomes, name):
    assert outcomes[name]["ok"], outcomes[name]["error"]


def test_no_scenario_is_left_out(outcomes):
    assert sorted(outcomes) == sorted(SCENARIOS)


def test_the_page_can_be_switched_off():
    server = Server("--recipe-page", "off")
    try:
        assert server.request("GET", "/recipe")[0] == 404
        assert server.request("POST", "/recipe/render", {"protocol": "chat", "request_text": "{}"})[0] == 404
        assert b"/recipe" not in server.request("GET", "/")[2]
    finally:
        assert server.stop() == 0
