"""The messages: versions, unknown fields, missing ones."""

from __future__ import annotations

import json

import pytest

from synthesis.speaking.wire import VERSION, Outcome, SpeechOrder, SpeechResult, WireError

ORDER = SpeechOrder(
    job="j", dispatch_no=2, project="p", segment="s", fingerprint="f", pool="cpu", lane="bulk", model="m",
    revision="r", voice="v", language="en", spoken="Hello.",
)  # fmt: skip


def test_there_and_back_through_json():
    assert SpeechOrder.from_wire(json.loads(json.dumps(ORDER.to_wire()))) == ORDER
    result = SpeechResult.of(ORDER, Outcome.BUSY, retry_after_ms=500)
    assert SpeechResult.from_wire(json.loads(json.dumps(result.to_wire()))) == result
    assert (result.job, result.dispatch_no, result.fingerprint) == ("j", 2, "f")


def test_unknown_fields_are_ignored_and_the_version_before_is_read():
    wire = {**ORDER.to_wire(), "later": 1, "v": VERSION - 1}
    assert SpeechOrder.from_wire(wire) == ORDER


@pytest.mark.parametrize("change", [{"v": VERSION + 1}, {"v": None}, {"spoken": ""}])
def test_what_cannot_be_read_is_said(change):
    with pytest.raises(WireError):
        SpeechOrder.from_wire({**ORDER.to_wire(), **change})


def test_a_missing_field_is_said():
    wire = ORDER.to_wire()
    del wire["job"]
    with pytest.raises(WireError, match="job"):
        SpeechOrder.from_wire(wire)
