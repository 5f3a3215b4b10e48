"""REST doors of books: who may see and do what, and what they answer."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.roles import Role
from projects.models import Block, ManuscriptImport, Segment
from projects.ordering import key_between
from projects.work import WorkState
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


def queries(connection: Any, api: APIClient, address: str) -> int:
    with CaptureQueriesContext(connection) as caught:
        response = api.get(address)
    assert response.status_code == 200, response.content
    return len(caught)


# --- who may -----------------------------------------------------------------------------------------------------------


def test_nobody_signed_in_is_401_with_a_challenge(book):
    response = APIClient().get(f"{API}/projects/{book.public_id}/")
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["error"]["code"] == "not_authenticated"


def test_what_one_may_not_see_is_404(book):
    stranger = client_of(make.user_make())
    document = make.chapters_of(book)[0]
    segment = make.segments_of(document)[0]
    take = make.take_make(segment)
    voice = make.voice_make("Only here", project=book)
    for address in (
        f"projects/{book.public_id}/",
        f"projects/{book.public_id}/documents/",
        f"documents/{document.public_id}/",
        f"documents/{document.public_id}/segments/",
        f"segments/{segment.public_id}/",
        f"segments/{segment.public_id}/takes/",
        f"takes/{take.public_id}/",
        f"takes/{take.public_id}/audio/",
        f"voices/{voice.public_id}/",
        f"voices/?project={book.public_id}",
        f"projects/{uuid.uuid4()}/",
    ):
        response = stranger.get(f"{API}/{address}")
        assert response.status_code == 404, address
        assert response.json()["error"]["code"] == "not_found"
    assert stranger.get(f"{API}/projects/").json()["results"] == []


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        (Role.VIEWER, set()),
        (Role.PROOFER, set()),
        (Role.EDITOR, {"segment", "choose"}),
        (Role.PRODUCER, {"segment", "choose", "project", "document", "voice"}),
    ],
)
def test_what_one_may_not_do_is_403(book, role, allowed):
    api = client_of(make.member_add(book, role))
    document = make.chapters_of(book)[0]
    segment = make.segments_of(document)[0]
    take = make.take_make(segment)
    answers = {
        "segment": api.patch(f"{API}/segments/{segment.public_id}/", {"text": "Other words.", "text_rev": 1}),
        "choose": api.post(f"{API}/takes/{take.public_id}/choose/"),
        "project": api.patch(f"{API}/projects/{book.public_id}/", {"title": "Another"}),
        "document": api.patch(f"{API}/documents/{document.public_id}/", {"included": False}),
        "voice": api.put(
            f"{API}/projects/{book.public_id}/voice/", {"voice": str(make.voice_make().public_id)}
        ),
    }
    assert {name for name, answer in answers.items() if answer.status_code == 200} == allowed
    refused = [answer for name, answer in answers.items() if name not in allowed]
    assert {answer.status_code for answer in refused} <= {403}
    assert all(answer.json()["error"]["code"] == "forbidden" for answer in refused)
    assert api.get(f"{API}/projects/{book.public_id}/").json()["role"] == role


def test_an_unknown_address_is_404_as_json(api):
    response = api.get(f"{API}/nothing/here")
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "not_found"


# --- projects ----------------------------------------------------------------------------------------------------------


def test_each_book_is_listed_once_with_ones_own_role(api, book, owner):
    make.member_add(book, Role.VIEWER)
    other = make.project_make(title="Second")
    make.member_add(other, Role.PROOFER, owner)
    make.project_make(title="Not mine")
    rows = api.get(f"{API}/projects/").json()["results"]
    assert [(row["title"], row["role"]) for row in rows] == [
        ("Second", "proofer"),
        ("The Salt Ledger", "owner"),
    ]
    assert rows[1]["id"] == str(book.public_id)
    assert "pk" not in rows[1]


def test_pages_by_cursor_show_every_book_once(api, owner):
    for n in range(5):
        make.project_make(owner, title=f"Book {n}")
    seen, address = [], f"{API}/projects/?page_size=2"
    while address:
        page = api.get(address).json()
        seen += [row["title"] for row in page["results"]]
        address = page["next"]
    assert seen == [f"Book {n}" for n in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("cursor", ["xx", "cD1hYmM=", "cD0xMjM=", "cD3DvA==", "bz0xJnA9Jw=="])
def test_a_forged_cursor_is_404(api, book, cursor):
    for address in ("projects/", f"projects/{book.public_id}/documents/", "conversions/", "voices/"):
        assert api.get(f"{API}/{address}", {"cursor": cursor}).status_code in (200, 404)
    assert api.get(f"{API}/projects/", {"cursor": "cD1hYmM="}).status_code == 404


def test_a_book_tells_its_figures(api, book):
    make.takes_make(make.chapters_of(book)[0])
    found = api.get(f"{API}/projects/{book.public_id}/").json()
    counts = found["counts"]
    assert counts["total"] == len([s for s in make.segments_of(book) if s.spoken])
    assert counts["missing"] == len([s for s in make.segments_of(make.chapters_of(book)[1]) if s.spoken])
    assert counts["ready"] == counts["total"] - counts["missing"]
    assert found["authors"] == ["Mara Quill"]
    assert found["voice"]["name"] == "Ada"


def test_metadata_changes_and_the_rest_stays(api, book):
    response = api.patch(
        f"{API}/projects/{book.public_id}/",
        {"subtitle": "A novel", "authors": ["Mara Quill", "T. Orr"], "rules": {"pauses": {"sentence": 400}}},
    )
    assert response.status_code == 200, response.content
    book.refresh_from_db()
    assert (book.title, book.subtitle, book.authors) == (
        "The Salt Ledger",
        "A novel",
        ["Mara Quill", "T. Orr"],
    )
    assert book.rules == {"pauses": {"sentence": 400}}
    assert response.json()["rules"] == book.rules


def test_a_wrong_field_is_named(api, book):
    response = api.patch(
        f"{API}/projects/{book.public_id}/",
        {"title": "", "language": "English!", "rules": {"pauses": {"sentence": -1}}},
    )
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "invalid"
    assert set(error["fields"]) == {"title", "language", "rules.pauses.sentence"}
    odd = api.patch(f"{API}/projects/{book.public_id}/", {"rules": {"pauses": {"coffee": 1}}})
    assert set(odd.json()["error"]["fields"]) == {"rules.pauses"}
    assert api.patch(f"{API}/projects/{book.public_id}/", [1]).status_code == 400
    broken = api.patch(f"{API}/projects/{book.public_id}/", "{", content_type="application/json")
    assert broken.status_code == 400
    assert broken.json()["error"]["message"]


def test_another_voice_makes_made_sentences_stale(api, book):
    make.takes_make(book)
    voice = make.voice_make("Bruno")
    response = api.put(f"{API}/projects/{book.public_id}/voice/", {"voice": str(voice.public_id)})
    assert response.status_code == 200
    read = len([s for s in make.segments_of(book) if s.spoken])
    assert response.json() == {"voice": {"id": str(voice.public_id), "name": "Bruno"}, "changed": read}
    assert Segment.objects.with_stale().filter(document__project=book, is_stale=True).count() == read


def test_a_voice_that_does_not_speak_the_language_is_refused_naming_those_that_do(api, book):
    voice = make.voice_make("Claire", languages=["fr"])
    response = api.put(f"{API}/projects/{book.public_id}/voice/", {"voice": str(voice.public_id)})
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "language_not_supported"
    assert "Ada" in response.json()["error"]["message"]
    unknown = api.put(f"{API}/projects/{book.public_id}/voice/", {"voice": str(uuid.uuid4())})
    assert set(unknown.json()["error"]["fields"]) == {"voice"}


# --- uploads -----------------------------------------------------------------------------------------------------------


def test_an_upload_becomes_an_import(api, owner):
    voice = make.voice_make()
    file = SimpleUploadedFile("tide.txt", b"Chapter 1\n\nThe tide was late.")
    response = api.post(
        f"{API}/projects/",
        {"file": file, "language": "en-GB", "voice": str(voice.public_id)},
        format="multipart",
    )
    assert response.status_code == 202, response.content
    found = response.json()
    row = ManuscriptImport.objects.get(public_id=found["id"])
    assert response["Location"].endswith(f"{API}/imports/{row.public_id}/")
    assert (row.user, row.language, row.voice, row.state) == (owner, "en-GB", voice, WorkState.WAITING)
    assert (found["name"], found["size_bytes"], found["project"], found["failure"]) == (
        "tide.txt",
        29,
        None,
        None,
    )
    with default_storage.open(row.file_key, "rb") as stored:
        assert stored.read() == b"Chapter 1\n\nThe tide was late."


def test_an_upload_that_cannot_be_taken_leaves_no_row(api, settings):
    empty = api.post(f"{API}/projects/", {"file": SimpleUploadedFile("a.txt", b"")}, format="multipart")
    assert (empty.status_code, empty.json()["error"]["code"]) == (422, "empty_file")
    settings.UPLOAD_LIMIT_BYTES = 10
    large = api.post(f"{API}/projects/", {"file": SimpleUploadedFile("a.txt", b"x" * 11)}, format="multipart")
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_large")
    none = api.post(f"{API}/projects/", {"language": "nonsense!"}, format="multipart")
    assert (none.status_code, set(none.json()["error"]["fields"])) == (400, {"file", "language"})
    assert api.post(f"{API}/projects/", {"file": "x"}).status_code == 415
    assert not ManuscriptImport.objects.exists()


def test_a_failed_import_says_what_helps_to_its_owner_alone(api, owner, book):
    row = make.import_make(
        owner, state=WorkState.FAILED, failure_code="drm_protected", failure_detail="rights.xml"
    )
    done = make.import_make(owner, state=WorkState.DONE, project=book)
    failure = api.get(f"{API}/imports/{row.public_id}/").json()["failure"]
    assert failure["code"] == "drm_protected"
    assert failure["message"]
    assert failure["remedy"]
    rows = api.get(f"{API}/imports/").json()["results"]
    assert [(r["id"], r["project"]) for r in rows] == [
        (str(done.public_id), str(book.public_id)),
        (str(row.public_id), None),
    ]
    stranger = client_of(make.user_make())
    assert stranger.get(f"{API}/imports/{row.public_id}/").status_code == 404
    assert stranger.get(f"{API}/imports/").json()["results"] == []


# --- chapters and sentences --------------------------------------------------------------------------------------------


def test_chapters_come_in_order_with_their_figures(api, book):
    make.takes_make(make.chapters_of(book)[0])
    rows = api.get(f"{API}/projects/{book.public_id}/documents/").json()["results"]
    assert [(row["title"], row["number"], row["counts"]["missing"] == 0) for row in rows] == [
        ("The Ferry", 1, True),
        ("The Lamp Room", 2, False),
    ]
    first = api.get(f"{API}/projects/{book.public_id}/documents/?page_size=1").json()
    rest = api.get(first["next"]).json()
    assert [row["title"] for row in first["results"] + rest["results"]] == ["The Ferry", "The Lamp Room"]


def test_a_chapter_is_renamed_and_left_out(api, book):
    document = make.chapters_of(book)[0]
    response = api.patch(f"{API}/documents/{document.public_id}/", {"title": "Ferry", "included": False})
    assert response.status_code == 200, response.content
    found = response.json()
    assert (found["title"], found["included"], found["number"]) == ("Ferry", False, None)
    assert found["version"] > document.version
    same = api.patch(f"{API}/documents/{document.public_id}/", {}).json()
    assert same["version"] == found["version"]


def test_sentences_come_in_reading_order_page_by_page_both_ways(api, book):
    document = make.chapters_of(book)[0]
    expected = [str(s.public_id) for s in make.segments_of(document)]
    assert len(expected) >= 6
    pages, address = [], f"{API}/documents/{document.public_id}/segments/?page_size=2"
    while address:
        page = api.get(address).json()
        pages.append(page)
        address = page["next"]
    assert [row["id"] for page in pages for row in page["results"]] == expected
    assert pages[0]["previous"] is None
    back, address = [], pages[-1]["previous"]
    while address:
        page = api.get(address).json()
        back = page["results"] + back
        address = page["previous"]
    assert [row["id"] for row in back] == expected[: -len(pages[-1]["results"])]


def test_a_sentence_added_before_the_cursor_moves_nothing(api, book):
    document = make.chapters_of(book)[0]
    expected = [str(s.public_id) for s in make.segments_of(document)]
    first = api.get(f"{API}/documents/{document.public_id}/segments/?page_size=2").json()
    begin = make.segments_of(document)[0]
    block = Block.objects.create(
        document=document, order_key=key_between(None, begin.block.order_key), source_text="New."
    )
    Segment.objects.create(
        document=document,
        block=block,
        order_key="i",
        text="New.",
        spoken="New.",
        source_start=0,
        source_end=4,
    )
    second = api.get(first["next"]).json()
    assert [row["id"] for row in second["results"]] == expected[2:4]


@pytest.mark.parametrize(
    "cursor",
    [
        "zzz",
        "WzAsImEiXQ==",
        "WzAsIkEnIiwiYiJd",
        "WzAsMSwyXQ==",
        "eyJhIjoxfQ==",
        "WzIsImEiLCJhIl0=",
        "W1tdLCJhIiwiYSJd",
    ],
)
def test_a_forged_place_is_404(api, book, cursor):
    document = make.chapters_of(book)[0]
    response = api.get(f"{API}/documents/{document.public_id}/segments/", {"cursor": cursor})
    assert response.status_code == 404


def test_sentences_are_narrowed_by_state(api, book):
    document = make.chapters_of(book)[0]
    segments = make.segments_of(document)
    make.take_make(segments[1])
    make.take_make(segments[2], recipe="0" * 64)  # another recipe than it wants: stale
    address = f"{API}/documents/{document.public_id}/segments/"

    def ids(**query: str) -> list[str]:
        return [row["id"] for row in api.get(address, query).json()["results"]]

    assert ids(state="ready") == [str(s.public_id) for s in segments[1:3]]
    assert ids(stale="true") == [str(segments[2].public_id)]
    assert str(segments[2].public_id) not in ids(stale="false")
    assert len(ids()) == len(segments)
    assert api.get(address, {"state": "purple"}).status_code == 400


def test_an_edit_makes_the_sentence_stale_and_keeps_its_take(api, book):
    segment = make.segments_of(book)[1]
    take = make.take_make(segment)
    response = api.patch(
        f"{API}/segments/{segment.public_id}/",
        {"text": "The ferry left at one.", "text_rev": segment.text_rev},
    )
    assert response.status_code == 200, response.content
    found = response.json()
    assert (found["text"], found["text_rev"], found["stale"]) == ("The ferry left at one.", 2, True)
    assert found["chosen_take"]["id"] == str(take.public_id)
    assert found["chosen_take"]["audio"].endswith(f"{API}/takes/{take.public_id}/audio/")


def test_spoken_words_are_set_by_hand_and_given_back(api, book):
    segment = make.segments_of(book)[1]
    address = f"{API}/segments/{segment.public_id}/"
    by_hand = api.patch(address, {"spoken": "The fairy left at noon.", "text_rev": 1}).json()
    assert (by_hand["spoken"], by_hand["spoken_set"], by_hand["text"]) == (
        "The fairy left at noon.",
        True,
        segment.text,
    )
    back = api.patch(address, {"spoken": "", "text_rev": 2}).json()
    assert (back["spoken"], back["spoken_set"]) == (segment.spoken, False)


def test_who_comes_second_gets_both_texts(api, book):
    segment = make.segments_of(book)[1]
    address = f"{API}/segments/{segment.public_id}/"
    assert api.patch(address, {"text": "First.", "text_rev": 1}).status_code == 200
    response = api.patch(address, {"text": "Second.", "text_rev": 1})
    assert response.status_code == 409
    error = response.json()["error"]
    assert error["code"] == "stale_revision"
    assert error["details"]["current"] == {"text": "First.", "spoken": "First.", "text_rev": 2}
    assert error["details"]["yours"] == {"text": "Second.", "text_rev": 1}
    segment.refresh_from_db()
    assert segment.text == "First."


def test_an_edit_without_words_or_revision_is_refused(api, book):
    address = f"{API}/segments/{make.segments_of(book)[1].public_id}/"
    assert set(api.patch(address, {"text": "  ", "text_rev": 1}).json()["error"]["fields"]) == {"text"}
    assert set(api.patch(address, {"text": "Words."}).json()["error"]["fields"]) == {"text_rev"}


# --- takes and voices --------------------------------------------------------------------------------------------------


def test_takes_are_listed_and_chosen(api, book):
    segment = make.segments_of(book)[1]
    first = make.take_make(segment)
    second = make.take_make(segment, variant=7, choose=False)
    gone = make.take_make(segment, variant=8, choose=False, deleted_at=first.created_at)
    address = f"{API}/segments/{segment.public_id}/takes/"
    assert [(t["number"], t["chosen"]) for t in api.get(address).json()["results"]] == [(2, False), (1, True)]

    response = api.post(f"{API}/takes/{second.public_id}/choose/")
    assert response.status_code == 200
    assert response.json()["chosen_take"]["id"] == str(second.public_id)
    assert response.json()["stale"] is False
    assert api.get(f"{API}/takes/{second.public_id}/").json()["chosen"] is True
    assert api.get(f"{API}/takes/{gone.public_id}/").status_code == 404
    assert api.post(f"{API}/takes/{gone.public_id}/choose/").status_code == 404
    assert api.get(f"{API}/takes/{gone.public_id}/audio/").status_code == 404


def test_voices_are_those_of_the_studio_and_of_the_asked_book(api, book):
    mine = make.voice_make("Ours", project=book)
    make.voice_make("Theirs", project=make.project_make(title="Other"))
    make.voice_make("Claire", languages=["fr"])
    make.voice_make("Gone", retired_at=mine.created_at)

    def names(**query: str) -> set[str]:
        return {row["name"] for row in api.get(f"{API}/voices/", query).json()["results"]}

    assert names() == {"Ada", "Claire"}
    assert names(project=str(book.public_id)) == {"Ada", "Claire", "Ours"}
    assert names(language="fr-CA") == {"Claire"}
    assert api.get(f"{API}/voices/{mine.public_id}/").json()["project"] == str(book.public_id)
    assert api.get(f"{API}/voices/", {"project": "7"}).status_code == 400


# --- how much it asks the database -------------------------------------------------------------------------------------


def test_lists_ask_the_database_no_more_for_more_rows(api, owner, django_assert_max_num_queries):
    from django.db import connection

    small = make.project_make(owner, chapters=[("One", ["A short line."])])
    long = [(f"Chapter {n}", ["A line. Another line. A third one."] * 3) for n in range(6)]
    large = make.project_make(owner, chapters=long)
    for book in (small, large):
        make.takes_make(book)
        for segment in make.segments_of(book)[:1]:
            for variant in range(1, 2 if book is small else 5):
                make.take_make(segment, variant=variant)

    def pair(address: str) -> tuple[int, int]:
        found = []
        for book in (small, large):
            document = make.chapters_of(book)[0]
            segment = make.segments_of(document)[0]
            at = address.format(
                project=book.public_id, document=document.public_id, segment=segment.public_id
            )
            found.append(queries(connection, api, f"{API}/{at}"))
        return found[0], found[1]

    for address in (
        "projects/{project}/",
        "projects/{project}/documents/",
        "documents/{document}/segments/",
        "segments/{segment}/takes/",
    ):
        few, many = pair(address)
        assert few == many <= 9, (address, few, many)

    one_page = queries(connection, api, f"{API}/projects/?page_size=1")
    assert queries(connection, api, f"{API}/projects/") == one_page <= 4
    make.import_make(owner)
    one = queries(connection, api, f"{API}/imports/")
    for _n in range(4):
        make.import_make(owner, project=large)
    assert queries(connection, api, f"{API}/imports/") == one <= 4
    voices = queries(connection, api, f"{API}/voices/")
    for _n in range(4):
        make.voice_make(project=None)
    assert queries(connection, api, f"{API}/voices/") == voices <= 4
