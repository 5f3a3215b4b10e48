"""How long a committed change takes to reach an open page: embedded studio, real Chromium, this machine.

Run: python -m benchmarks.push_latency [--changes 40]
Prints the milliseconds from just before the request that changes a sentence (so request, commit, push and paint are all
in it) and from its answer, to the moment the page's element has changed: median, p95, worst.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from tests.conftest import CHROMIUM_ARGUMENTS, CHROMIUM_NAMES
from tests.houses import embedded_house, epub_make

WATCH = """() => { window.seen = {}; new MutationObserver((list) => { for (const m of list) {
  const e = (m.target.closest ? m.target : m.target.parentElement)?.closest('.seg');
  if (e) window.seen[e.id + ':' + e.dataset.version] ??= Date.now(); } })
  .observe(document.getElementById('manuscript'), {subtree: true, attributes: true, childList: true, characterData: true}); }"""


def main() -> None:
    """Measure and print a row of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=40)
    changes = parser.parse_args().changes
    chromium = next(path for name in CHROMIUM_NAMES if (path := shutil.which(name)))
    with tempfile.TemporaryDirectory(prefix="latency-") as folder, sync_playwright() as playwright:
        house = embedded_house(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        try:
            whole, after = _measure(house, browser, Path(folder), changes)
        finally:
            browser.close()
            house.stop()
    print(
        json.dumps(
            {"changes": changes, "from_request_ms": _figures(whole), "from_answer_ms": _figures(after)}
        )
    )


def _measure(house, browser, folder: Path, changes: int) -> tuple[list[float], list[float]]:
    secret = house.manage("api_token", house.user, "--write").strip().splitlines()[-1]
    headers = {"Authorization": f"Bearer {secret}"}
    book = epub_make(
        folder / "b.epub", "Latency", [("One", [f"Lamp number {n} was lit." for n in range(100)])]
    )
    with httpx.Client(base_url=f"{house.url}/api/v1", headers=headers, timeout=20) as api:
        with book.open("rb") as file:
            made = api.post("/projects/", files={"file": ("b.epub", file)}).json()["id"]
        while not (project := api.get(f"/imports/{made}/").json()["project"]):
            time.sleep(0.2)
        document = api.get(f"/projects/{project}/documents/").json()["results"][0]["id"]
        page = browser.new_page()
        page.goto(house.url)
        page.fill("[name=username]", house.user)
        page.fill("[name=password]", house.password)
        page.press("[name=password]", "Enter")
        page.wait_for_selector("#library-body")
        page.goto(f"{house.url}/chapters/{document}/")
        page.wait_for_timeout(1500)  # the socket is open and has caught up
        page.evaluate(WATCH)
        segment = api.get(f"/documents/{document}/segments/").json()["results"][3]
        whole, after = [], []
        for n in range(changes):
            begun = time.time() * 1000
            segment = api.patch(
                f"/segments/{segment['id']}/",
                json={"text": f"Change number {n}.", "text_rev": segment["text_rev"]},
            ).json()
            answered = time.time() * 1000
            key = f"segment-{segment['id']}:{segment['version']}"
            page.wait_for_function("(key) => window.seen[key]", arg=key, timeout=10_000)
            seen = page.evaluate("(key) => window.seen[key]", key)
            whole.append(seen - begun)
            after.append(seen - answered)
            time.sleep(0.15)
    return whole, after


def _figures(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(len(ordered) * 0.95) - 1], 1),
        "worst": round(ordered[-1], 1),
    }


if __name__ == "__main__":
    main()
