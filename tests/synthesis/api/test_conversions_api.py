"""REST doors of conversions and exports."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.roles import Role
from projects.models import Segment
from projects.states import RenderState
from projects.work import WorkState
from synthesis.api import views
from synthesis.models import Conversion, Export
from tests import factories as make

pytestmark = pytest.mark.django_db
API = "/api/v1"


def client_of(user: Any) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


@pytest.fixture
def owner():
    return make.user_make("owner")


@pytest.fixture
def book(owner):
    return make.project_make(owner)


@pytest.fixture
def api(owner):
    return client_of(owner)


def start(api: APIClient, key: str = "", **body: Any) -> Any:
    headers: dict[str, Any] = {"HTTP_IDEMPOTENCY_KEY": key} if key else {}
    return api.post(f"{API}/conversions/", body, **headers)


def test_a_chapter_is_made(api, book, owner):
    document = make.chapters_of(book)[0]
    response = start(api, document=str(document.public_id))
    assert response.status_code == 201, response.content
    found = response.json()
    read = [s for s in make.segments_of(document) if s.spoken]
    assert (found["scope"], found["state"], found["lane"]) == ("document", "running", "bulk")
    assert found["counts"]["waiting"] == found["counts"]["total"] == len(read)
    assert found["document"] == str(document.public_id)
    assert response["Location"].endswith(f"{API}/conversions/{found['id']}/")
    assert Conversion.objects.get(public_id=found["id"]).requested_by == owner
    assert {s.state for s in make.segments_of(document) if s.spoken} == {RenderState.QUEUED}


@pytest.mark.parametrize("kind", ["project", "segment"])
def test_a_book_or_one_sentence_is_made(api, book, kind):
    target = book if kind == "project" else make.segments_of(book)[1]
    response = start(api, **{kind: str(target.public_id)}, only="missing")
    assert response.status_code == 201, response.content
    assert response.json()["lane"] == ("bulk" if kind == "project" else "preview")


def test_another_take_of_a_ready_sentence(api, book):
    segment = make.segments_of(book)[1]
    make.take_make(segment)
    nothing = start(api, segment=str(segment.public_id))
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (422, "nothing_to_do")
    again = start(api, segment=str(segment.public_id), only="all", new_variant=True)
    assert again.status_code == 201
    assert again.json()["counts"]["waiting"] == 1


def test_exactly_one_target_is_named(api, book):
    both = start(api, project=str(book.public_id), document=str(make.chapters_of(book)[0].public_id))
    assert (both.status_code, list(both.json()["error"]["fields"])) == (400, [""])
    assert start(api).status_code == 400
    assert start(api, project="7").status_code == 400
    assert start(api, project=str(book.public_id), only="blue").status_code == 400


def test_the_same_request_with_the_same_key_starts_nothing_twice(api, book):
    document = str(make.chapters_of(book)[0].public_id)
    first = start(api, "one", document=document)
    second = start(api, "one", document=document)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert Conversion.objects.count() == 1

    other = start(api, "one", document=document, only="all")
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
    elsewhere = start(api, "one", document=str(make.chapters_of(book)[1].public_id))
    assert elsewhere.status_code == 422
    assert Conversion.objects.count() == 1
    assert start(api, "ONE", document=str(make.chapters_of(book)[1].public_id)).status_code == 201
    assert start(api, "k" * 256, document=document).status_code == 400


def test_a_key_belongs_to_one_person(api, book):
    document = str(make.chapters_of(book)[0].public_id)
    assert start(api, "one", document=document).status_code == 201
    colleague = client_of(make.member_add(book, Role.EDITOR))
    response = start(colleague, "one", document=str(make.chapters_of(book)[1].public_id))
    assert response.status_code == 201


def test_the_same_key_at_the_same_moment(api, book, owner, monkeypatch):
    """The other request's row appears between our look and our insert."""
    document = make.chapters_of(book)[0]
    real, calls = views.conversion_start, []

    def late(*args: Any, **options: Any) -> Any:
        calls.append(options["idempotency_key"])
        made = real(*args, **options)
        if len(calls) == 1:
            raise IntegrityError("conversion_idempotent")
        return made

    monkeypatch.setattr(views, "conversion_start", late)
    response = start(api, "one", document=str(document.public_id))
    assert response.status_code == 201
    assert len(calls) == 2
    assert Conversion.objects.count() == 1


def test_what_cannot_be_spoken_is_refused_before_anything_is_queued(api, book, owner):
    book.voice = None
    book.save()
    refused = start(api, project=str(book.public_id))
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "no_voice")
    french = make.project_make(owner, voice=make.voice_make("Claire", languages=["fr"]))
    refused = start(api, project=str(french.public_id))
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "language_not_supported")
    assert "Ada" in refused.json()["error"]["message"]
    assert not Conversion.objects.exists()


def test_roles_and_strangers(book):
    conversion = make.conversion_make(make.chapters_of(book)[0])
    viewer, stranger = client_of(make.member_add(book, Role.VIEWER)), client_of(make.user_make())
    address = f"{API}/conversions/{conversion.public_id}/"
    assert viewer.get(address).status_code == 200
    assert stranger.get(address).status_code == 404
    for action in ("pause", "resume", "cancel", "retry"):
        assert viewer.post(f"{address}{action}/").status_code == 403
        assert stranger.post(f"{address}{action}/").status_code == 404
    segment = make.segments_of(book)[-1]
    assert start(viewer, segment=str(segment.public_id)).status_code == 403
    assert start(stranger, segment=str(segment.public_id)).status_code == 404
    assert stranger.get(f"{API}/conversions/").json()["results"] == []
    assert stranger.get(f"{API}/conversions/?project={book.public_id}").status_code == 404


def test_pause_resume_cancel(api, book):
    conversion = make.conversion_make(book)
    address = f"{API}/conversions/{conversion.public_id}/"
    assert api.post(f"{address}resume/").status_code == 409
    assert api.post(f"{address}pause/").json()["state"] == "paused"
    twice = api.post(f"{address}pause/")
    assert (twice.status_code, twice.json()["error"]["code"]) == (409, "not_running")
    assert api.post(f"{address}resume/").json()["state"] == "running"
    cancelled = api.post(f"{address}cancel/").json()
    assert cancelled["state"] == "cancelled"
    assert cancelled["counts"]["cancelled"] == cancelled["counts"]["total"] > 0
    assert api.post(f"{address}cancel/").status_code == 200  # safe to call twice
    assert not Segment.objects.filter(state=RenderState.QUEUED).exists()


def failed(conversion: Conversion, code: str = "text_not_speakable") -> None:
    job = conversion.jobs.filter(state=WorkState.WAITING).order_by("position").first()
    assert job is not None
    conversion.jobs.filter(pk=job.pk).update(state=WorkState.FAILED, failure_code=code)
    Segment.objects.filter(pk=job.segment_id).update(state=RenderState.FAILED, failure_code=code)


def test_failures_are_counted_by_code_and_tried_again(api, book):
    conversion = make.conversion_make(book)
    failed(conversion)
    failed(conversion)
    failed(conversion, "too_long")
    address = f"{API}/conversions/{conversion.public_id}/"
    counts = api.get(address).json()["counts"]
    assert counts["failed"] == 3
    assert [(f["code"], f["count"]) for f in counts["failures"]] == [
        ("text_not_speakable", 2),
        ("too_long", 1),
    ]
    assert all(f["message"] and f["remedy"] for f in counts["failures"])
    assert counts["total"] == sum(counts[n] for n in ("waiting", "leased", "done", "failed", "cancelled"))

    again = api.post(f"{address}retry/")
    assert again.status_code == 201, again.content
    assert again.json()["id"] != str(conversion.public_id)
    assert again.json()["counts"]["waiting"] == 3
    nothing = api.post(f"{address}retry/")
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (422, "nothing_to_do")


def test_conversions_are_listed_in_a_constant_number_of_queries(api, book, owner):
    first, second = make.chapters_of(book)
    make.conversion_make(first)
    with CaptureQueriesContext(connection) as few:
        assert len(api.get(f"{API}/conversions/").json()["results"]) == 1
    make.conversion_make(second)
    for n in range(3):
        failed(make.conversion_make(make.project_make(owner, title=f"Book {n}")))
    with CaptureQueriesContext(connection) as many:
        rows = api.get(f"{API}/conversions/").json()["results"]
    assert len(rows) == 5
    assert len(many) == len(few) <= 5
    assert [row["counts"]["failed"] for row in rows] == [1, 1, 1, 0, 0]
    of_book = api.get(f"{API}/conversions/?project={book.public_id}").json()["results"]
    assert [row["document"] for row in of_book] == [str(second.public_id), str(first.public_id)]
    assert api.get(f"{API}/conversions/?state=paused").json()["results"] == []


# --- sound -------------------------------------------------------------------------------------------------------------


def test_a_takes_sound_with_ranges(api, book):
    take = make.take_make(make.segments_of(book)[1])
    default_storage.save(take.audio_key, ContentFile(b"0123456789"))
    address = f"{API}/takes/{take.public_id}/audio/"
    whole = api.get(address, HTTP_ACCEPT="audio/flac")
    assert (whole.status_code, whole["Content-Type"], b"".join(whole.streaming_content)) == (
        200,
        "audio/flac",
        b"0123456789",
    )
    part = api.get(address, HTTP_RANGE="bytes=2-4")
    assert (part.status_code, b"".join(part.streaming_content)) == (206, b"234")
    missing = make.take_make(make.segments_of(book)[2])
    assert api.get(f"{API}/takes/{missing.public_id}/audio/").status_code == 404


# --- exports -----------------------------------------------------------------------------------------------------------


def test_an_export_is_asked_for_and_fetched(api, book):
    nothing = api.post(f"{API}/projects/{book.public_id}/exports/", {})
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (422, "nothing_to_export")
    first, second = make.chapters_of(book)
    make.takes_make(first)
    response = api.post(f"{API}/projects/{book.public_id}/exports/", {})
    assert response.status_code == 202, response.content
    found = response.json()
    assert (found["revision"], found["state"], found["preset"]) == (1, "waiting", "m4b")
    assert [m["chapter"] for m in found["missing"]] == [second.title]
    early = api.get(f"{API}/exports/{found['id']}/download/")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_ready")

    key = default_storage.save("p/x/exports/r1/book.m4b", ContentFile(b"sound"))
    Export.objects.update(
        state=WorkState.DONE, file_key=key, file_name="The_Salt_Ledger_r1.m4b", size_bytes=5
    )
    file = api.get(found["download"], HTTP_ACCEPT="audio/mp4")
    assert (file.status_code, file["Content-Type"], b"".join(file.streaming_content)) == (
        200,
        "audio/mp4",
        b"sound",
    )
    assert "The_Salt_Ledger_r1.m4b" in file["Content-Disposition"]


def test_an_export_of_chapters_of_this_book_only(api, book, owner):
    make.takes_make(book)
    chapter = make.chapters_of(book)[1]
    address = f"{API}/projects/{book.public_id}/exports/"
    made = api.post(address, {"documents": [str(chapter.public_id)]})
    assert made.json()["documents"] == [str(chapter.public_id)]
    other = make.chapters_of(make.project_make(owner))[0]
    for wrong in (str(other.public_id), str(uuid.uuid4())):
        response = api.post(address, {"documents": [wrong]})
        assert (response.status_code, set(response.json()["error"]["fields"])) == (400, {"documents"})


def test_exports_roles_and_list(book):
    export = make.export_make(book, state=WorkState.FAILED, failure_code="clip_unusable")
    editor, stranger = client_of(make.member_add(book, Role.EDITOR)), client_of(make.user_make())
    address = f"{API}/projects/{book.public_id}/exports/"
    assert editor.get(address).json()["results"][0]["failure"]["code"] == "clip_unusable"
    assert editor.post(address, {}).status_code == 403
    assert editor.get(f"{API}/exports/{export.public_id}/download/").status_code == 403
    assert stranger.get(address).status_code == 404
    assert stranger.get(f"{API}/exports/{export.public_id}/").status_code == 404
    with CaptureQueriesContext(connection) as few:
        editor.get(address)
    for _n in range(4):
        make.export_make(book)
    with CaptureQueriesContext(connection) as many:
        rows = editor.get(address).json()["results"]
    assert [row["revision"] for row in rows] == [5, 4, 3, 2, 1]
    assert len(few) == len(many) <= 6


def test_every_preset_is_told(api, book):
    rows = api.get(f"{API}/projects/{book.public_id}/export-presets/").json()
    assert rows[0]["preset"] == "m4b"
    by_name = {row["preset"]: row for row in rows}
    assert (by_name["acx"]["is_set"], by_name["acx"]["rules"]) == (True, "acx")
    assert "ineligible" in by_name["acx"]["disclosure"]
    assert by_name["srt"]["rules"] is None


def test_a_check_is_read_row_by_row_and_as_csv(api, book):
    row = {
        "file": "001_One.mp3", "code": "rms", "label": "RMS", "status": "fail", "value": "-17.6 dB",
        "wanted": "-23 … -18 dB", "source": "a page", "dated": "2026-11", "fix": "book_gain",
    }  # fmt: skip
    check = {"rules": "acx", "label": "ACX-style", "dated": "2026-11", "fail": 1, "warn": 0, "pass": 0}
    export = make.export_make(
        book,
        preset="acx",
        state=WorkState.DONE,
        report={"check": check},
        details={"check": [row], "files": []},
    )
    address = f"{API}/exports/{export.public_id}/"
    found = api.get(address).json()
    assert (found["check"]["fail"], found["check"]["passed"], found["files"]) == (1, 0, [])
    assert api.get(f"{address}check/").json()["rows"] == [row]
    text = api.get(f"{address}check.csv")
    assert (text["Content-Type"], text.content.decode().splitlines()[1].split(",")[2]) == (
        "text/csv; charset=utf-8",
        '"fail"',
    )
    none = make.export_make(book, preset="srt", state=WorkState.DONE)
    assert api.get(f"{API}/exports/{none.public_id}/check/").json()["error"]["code"] == "no_check"


def test_an_export_is_tried_again_and_given_up(api, book):
    export = make.export_make(book, state=WorkState.FAILED, failure_code="disk_full")
    address = f"{API}/exports/{export.public_id}/"
    assert "disk" in api.get(address).json()["failure"]["message"]
    assert api.post(f"{address}retry/").json()["state"] in ("waiting", "leased")
    assert api.post(f"{address}retry/").json()["error"]["code"] == "not_failed"
    assert api.post(f"{address}cancel/").json()["state"] == "cancelled"
    assert api.post(f"{address}cancel/").json()["error"]["code"] == "finished"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"preset": "m4b", "since": 1}, "not_a_set"),
        ({"preset": "mp3", "since": 1}, "no_revision"),
        ({"preset": "epub_original"}, "no_original"),
    ],
)
def test_what_cannot_be_delivered_is_refused_by_code(api, book, body, code):
    make.takes_make(book)
    answer = api.post(f"{API}/projects/{book.public_id}/exports/", body, format="json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, code)


def test_credits_over_the_api(api, book):
    made = api.post(f"{API}/projects/{book.public_id}/credits/")
    assert (made.status_code, len(made.json()["documents"])) == (201, 2)
    assert api.post(f"{API}/projects/{book.public_id}/credits/").json()["documents"] == []
