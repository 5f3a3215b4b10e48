"""The first minute with the real voice: sign in, make the sample's first chapter, hear it. Makes the README's picture."""

from __future__ import annotations

import os
import time

import pytest
from playwright.sync_api import Browser, expect

from tests.houses import embedded_house

pytestmark = [pytest.mark.browser, pytest.mark.kokoro, pytest.mark.slow]

PATIENCE = 150_000  # ms; the promise is 60 s on an idle machine, a busy one must not fail the suite


def test_the_sample_sounds(browser: Browser, tmp_path, record_property):
    house = embedded_house(tmp_path, engine="kokoro")
    try:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.goto(house.url)
        page.fill("[name=username]", house.user)
        page.fill("[name=password]", house.password)
        page.press("[name=password]", "Enter")
        begun = time.monotonic()
        link = page.locator("#project-rows a", has_text="The Weather Reader")
        expect(link).to_be_visible(timeout=PATIENCE)
        link.click()
        expect(page.locator("#make-first")).to_have_text("Make chapter 1", timeout=PATIENCE)
        page.locator("#make-first").click()
        page.wait_for_selector("#manuscript")
        page.wait_for_function(
            "document.querySelectorAll('.seg[data-state=ready]').length >= 3", timeout=PATIENCE
        )
        page.locator(".seg").nth(1).click()
        page.keyboard.press("Space")
        page.wait_for_function(
            "[...document.querySelectorAll('audio')].some(a => a.currentTime > 0.2 && !a.paused)",
            timeout=PATIENCE,
        )
        seconds = round(time.monotonic() - begun, 1)
        record_property("seconds_from_sign_in_to_sound", seconds)
        if shots := os.environ.get("SHOTS"):
            page.wait_for_timeout(1500)
            page.screenshot(path=f"{shots}/editor.png")
        context.close()
    finally:
        house.stop()
