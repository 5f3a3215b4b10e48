"""Doors of synthesis: sound in ranges, scope before cost, refusals in words."""

from __future__ import annotations

import hashlib
from datetime import datetime

import boto3
import numpy as np
import pytest
from botocore.config import Config
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.urls import reverse

from projects.models import Segment
from synthesis.audio.peaks import peaks_encode
from synthesis.models import Conversion
from synthesis.storage import _signer, signed_url
from synthesis.web.ranges import _range
from tests.factories import chapters_of, conversion_make, project_make, segments_of, take_make, voice_make

pytestmark = pytest.mark.django_db

SOUND = bytes(range(256)) * 40


@pytest.fixture
def project():
    return project_make()


@pytest.fixture
def browser(client, project):
    client.force_login(project.members.get())
    return client


@pytest.fixture
def take(project):
    name = hashlib.sha256(str(project.public_id).encode()).hexdigest()
    return take_make(
        segments_of(project)[1],
        audio_key=default_storage.save(f"p/test/{name}.flac", ContentFile(SOUND)),
        peaks_key=default_storage.save(
            f"p/test/{name}.dat",
            ContentFile(peaks_encode(np.sin(np.arange(24_000) / 20).astype("f4"), 24_000)),
        ),
    )


def body(answer):
    return b"".join(answer.streaming_content)


@pytest.mark.parametrize(
    ("header", "status", "begin", "end"),
    [
        ("", 200, 0, len(SOUND)),
        ("bytes=0-99", 206, 0, 100),
        ("bytes=100-", 206, 100, len(SOUND)),
        ("bytes=-50", 206, len(SOUND) - 50, len(SOUND)),
        ("bytes=0-999999", 206, 0, len(SOUND)),
        ("bytes=nonsense", 200, 0, len(SOUND)),
    ],
)
def test_sound_in_ranges(browser, take, header, status, begin, end):
    answer = browser.get(
        reverse("synthesis:take-audio", args=[take.public_id]), headers={"Range": header} if header else {}
    )
    assert answer.status_code == status
    assert body(answer) == SOUND[begin:end]
    assert answer["Content-Length"] == str(end - begin)
    if status == 206:
        assert answer["Content-Range"] == f"bytes {begin}-{end - 1}/{len(SOUND)}"


def test_a_range_beyond_the_end_is_416(browser, take):
    answer = browser.get(
        reverse("synthesis:take-audio", args=[take.public_id]), headers={"Range": f"bytes={len(SOUND)}-"}
    )
    assert answer.status_code == 416
    assert _range("bytes=-", 10) == (0, 9, 200)


def test_peaks_are_the_forms_that_players_read(browser, take):
    answer = browser.get(reverse("synthesis:take-peaks", args=[take.public_id])).json()
    assert (answer["version"], answer["bits"], answer["length"]) == (2, 8, 100)
    assert len(answer["data"]) == 200
    assert max(answer["data"]) > 100


def test_a_take_whose_object_is_gone_is_404(browser, project):
    take = take_make(segments_of(project)[1])
    assert browser.get(reverse("synthesis:take-audio", args=[take.public_id])).status_code == 404


def test_the_scope_is_shown_before_it_costs(browser, project):
    chapter = chapters_of(project)[0]
    answer = browser.get(
        reverse("synthesis:conversion-scope"),
        {"scope": "document", "id": str(chapter.public_id)},
        headers={"HX-Request": "true"},
    )
    count = sum(bool(s.spoken) for s in segments_of(chapter))
    assert f"Make {count} sentences" in answer.content.decode()
    assert not Conversion.objects.exists()


@pytest.mark.parametrize(
    "query", [{"scope": "galaxy"}, {"scope": "document", "id": "x"}, {"scope": "project"}]
)
def test_a_scope_nobody_sends_is_404(browser, query):
    assert browser.get(reverse("synthesis:conversion-scope"), query).status_code == 404


def test_make_and_the_panel(browser, project):
    chapter = chapters_of(project)[0]
    answer = browser.post(
        reverse("synthesis:document-make", args=[chapter.public_id]), headers={"HX-Request": "true"}
    )
    assert 'id="conversion"' in answer.content.decode()
    conversion = Conversion.objects.get()
    for act, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        answer = browser.post(reverse(f"synthesis:conversion-{act}", args=[conversion.public_id]))
        assert answer.status_code == 200
        conversion.refresh_from_db()
        assert conversion.state == state


def test_a_refusal_says_what_can(browser, project):
    Segment.objects.filter(document__project=project).update(language="ko")
    voice_make("Minji", languages=["ko"])
    chapter = chapters_of(project)[0]
    answer = browser.post(
        reverse("synthesis:document-make", args=[chapter.public_id]), headers={"HX-Request": "true"}
    )
    assert answer.status_code == 422
    assert "Minji" in answer.content.decode()
    assert not Conversion.objects.exists()


def test_making_again_asks_for_another_take(browser, project):
    segment = segments_of(project)[1]
    take_make(segment)
    browser.post(reverse("synthesis:segment-make", args=[segment.public_id]))
    job = Conversion.objects.get().jobs.get()
    assert job.variant != 0
    assert job.lane == "preview"


def test_only_what_failed_is_tried_again(browser, project):
    conversion = conversion_make(chapters_of(project)[0])
    failed = conversion.jobs.first()
    conversion.jobs.exclude(pk=failed.pk).update(state="done")
    conversion.jobs.filter(pk=failed.pk).update(state="failed", failure_code="internal")
    Segment.objects.filter(document__project=project).update(state="ready")
    Segment.objects.filter(pk=failed.segment_id).update(state="failed")
    browser.post(reverse("synthesis:conversion-retry", args=[conversion.public_id]))
    again = Conversion.objects.exclude(pk=conversion.pk).get()
    assert [j.segment_id for j in again.jobs.all()] == [failed.segment_id]


def test_the_first_export_needs_sound(browser, project):
    answer = browser.post(reverse("synthesis:export-create", args=[project.public_id]), {"preset": "m4b"})
    assert answer.status_code == 422


@pytest.mark.parametrize("header", ["bytes=" + "9" * 5000 + "-", "bytes=-" + "9" * 5000, "bytes=٣-"])
def test_a_range_out_of_all_measure_gives_the_whole(header):
    assert _range(header, 10) == (0, 9, 200)


@pytest.fixture
def bucket(settings):
    settings.S3_BUCKET, settings.S3_ENDPOINT_URL = "studio", "http://s3.internal:8333"
    settings.S3_PUBLIC_ENDPOINT_URL = "https://audio.example.org"
    settings.S3_LINK_SECONDS = 120
    options = {
        "access_key": "key",
        "secret_key": "only-here",
        "region_name": "us-east-1",
        "client_config": Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    }
    settings.STORAGES = {**settings.STORAGES, "default": {**settings.STORAGES["default"], "OPTIONS": options}}
    _signer.cache_clear()
    yield boto3.client(
        "s3",
        endpoint_url=settings.S3_PUBLIC_ENDPOINT_URL,
        aws_access_key_id="key",
        aws_secret_access_key="only-here",
        region_name="us-east-1",
        config=options["client_config"],
    )
    _signer.cache_clear()


def test_a_link_is_signed_for_the_address_that_browsers_use(bucket, monkeypatch):
    """The host is part of the signature: one put in afterwards is answered with 403."""
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: datetime(2026, 1, 1, 12))
    wanted = bucket.generate_presigned_url(
        "get_object",
        Params={"Bucket": "studio", "Key": "p/a b.flac", "ResponseContentType": "audio/flac"},
        ExpiresIn=120,
    )
    assert wanted.startswith("https://audio.example.org/studio/p/a%20b.flac?")
    assert signed_url("p/a b.flac", content_type="audio/flac") == wanted


def test_a_browser_forgets_a_link_before_it_ends(browser, take, bucket):
    answer = browser.get(reverse("synthesis:take-audio", args=[take.public_id]))
    assert answer.status_code == 302
    assert "max-age=60" in answer["Cache-Control"]
