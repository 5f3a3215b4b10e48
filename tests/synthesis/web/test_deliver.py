"""The Deliver page: what it says, what its buttons do, who may press them."""

from __future__ import annotations

import csv
import io

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client
from django.urls import reverse
from lxml import html

from accounts.roles import Role
from projects.models import Project, Segment
from projects.web.panels import panel_html
from projects.work import WorkState
from synthesis.models import Export, SegmentJob
from synthesis.services.exports import export_create
from tests import factories as make
from tests.synthesis.services.sounding import book_spoken, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return make.user_make()


@pytest.fixture
def book(owner) -> Project:
    return book_spoken(owner=owner)


@pytest.fixture
def browser(owner) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def page(browser: Client, book: Project, **query):
    response = browser.get(reverse("synthesis:exports", args=[book.public_id]), query)
    assert response.status_code == 200
    return html.fromstring(response.content.decode())


def words(element) -> str:
    return " ".join(element.text_content().split())


def post(browser: Client, name: str, public_id, data=None, **headers):
    return browser.post(reverse(f"synthesis:{name}", args=[public_id]), data or {}, **headers)


HTMX = {"HTTP_HX_REQUEST": "true"}


def test_every_format_can_be_chosen_and_m4b_is(browser, book):
    shown = page(browser, book)
    radios = shown.xpath("//input[@name='preset']")
    assert {r.get("value") for r in radios} == set(Export.Preset.values) - {"epub_original"}
    assert [r.get("value") for r in radios if r.get("checked") is not None] == ["m4b"]
    assert "likely ineligible" in words(shown).lower()  # a synthetic voice: said before, never guessed
    assert shown.xpath("//button[@id='make-export' and not(@disabled)]")


def test_a_revision_is_asked_for_with_its_preset(browser, book):
    chapter = make.chapters_of(book)[1]
    data = {"preset": "acx", "sample_document": str(chapter.public_id), "sample_minutes": "2"}
    assert post(browser, "export-create", book.public_id, data).status_code == 302
    export = Export.objects.get()
    assert (export.preset, export.revision) == ("acx", 1)
    assert export.sample == {"document": str(chapter.public_id), "minutes": 2}
    assert post(browser, "export-create", book.public_id, {"preset": "tape"}).status_code == 404
    # a chapter of another book is nothing a page sends
    other = make.chapters_of(make.project_make())[0]
    post(browser, "export-create", book.public_id, {"preset": "acx", "sample_document": str(other.public_id)})
    assert Export.objects.order_by("pk").last().sample == {}


def test_a_refusal_says_why(browser, book):
    Segment.objects.update(chosen_take=None)
    response = post(browser, "export-create", book.public_id, {"preset": "mp3"})
    assert response.status_code == 422
    shown = html.fromstring(response.content.decode())
    assert "Nothing has been made yet" in words(shown.xpath("//*[@role='alert']")[0])
    assert shown.xpath("//input[@name='preset' and @checked]/@value") == ["mp3"]
    toast = post(browser, "export-create", book.public_id, {"preset": "m4b"}, **HTMX)
    assert (toast.status_code, b"data-toast" in toast.content) == (422, True)


def test_the_check_is_shown_with_number_limit_and_source(browser, book):
    export = run(export_create(book, None, preset="inaudio"))
    section = page(browser, book).xpath("//section[@id='delivery-check']")[0]
    figures = {words(d.find("dt")): words(d.find("dd")) for d in section.xpath(".//dl/div")}
    lines = {words(row.xpath("./th")[0]): row for row in section.xpath(".//tbody/tr")}
    counts = {
        status: sum(words(row.xpath("./td")[0]) == status for row in lines.values())
        for status in ("fail", "warn", "pass")
    }
    assert {status: int(figures[status]) for status in counts} == counts
    assert counts["fail"] == 3  # both credits and the cover
    lufs = f"{export.report['loudness']['lufs']:.1f}".replace("-", "−")
    assert figures["loudness of the book"].startswith(f"{lufs} LUFS")
    (rms,) = [row for label, row in lines.items() if label.startswith("RMS")]
    assert "−23 … −18 dB" in words(rms)
    assert "2 of 2 files" in words(rms)
    assert "blog.findawayvoices.com" in words(rms)
    (opening,) = [row for label, row in lines.items() if label.startswith("Opening credits")]
    assert opening.xpath(".//button/@hx-post") == [reverse("synthesis:credits-write", args=[book.public_id])]
    # what must be mended stands first
    assert [words(row.xpath("./td")[0]) for row in section.xpath(".//tbody/tr")][:3] == ["fail"] * 3


def test_the_check_as_csv(browser, book):
    export = run(export_create(book, None))
    response = browser.get(reverse("synthesis:export-check", args=[export.public_id]))
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert "The_Salt_Ledger_r1_check.csv" in response["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))
    assert len(rows) == len(export.details["check"])
    assert {"file", "check", "status", "value", "wanted", "source", "read"} == set(rows[0])
    srt = run(export_create(book, None, preset="srt"))
    assert browser.get(reverse("synthesis:export-check", args=[srt.public_id])).status_code == 404


def test_an_earlier_check_can_be_looked_at(browser, book):
    run(export_create(book, None))
    run(export_create(book, None, preset="flac"))
    assert "Lossless masters" in words(page(browser, book).xpath("//section[@id='delivery-check']")[0])
    first = words(page(browser, book, check="1").xpath("//section[@id='delivery-check']")[0])
    assert "r1 (M4B audiobook)" in first
    for odd in ("0", "x", "²", "9" * 30):
        page(browser, book, check=odd)


def test_what_is_missing_is_listed(browser, book):
    lamp = make.chapters_of(book)[1]
    Segment.objects.filter(document=lamp).update(chosen_take=None)
    shown = words(page(browser, book))
    assert "The Lamp Room: 3 sentences" in shown
    run(export_create(book, None))
    assert "3 sentences are missing in it" in words(
        page(browser, book).xpath("//tbody[@id='export-rows']")[0]
    )


def test_failed_then_tried_again(browser, book):
    export = make.export_make(book, state=WorkState.FAILED, failure_code="clip_unusable", dispatch_no=1)
    row = page(browser, book).xpath("//tbody[@id='export-rows']/tr")[0]
    assert "A take cannot be read." in words(row)
    (button,) = row.xpath(".//button[@hx-post]")
    assert button.get("hx-post") == reverse("synthesis:export-retry", args=[export.public_id])
    answer = browser.post(button.get("hx-post"), **HTMX)
    again = html.fromstring(f"<table>{answer.content.decode()}</table>").xpath("//tr")[0]
    assert again.get("data-state") in ("waiting", "leased")
    assert int(again.get("data-version")) > int(row.get("data-version"))
    assert post(browser, "export-retry", export.public_id).status_code == 302  # a form without script


def test_cancel(browser, book):
    export = make.export_make(book)
    row = page(browser, book).xpath("//tbody[@id='export-rows']/tr")[0]
    (url,) = row.xpath(".//button/@hx-post")
    answer = browser.post(url, **HTMX)
    assert 'data-state="cancelled"' in answer.content.decode()
    export.refresh_from_db()
    assert export.state == WorkState.CANCELLED


def test_a_file_is_served_as_what_it_is(browser, book):
    key = default_storage.save("p/x/exports/r1/1/a.zip", ContentFile(b"PK"))
    export = make.export_make(book, state=WorkState.DONE, preset="acx", file_key=key, file_name="a.zip")
    answer = browser.get(reverse("synthesis:export-download", args=[export.public_id]))
    assert (answer["Content-Type"], b"".join(answer.streaming_content)) == ("application/zip", b"PK")
    Export.objects.update(preset="m4b", file_name="a.m4b")
    answer = browser.get(
        reverse("synthesis:export-download", args=[export.public_id]), HTTP_RANGE="bytes=1-1"
    )
    assert (answer["Content-Type"], answer.status_code) == ("audio/mp4", 206)
    assert b"".join(answer.streaming_content) == b"K"


def test_changes_alone_are_offered_for_an_outdated_set(browser, book):
    export = run(export_create(book, None, preset="mp3"))
    Project.objects.update(title="The Salt Ledgers")
    row = page(browser, book).xpath("//tbody[@id='export-rows']/tr")[0]
    assert "outdated: the book's data changed" in words(row)
    (button,) = row.xpath(".//button[contains(@hx-vals, 'since')]")
    answer = browser.post(button.get("hx-post"), {"preset": "mp3", "since": "1"}, **HTMX)
    assert answer.status_code == 204
    newest = Export.objects.order_by("pk").last()
    assert (newest.since, newest.revision) == (export.revision, 2)


def test_credits_are_written_and_made(browser, book):
    answer = post(browser, "credits-write", book.public_id)
    assert answer.status_code == 302
    kinds = [d.kind for d in make.chapters_of(book)]
    assert (kinds[0], kinds[-1]) == ("opening_credits", "closing_credits")
    assert SegmentJob.objects.filter(segment__document__kind="opening_credits").exists()
    htmx = post(browser, "credits-write", book.public_id, **HTMX)
    assert (htmx.status_code, htmx["HX-Redirect"]) == (
        204,
        reverse("projects:project", args=[book.public_id]),
    )


def test_what_is_pushed_is_what_the_page_shows(browser, book):
    run(export_create(book, None))
    shown = page(browser, book)
    rows = html.fromstring(f"<table>{panel_html(book, 'owner', 'exports')}</table>")
    assert words(rows.xpath("//tr")[0]) == words(shown.xpath("//tbody[@id='export-rows']/tr")[0])
    check = html.fromstring(panel_html(book, True, "check"))
    assert (check.get("id"), check.get("data-version")) == ("delivery-check", "1")
    assert words(check) == words(shown.xpath("//section[@id='delivery-check']")[0])


def test_who_may_do_what(book):
    export = make.export_make(book, state=WorkState.FAILED)
    editor, stranger = Client(), Client()
    editor.force_login(make.member_add(book, Role.EDITOR))
    stranger.force_login(make.user_make())
    seen = page(editor, book)
    assert not seen.xpath("//*[@id='make-export'] | //tbody//button")
    for name, target in (
        ("export-create", book), ("credits-write", book), ("export-retry", export), ("export-cancel", export),
    ):  # fmt: skip
        assert post(editor, name, target.public_id).status_code == 403
        assert post(stranger, name, target.public_id).status_code == 404
    for name in ("export-download", "export-check"):
        assert stranger.get(reverse(f"synthesis:{name}", args=[export.public_id])).status_code == 404


def test_queries_do_not_grow_with_the_revisions(browser, book, django_assert_max_num_queries):
    for _n in range(3):
        run(export_create(book, None, preset="srt"))
    with django_assert_max_num_queries(40) as few:
        page(browser, book)
    for _n in range(4):
        run(export_create(book, None, preset="srt"))
    with django_assert_max_num_queries(len(few)):
        page(browser, book)
