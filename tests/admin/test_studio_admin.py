"""The admin shows every table without counting it, and acts only through services."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import ApiToken, User
from accounts.services import api_token_create
from projects.models import (
    Block,
    Document,
    ManuscriptImport,
    Membership,
    Project,
    Segment,
    SegmentEdit,
    Take,
    Voice,
)
from projects.services.segments import segment_edit_text
from projects.states import RenderState
from projects.work import WorkState
from synthesis.models import Breaker, Conversion, DeadLetter, Export, JobEvent, Pool, SegmentJob
from tests import factories as make

pytestmark = pytest.mark.django_db

MODELS = [
    User,
    ApiToken,
    Project,
    Membership,
    Document,
    Block,
    Segment,
    SegmentEdit,
    Take,
    Voice,
    ManuscriptImport,
    Conversion,
    SegmentJob,
    Export,
    Pool,
    Breaker,
    JobEvent,
    DeadLetter,
]
COUNTED = {User}  # people are few
MOST_QUERIES = 15


@pytest.fixture
def root() -> User:
    return make.user_make("root", superuser=True)


@pytest.fixture
def client(root: User) -> Client:
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def book(root: User) -> Project:
    """A book with at least one row of everything."""
    project = make.project_make(make.user_make("owner"))
    first, second = make.chapters_of(project)
    make.takes_make(first)
    segment = make.segments_of(first)[1]
    segment_edit_text(segment, text="Other words.", text_rev=1, user=root)
    make.conversion_make(second, root)
    make.export_make(project, root)
    make.import_make(root, project=project)
    api_token_create(root, "script")
    Pool.objects.create(name="cpu")
    Breaker.objects.create(subject="pool:cpu", pool="cpu")
    DeadLetter.objects.create(queue="synthesis.XQ", reason="delivery_limit")
    return project


def changelist(model: Any, query: str = "") -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") + query


def change(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def fetched(client: Client, address: str) -> tuple[str, list[str]]:
    with CaptureQueriesContext(connection) as caught:
        response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode(), [query["sql"] for query in caught]


def test_every_model_of_the_studio_is_in_the_admin():
    ours = {m for m in admin.site._registry if m._meta.app_label in ("accounts", "projects", "synthesis")}
    assert ours == set(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.__name__)
def test_lists_and_pages_are_bounded_and_count_nothing(client, book, model):
    for address in (changelist(model), change(model.objects.first())):
        _page, sql = fetched(client, address)
        assert len(sql) <= MOST_QUERIES, "\n".join(sql)
        if model not in COUNTED:
            assert not [query for query in sql if "COUNT(" in query.upper()]
    _page, sql = fetched(client, changelist(model))
    table = f'FROM "{model._meta.db_table}"'
    assert all("LIMIT" in query for query in sql if table in query and model not in COUNTED), sql


@pytest.mark.parametrize("model", [Segment, Take, SegmentJob, Block], ids=lambda m: m.__name__)
def test_a_list_asks_no_more_for_more_rows(client, book, model):
    _page, few = fetched(client, changelist(model))
    for n in range(2):
        other = make.project_make(title=f"Book {n}")
        make.takes_make(make.chapters_of(other)[0])
        make.conversion_make(make.chapters_of(other)[1])
    _page, many = fetched(client, changelist(model))
    assert len(many) == len(few)


def test_pages_by_key_show_every_row_once_both_ways(client, book, monkeypatch):
    monkeypatch.setattr(admin.site._registry[Segment], "list_per_page", 4)
    expected = list(Segment.objects.order_by("-pk").values_list("pk", flat=True))
    assert len(expected) > 8

    def shown(address: str) -> tuple[list[int], Any]:
        changes = client.get(address).context["cl"]
        return [row.pk for row in changes.result_list], changes

    seen, address, last = [], changelist(Segment), None
    while address:
        rows, last = shown(address)
        assert len(rows) <= 4
        seen += rows
        address = changelist(Segment, last.older_url) if last.older_url else ""
    assert seen == expected
    back, address = [], changelist(Segment, last.newer_url)
    while address:
        rows, changes = shown(address)
        back = rows + back
        address = changelist(Segment, changes.newer_url) if changes.newer_url else ""
    assert back == expected[: len(back)]
    assert len(back) == len(expected) - len(seen[-(len(expected) % 4 or 4) :])
    for nonsense in (
        "?older_than=x",
        "?older_than=99999999999999999999",
        "?newer_than=-1",
        "?p=7",
        "?o=3.-1",
        "?all=",
    ):
        assert client.get(changelist(Segment, nonsense), follow=True).status_code == 200


def test_rows_are_found_by_public_id_and_small_tables_by_text(client, book):
    segment = make.segments_of(book)[2]
    for model, term in (
        (Segment, segment.public_id),
        (Take, segment.public_id),
        (Document, segment.document.public_id),
        (SegmentJob, Conversion.objects.get().public_id),
        (Project, "salt"),
        (Voice, "ada"),
        (Membership, "owner"),
        (ManuscriptImport, book.public_id),
    ):
        found = client.get(changelist(model), {"q": str(term)}).context["cl"].result_list
        assert found, (model, term)
    assert [
        row.pk
        for row in client.get(changelist(Segment), {"q": str(segment.public_id)}).context["cl"].result_list
    ] == [segment.pk]
    _page, sql = fetched(
        client, changelist(Segment, "?q=ferry")
    )  # no search through the text of every sentence
    assert not [query for query in sql if "LIKE" in query.upper()]


def test_links_lead_from_book_to_chapters_to_sentences_to_takes_and_jobs(client, book):
    other = make.project_make(title="Another")
    make.takes_make(other)
    document = make.chapters_of(book)[0]
    segment = make.segments_of(document)[1]
    steps = [
        (
            changelist(Project),
            f"{changelist(Document)}?project__exact={book.pk}",
            {d.pk for d in make.chapters_of(book)},
        ),
        (
            change(document),
            f"{changelist(Segment)}?document__exact={document.pk}",
            {s.pk for s in make.segments_of(document)},
        ),
        (
            change(segment),
            f"{changelist(Take)}?segment__exact={segment.pk}",
            {t.pk for t in segment.takes.all()},
        ),
        (change(segment), f"{changelist(SegmentJob)}?segment__exact={segment.pk}", set()),
    ]
    for page, link, rows in steps:
        assert link in client.get(page).content.decode()
        found = client.get(link).context["cl"].result_list
        assert {row.pk for row in found} == rows


def test_nothing_is_added_or_deleted_here(client, book):
    take = Take.objects.first()
    assert client.get(reverse("admin:projects_take_delete", args=[take.pk])).status_code == 403
    assert client.get(reverse("admin:projects_segment_add")).status_code == 403
    assert "delete_selected" not in client.get(changelist(Take)).content.decode()
    client.post(changelist(Take), {"action": "delete_selected", "_selected_action": [take.pk], "post": "yes"})
    assert Take.objects.filter(pk=take.pk).exists()


def test_metadata_is_saved_through_the_service_and_the_rest_is_read_only(client, book):
    page = client.get(change(book))
    form = page.context["adminform"].form
    data = {name: form[name].value() or "" for name in form.fields}
    inline = page.context["inline_admin_formsets"][0].formset
    data |= {f"{inline.prefix}-TOTAL_FORMS": "0", f"{inline.prefix}-INITIAL_FORMS": "0"}
    response = client.post(change(book), data | {"title": "The Ledger", "language": "fr"})
    assert response.status_code == 302
    book.refresh_from_db()
    assert (book.title, book.language) == ("The Ledger", "en")


def test_a_chapter_left_out_in_the_admin_tells_its_pages(client, book):
    document = make.chapters_of(book)[0]
    assert client.post(change(document), {"title": "Ferry"}).status_code == 302
    version = document.version
    document.refresh_from_db()
    assert (document.title, document.included) == ("Ferry", False)
    assert document.version > version


def act(client: Client, model: Any, action: str, *rows: Any) -> str:
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    response = client.post(changelist(model), data, follow=True)
    assert response.status_code == 200
    return response.content.decode()


def test_conversions_are_paused_resumed_and_cancelled(client, book):
    conversion = Conversion.objects.get()

    def state() -> str:
        conversion.refresh_from_db()
        return conversion.state

    act(client, Conversion, "pause", conversion)
    assert state() == Conversion.State.PAUSED
    assert "did not apply" in act(client, Conversion, "pause", conversion)
    act(client, Conversion, "resume", conversion)
    assert state() == Conversion.State.RUNNING
    act(client, Conversion, "cancel", conversion)
    assert state() == Conversion.State.CANCELLED
    assert not Segment.objects.filter(state=RenderState.QUEUED).exists()


@pytest.mark.parametrize("kind", [Conversion, SegmentJob], ids=lambda m: m.__name__)
def test_what_failed_is_tried_again(client, book, kind):
    conversion = Conversion.objects.get()
    job, other = conversion.jobs.order_by("position")[:2]
    SegmentJob.objects.filter(pk=job.pk).update(state=WorkState.FAILED, failure_code="too_long")
    Segment.objects.filter(pk=job.segment_id).update(state=RenderState.FAILED)
    act(client, kind, "retry_failed", *([conversion] if kind is Conversion else [job, other]))
    again = Conversion.objects.exclude(pk=conversion.pk).get()
    assert [j.segment_id for j in again.jobs.all()] == [job.segment_id]
    job.segment.refresh_from_db()
    assert job.segment.state == RenderState.QUEUED


def test_who_may_only_look_has_no_actions(book):
    from django.contrib.auth.models import Permission

    person = make.user_make("looker", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(person)
    page = client.get(changelist(Conversion)).content.decode()
    assert 'value="cancel"' not in page
    client.post(
        changelist(Conversion), {"action": "cancel", "_selected_action": [Conversion.objects.get().pk]}
    )
    assert Conversion.objects.get().state == Conversion.State.RUNNING


def test_a_token_is_revoked_and_its_digest_not_shown(client, book):
    token = ApiToken.objects.get()
    assert token.digest not in client.get(change(token)).content.decode()
    act(client, ApiToken, "revoke", token)
    token.refresh_from_db()
    assert token.revoked_at is not None
