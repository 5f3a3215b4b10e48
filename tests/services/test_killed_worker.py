"""kill -9 in the middle of a conversion: every sentence ends ready, each with exactly one take."""

from __future__ import annotations

import time
from pathlib import Path

import httpx
import pytest

from tests.houses import House, epub_make, real_house

pytestmark = [pytest.mark.services, pytest.mark.slow]

SENTENCES = 60
LIMIT_S = 120


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, servers_environment: dict[str, str], postgres_server):
    # a database of its own: the browser tests may use the other
    servers = {**servers_environment, "DATABASE_URL": postgres_server.database_create("killed")}
    opened = real_house(tmp_path_factory.mktemp("killed"), servers, options=("delay_ms=150",))
    yield opened
    opened.stop()


def _api(house: House) -> httpx.Client:
    secret = house.manage("api_token", house.user, "--write").strip().splitlines()[-1]
    return httpx.Client(
        base_url=f"{house.url}/api/v1", headers={"Authorization": f"Bearer {secret}"}, timeout=20
    )


def _until(what, seconds: float = LIMIT_S):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if (found := what()) is not None:
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come to pass in time")


def test_killed_in_the_middle(house: House, tmp_path: Path):
    paragraphs = [f"Lamp number {n} was lit before the tide turned." for n in range(SENTENCES - 1)]
    book = epub_make(tmp_path / "lamps.epub", "Lamps", [("One", paragraphs)])
    with _api(house) as api:
        with book.open("rb") as file:
            made = api.post("/projects/", files={"file": ("lamps.epub", file, "application/epub+zip")})
        assert made.status_code == 202, made.text
        import_id = made.json()["id"]
        project = _until(lambda: api.get(f"/imports/{import_id}/").json()["project"])
        documents = api.get(f"/projects/{project}/documents/").json()["results"]
        document = documents[0]["id"]
        started = api.post("/conversions/", json={"document": document})
        assert started.status_code == 201, started.text
        conversion = started.json()["id"]

        def counts():
            return api.get(f"/conversions/{conversion}/").json()["counts"]

        _until(lambda: counts() if counts()["done"] >= 8 else None)
        house.roles["synthesis"].kill()
        held = counts()
        assert held["done"] < SENTENCES, "the worker was killed too late to prove anything"
        house.roles["synthesis"].start()
        _until(lambda: counts() if counts()["done"] == SENTENCES else None)
        assert api.get(f"/conversions/{conversion}/").json()["state"] == "done"

        segments, url = [], f"/documents/{document}/segments/"
        while url:
            page = api.get(url).json()
            segments += page["results"]
            url = page["next"]
        assert len(segments) == SENTENCES
        assert {s["state"] for s in segments} == {"ready"}
        for segment in segments:
            takes = api.get(f"/segments/{segment['id']}/takes/").json()["results"]
            assert len(takes) == 1, segment
    house.check()
