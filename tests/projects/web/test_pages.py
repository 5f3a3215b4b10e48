"""Doors of the editor: HTTP in, HTML and rows out; denied beside granted."""

from __future__ import annotations

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from projects.models import ManuscriptImport, Segment
from tests.factories import (
    chapters_of,
    member_add,
    project_make,
    segments_of,
    take_make,
    user_make,
    voice_make,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def project():
    return project_make()


@pytest.fixture
def owner(project):
    return project.members.get()


@pytest.fixture
def browser(client, owner):
    client.force_login(owner)
    return client


def test_nobody_gets_in_without_signing_in(client, project):
    for url in (reverse("projects:library"), reverse("projects:project", args=[project.public_id])):
        answer = client.get(url)
        assert answer.status_code == 302
        assert answer.url.startswith(reverse("login"))


def test_every_page_of_a_book_renders(browser, project):
    take_make(segments_of(project)[1])
    chapter = chapters_of(project)[0]
    for name, target in (("project", project), ("voices", project), ("document", chapter)):
        answer = browser.get(reverse(f"projects:{name}", args=[target.public_id]))
        assert answer.status_code == 200, name
        assert project.title in answer.content.decode()
    assert browser.get(reverse("synthesis:exports", args=[project.public_id])).status_code == 200
    assert browser.get(reverse("projects:library")).status_code == 200


def test_what_one_may_not_see_is_not_there(client, project):
    client.force_login(user_make())
    chapter, segment = chapters_of(project)[0], segments_of(project)[0]
    take = take_make(segment)
    for name, target in (
        ("projects:project", project),
        ("projects:document", chapter),
        ("projects:document-rows", chapter),
        ("projects:segment-inspector", segment),
        ("projects:segment-edit", segment),
        ("synthesis:take-audio", take),
        ("synthesis:take-peaks", take),
        ("synthesis:exports", project),
    ):
        assert client.get(reverse(name, args=[target.public_id])).status_code == 404, name
    assert project.title not in client.get(reverse("projects:library")).content.decode()


def test_a_viewer_may_look_but_not_touch(client, project):
    client.force_login(member_add(project, Role.VIEWER))
    chapter, segment = chapters_of(project)[0], segments_of(project)[1]
    page = client.get(reverse("projects:document", args=[chapter.public_id]))
    assert page.status_code == 200
    assert 'id="make-chapter"' not in page.content.decode()
    for name, target in (
        ("projects:segment-text", segment),
        ("synthesis:segment-make", segment),
        ("synthesis:document-make", chapter),
        ("projects:document-include", chapter),
        ("projects:project-voice", project),
        ("synthesis:export-create", project),
    ):
        answer = client.post(reverse(name, args=[target.public_id]), {"text": "x", "text_rev": 1})
        assert answer.status_code == 403, name
    assert not Segment.objects.exclude(state="empty").exists()


def test_the_number_of_queries_does_not_grow_with_the_book(browser, owner, django_assert_max_num_queries):
    long = project_make(
        owner=owner, chapters=[(f"Chapter {n}", ["One. Two. Three. Four."] * 12) for n in range(8)]
    )
    with django_assert_max_num_queries(25):
        browser.get(reverse("projects:project", args=[long.public_id]))
    with django_assert_max_num_queries(30):
        browser.get(reverse("projects:document", args=[chapters_of(long)[0].public_id]))


def test_upload_notes_a_row_and_keeps_the_file(browser, owner, django_capture_on_commit_callbacks):
    file = SimpleUploadedFile("../../etc/ferry.txt", b"Chapter 1\n\nIt left at noon.")
    answer = browser.post(reverse("projects:upload"), {"file": file})
    assert answer.status_code == 302
    row = ManuscriptImport.objects.get(user=owner)
    assert (row.name, row.state) == ("ferry.txt", "waiting")
    assert ".." not in row.file_key
    assert "ferry.txt" in browser.get(reverse("projects:library")).content.decode()


@pytest.mark.parametrize("size", [0, None])
def test_an_upload_that_cannot_be_taken_says_so(browser, size, settings):
    settings.UPLOAD_LIMIT_BYTES = 100
    data = b"" if size == 0 else b"x" * 101
    answer = browser.post(
        reverse("projects:upload"),
        {"file": io.BytesIO(data)} if size is None else {"file": SimpleUploadedFile("a.txt", data)},
    )
    assert answer.status_code == 422
    assert not ManuscriptImport.objects.exists()


def test_an_edit_answers_with_the_sentence_stale(browser, project):
    segment = segments_of(project)[1]
    take_make(segment)
    answer = browser.post(
        reverse("projects:segment-text", args=[segment.public_id]), {"text": "Other words.", "text_rev": 1}
    )
    html = answer.content.decode()
    assert answer.status_code == 200
    assert f'id="segment-{segment.public_id}"' in html
    assert 'data-flags="stale"' in html
    assert "Other words." in html


def test_an_edit_of_an_old_text_shows_both(browser, project):
    segment = segments_of(project)[1]
    url = reverse("projects:segment-text", args=[segment.public_id])
    browser.post(url, {"text": "Theirs.", "text_rev": 1})
    answer = browser.post(url, {"text": "Mine.", "text_rev": 1})
    assert answer.status_code == 409
    assert "Theirs." in answer.content.decode()
    assert "Mine." in answer.content.decode()


def test_an_empty_edit_is_refused_in_the_form(browser, project):
    segment = segments_of(project)[1]
    answer = browser.post(
        reverse("projects:segment-text", args=[segment.public_id]), {"text": "  ", "text_rev": 1}
    )
    assert answer.status_code == 422
    assert Segment.objects.get(pk=segment.pk).text == segment.text


def test_markup_in_a_book_is_text(browser, owner):
    project = project_make(
        owner=owner, title="<b>Bold</b>", chapters=[("<i>x</i>", ["<script>alert(1)</script> he said."])]
    )
    html = browser.get(
        reverse("projects:document", args=[chapters_of(project)[0].public_id])
    ).content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;" in html


def test_a_voice_of_another_language_is_refused_with_the_alternatives(browser, project):
    korean = voice_make("Minji", languages=["ko"])
    answer = browser.post(
        reverse("projects:project-voice", args=[project.public_id]),
        {"voice": str(korean.public_id)},
        follow=True,
    )
    assert "Ada" in answer.content.decode()
    project.refresh_from_db()
    assert project.voice.name == "Ada"


def test_rows_since_a_stamp_are_what_changed(browser, project):
    chapter = chapters_of(project)[0]
    url = reverse("projects:document-rows", args=[chapter.public_id])
    everything = browser.get(url).content.decode()
    assert everything.count('class="seg"') == len(segments_of(chapter))
    later = browser.get(url, {"since": "2999-01-01T00:00:00+00:00"}).content.decode()
    assert later.count('class="seg"') == 0
    assert 'id="stamp"' in later
    assert browser.get(url, {"since": "nonsense"}).content.decode().count('class="seg"') == len(
        segments_of(chapter)
    )


def test_left_out_and_back(browser, project):
    chapter = chapters_of(project)[0]
    url = reverse("projects:document-include", args=[chapter.public_id])
    for included in ("0", "1"):
        answer = browser.post(url, {"included": included}, headers={"HX-Request": "true"})
        assert answer.status_code == 200
        chapter.refresh_from_db()
        assert chapter.included is (included == "1")


def test_a_voice_of_another_book_is_not_there_for_this_one(browser, project, owner):
    other = project_make(owner)  # seen by the same person
    foreign = voice_make("Clone", project=other)
    retired = voice_make("Gone", retired_at=timezone.now())
    for voice in (foreign, retired):
        answer = browser.post(
            reverse("projects:project-voice", args=[project.public_id]), {"voice": voice.public_id}
        )
        assert answer.status_code == 404
    own = voice_make("Own", project=project)
    browser.post(reverse("projects:project-voice", args=[project.public_id]), {"voice": own.public_id})
    project.refresh_from_db()
    assert project.voice == own


@pytest.mark.parametrize("name", ["a." + "x" * 250, "a.ü b", "a.", "book.TXT"])
def test_a_file_name_may_end_in_anything(browser, owner, name):
    answer = browser.post(reverse("projects:upload"), {"file": SimpleUploadedFile(name, b"One line.")})
    assert answer.status_code == 302
    key = ManuscriptImport.objects.get(user=owner).file_key
    assert key.isascii()
    assert len(key) < 100
    assert key.endswith(".txt") == (name == "book.TXT")
