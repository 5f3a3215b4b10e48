"""A real browser, and a house to visit with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.houses import House, embedded_house, real_house


@pytest.fixture(scope="session")
def browser(chromium: str, chromium_arguments: list[str]) -> Iterator[Browser]:
    """Chromium, headless."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, headless=True, args=chromium_arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="session", params=["embedded", "real"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The studio: in one process, and as separate roles on the real services."""
    folder: Path = tmp_path_factory.mktemp(f"house-{request.param}")
    if request.param == "embedded":
        opened = embedded_house(folder)
    else:
        opened = real_house(folder, request.getfixturevalue("servers_environment"))
    yield opened
    opened.stop()


@pytest.fixture
def page(browser: Browser, house: House) -> Iterator[Page]:
    """A signed-in page; anything the console complains of fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("console", lambda m: troubles.append(m.text) if m.type == "error" else None)
    opened.goto(f"{house.url}/")
    opened.fill("[name=username]", house.user)
    opened.fill("[name=password]", house.password)
    opened.press("[name=password]", "Enter")
    opened.wait_for_selector("#library-body")
    yield opened
    context.close()
    assert not troubles, troubles
