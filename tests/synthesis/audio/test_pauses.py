import pytest

from synthesis.audio.pauses import DEFAULT_PAUSES_MS, MAX_PAUSE_MS, pause_ms


@pytest.mark.parametrize(
    ("boundary", "rules", "override", "ms"),
    [
        ("sentence", None, None, 350),
        ("paragraph", {}, None, 650),
        ("sentence", {"sentence": 400}, None, 400),
        ("sentence", {"sentence": 400}, 0, 0),
        ("sentence", {"paragraph": 400}, None, 350),
        ("scene_break", None, None, 2000),
        ("sentence", None, -5, 0),
        ("sentence", None, 10**9, MAX_PAUSE_MS),
    ],
)
def test_override_before_rules_before_defaults(boundary, rules, override, ms):
    assert pause_ms(boundary, rules, override) == ms


def test_an_unknown_boundary_is_an_error():
    with pytest.raises(KeyError):
        pause_ms("sentense")


def test_every_pause_is_sane():
    assert all(0 <= ms <= 5000 for ms in DEFAULT_PAUSES_MS.values())
