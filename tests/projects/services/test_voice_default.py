"""Which voice a new book gets."""

from __future__ import annotations

import pytest

from projects.services.manuscripts import voice_default
from tests.factories import voice_make

pytestmark = pytest.mark.django_db


def test_a_book_gets_a_voice_of_its_own_variant_and_a_preferred_one():
    voice_make("Nova", engine_voice="af_nova", languages=["en-US", "en-GB"])
    heart = voice_make("Heart", engine_voice="af_heart", languages=["en-US", "en-GB"])
    alice = voice_make("Alice", engine_voice="bf_alice", languages=["en-GB", "en-US"])
    assert voice_default("en-US") == heart
    assert voice_default("en") == heart
    assert voice_default("en-GB") == alice  # British, though not preferred
    emma = voice_make("Emma", engine_voice="bf_emma", languages=["en-GB", "en-US"])
    assert voice_default("en-GB") == emma
    assert voice_default("en-NZ") == heart
    assert voice_default("ko") is None
