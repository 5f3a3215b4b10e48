"""The recipe: whatever can be heard changes it, nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projects.recipe import Voicing, fingerprint, recipe, spoken_digest

VOICING = Voicing("kokoro", "kokoro", "abc123", "af_heart", 1, {"style": "calm"}, 1.0)
GIVEN = {"spoken": "Seven lamps.", "language": "en", "direction": ""}


def test_known_value_never_changes():
    # An upgrade of code must not make finished books stale: these digests stand for ever.
    assert recipe(VOICING, **GIVEN) == "1f8618966817b88eed23f455e0c8e57745a71d743644ea310ffc1dbd7071071c"
    assert (
        fingerprint(recipe(VOICING, **GIVEN), 7)
        == "bd58ce87082c16e1a5d674c8ebd7a3bd1589cecc5bdbed7448daa6d280d3fc1c"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"engine": "vits"},
        {"model": "kokoro2"},
        {"revision": "abc124"},
        {"voice": "af_bella"},
        {"voice_revision": 2},
        {"parameters": {"style": "dry"}},
        {"parameters": {}},
        {"speed": 1.1},
    ],
)
def test_any_change_of_the_voice_is_heard(change):
    assert recipe(replace(VOICING, **change), **GIVEN) != recipe(VOICING, **GIVEN)


@pytest.mark.parametrize(
    "change",
    [{"spoken": "Seven lamps!"}, {"language": "en-GB"}, {"direction": "drier"}, {"spoken": "seven lamps."}],
)
def test_any_change_of_the_words_is_heard(change):
    assert recipe(VOICING, **{**GIVEN, **change}) != recipe(VOICING, **GIVEN)


def test_the_same_things_in_another_form_are_the_same():
    one = replace(VOICING, parameters={"a": 1, "b": 2}, speed=1)
    two = replace(VOICING, parameters={"b": 2, "a": 1}, speed=1.0)
    assert recipe(one, **GIVEN) == recipe(two, **GIVEN)
    assert recipe(VOICING, **{**GIVEN, "language": "EN"}) == recipe(VOICING, **GIVEN)


TEXTS = st.text(min_size=1, max_size=40)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_fields_never_run_into_each_other(spoken_a, direction_a, spoken_b, direction_b):
    a = recipe(VOICING, spoken=spoken_a, language="en", direction=direction_a)
    b = recipe(VOICING, spoken=spoken_b, language="en", direction=direction_b)
    assert (a == b) == ((spoken_a, direction_a) == (spoken_b, direction_b))


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_fingerprint_tells_variants_apart(one, two):
    base = recipe(VOICING, **GIVEN)
    assert (fingerprint(base, one) == fingerprint(base, two)) == (one == two)
    assert fingerprint(base, one) != base


def test_digest_of_the_spoken_text():
    assert spoken_digest("a") != spoken_digest("a ")
    assert len(spoken_digest("")) == 64
