"""The embedded default as a person starts, stops and breaks it. Needs nothing but Python."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.houses import ROOT, House, embedded_house, epub_make

pytestmark = pytest.mark.slow

SENTENCES = 40


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory):
    opened = embedded_house(tmp_path_factory.mktemp("embedded"), options={"delay_ms": "120"})
    opened.manage("voices", "--wait", "30", INFERENCE_POOLS=_pool(opened))
    yield opened
    opened.stop()


def _children(house: House) -> list[psutil.Process]:
    return psutil.Process(house.roles["studio"].pid).children(recursive=True)


def _pool(house: House) -> str:
    for child in _children(house):
        words = child.cmdline()
        if "inference_worker" in words and "--port" in words:
            return f"cpu=http://127.0.0.1:{words[words.index('--port') + 1]}"
    raise AssertionError("no inference worker")


def _api(house: House) -> httpx.Client:
    secret = house.manage("api_token", house.user, "--write").strip().splitlines()[-1]
    return httpx.Client(
        base_url=f"{house.url}/api/v1", headers={"Authorization": f"Bearer {secret}"}, timeout=20
    )


def _until(what, seconds: float = 90):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if found := what():
                return found
        except httpx.TransportError:
            pass  # it is being started
        time.sleep(0.2)
    raise AssertionError("it did not come to pass in time")


def _begin(api: httpx.Client, tmp_path: Path, title: str) -> str:
    paragraphs = [f"Lamp number {n} of {title} was lit before the tide turned." for n in range(SENTENCES - 1)]
    book = epub_make(tmp_path / "lamps.epub", title, [("One", paragraphs)])
    with book.open("rb") as file:
        made = api.post("/projects/", files={"file": ("lamps.epub", file, "application/epub+zip")}).json()[
            "id"
        ]
    project = _until(lambda: api.get(f"/imports/{made}/").json()["project"])
    document = api.get(f"/projects/{project}/documents/").json()["results"][0]["id"]
    return api.post("/conversions/", json={"document": document}).json()["id"]


def test_what_was_running_resumes_on_the_next_start(house: House, tmp_path: Path):
    with _api(house) as api:
        conversion = _begin(api, tmp_path, "first")
        counts = lambda: api.get(f"/conversions/{conversion}/").json()["counts"]  # noqa: E731
        _until(lambda: counts()["done"] >= 3)
        children = _children(house)
        assert house.roles["studio"].stop(30) == 0, house.logs()
        psutil.wait_procs(children, timeout=10)
        assert not [c for c in children if c.is_running() and c.status() != psutil.STATUS_ZOMBIE]
        house.roles["studio"].start()
        house.wait()
        assert counts()["done"] < SENTENCES
        done = _until(lambda: counts() if counts()["done"] == SENTENCES else None)
        assert done["failed"] == done["cancelled"] == 0


def test_killed_it_leaves_no_voice_behind_and_loses_nothing(house: House, tmp_path: Path):
    with _api(house) as api:
        conversion = _begin(api, tmp_path, "second")
        counts = lambda: api.get(f"/conversions/{conversion}/").json()["counts"]  # noqa: E731
        _until(lambda: counts()["done"] >= 3)
        children = _children(house)
        house.roles["studio"].kill_alone()
        psutil.wait_procs(children, timeout=15)
        assert not [c for c in children if c.is_running() and c.status() != psutil.STATUS_ZOMBIE]
        house.roles["studio"].start()
        house.wait()
        _until(lambda: counts()["done"] == SENTENCES)


def test_a_second_start_on_the_same_data_is_refused(house: House):
    done = subprocess.run(
        [sys.executable, "manage.py", "studio", "--port", "1"], cwd=ROOT, env=house.env, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "already" in done.stderr


def test_produce_makes_a_book_and_goes_on_where_it_was(tmp_path: Path):
    book = epub_make(
        tmp_path / "ferry.epub", "The Ferry", [("One", ["It left at noon."]), ("Two", ["It was late."])]
    )
    env = {
        **{k: v for k, v in os.environ.items() if k not in ("BROKER_URL", "DATABASE_URL", "S3_BUCKET")},
        "DJANGO_SETTINGS_MODULE": "voiceproject.settings.dev",
        "STUDIO_DATA_DIR": str(tmp_path / "data"),
        "INFERENCE_ENGINE": "fake",
    }

    def produce(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", "produce", str(book), "--out", str(tmp_path / "out"), *more]
        return subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False
        )

    first = produce("--chapters", "1")
    assert first.returncode == 0, first.stderr
    target = Path(first.stdout.strip().splitlines()[-1])
    assert target.suffix == ".m4b"
    size = target.stat().st_size
    second = produce("--voice", "tone")
    assert second.returncode == 0, second.stderr
    assert "Going on" in second.stderr
    assert target.stat().st_size > size  # both chapters now
    unknown = produce("--voice", "nobody")
    assert unknown.returncode == 1
    assert "nobody" in unknown.stderr
    assert "tone" in unknown.stderr


def test_produce_beside_a_running_studio_lets_it_do_the_work(house: House, tmp_path: Path):
    book = epub_make(tmp_path / "beside.epub", "Beside", [("One", ["It left at noon.", "Nobody saw it go."])])
    done = subprocess.run(
        [sys.executable, "manage.py", "produce", str(book), "--out", str(tmp_path / "out")],
        cwd=ROOT, env=house.env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "A studio runs" in done.stderr
    assert (tmp_path / "out" / "Beside.m4b").stat().st_size > 10_000
