"""The schema is whole and true: no warning, and no request made from it is answered with a server error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
import schemathesis
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from rest_framework.test import APIClient
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from accounts.models import ApiToken
from accounts.services import api_token_create
from projects.models import Segment
from projects.work import WorkState
from tests import factories as make

EXAMPLES = 2  # per operation and mode: a smoke test of every door, not a search
BOUNDS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def schema_text() -> str:
    out = StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", stdout=out)
    return out.getvalue()


def test_the_schema_is_valid_and_without_a_warning(schema_text):
    schema = json.loads(schema_text)
    assert schema["openapi"].startswith("3.1")
    for path in (
        "projects/",
        "segments/{segment}/",
        "takes/{take}/audio/",
        "conversions/",
        "exports/{export}/",
    ):
        assert f"/api/v1/{path}" in schema["paths"]


def test_every_door_tells_its_errors_and_shows_no_internal_key(schema_text):
    schema = json.loads(schema_text)
    for path, operations in schema["paths"].items():
        assert "{id}" not in path
        assert "{pk}" not in path
        for name, operation in operations.items():
            assert {"401", "403", "404"} <= set(operation["responses"]), (path, name)
            assert operation["description"], (path, name)
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "path":
                    assert parameter["schema"]["format"] == "uuid"
    for name, component in schema["components"]["schemas"].items():
        for field in ("id", "project", "document", "segment", "voice"):
            found = component.get("properties", {}).get(field)
            assert found is None or found.get("type") != "integer", (name, field)


@pytest.mark.django_db
def test_schema_and_docs_are_served_from_here(client):
    schema = client.get("/api/v1/schema/", HTTP_ACCEPT="application/json")
    docs = client.get("/api/v1/docs/")
    assert (schema.status_code, docs.status_code) == (200, 200)
    page = docs.content.decode()
    assert "swagger-ui-bundle.js" in page
    assert "//cdn" not in page
    assert "https://" not in page.replace("https://www.w3.org", "")


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Requests share the test's transaction, as with Django's test client."""
    request_started.disconnect(close_old_connections)
    request_finished.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)
    request_finished.connect(close_old_connections)


@pytest.mark.django_db
def test_requests_made_from_the_schema_meet_no_server_error(schema_text, one_connection):
    user = make.user_make()
    book = make.project_make(user)
    document = make.chapters_of(book)[0]
    segment = make.segments_of(document)[1]
    take = make.take_make(segment)
    default_storage.save(take.audio_key, ContentFile(b"0123456789"))
    export = make.export_make(book, user, state=WorkState.FAILED, failure_code="clip_unusable")
    ids: dict[str, Any] = {
        "project": book.public_id,
        "document": document.public_id,
        "segment": segment.public_id,
        "take": take.public_id,
        "voice": make.voice_make("Bruno").public_id,
        "conversion": make.conversion_make(make.chapters_of(book)[1], user).public_id,
        "export": export.public_id,
        "public_id": make.import_make(user, state=WorkState.FAILED, failure_code="internal").public_id,
    }
    ids = {name: str(value) for name, value in ids.items()}
    _token, secret = api_token_create(user, "tests", ApiToken.Scope.WRITE)
    schema = schemathesis.openapi.from_dict(json.loads(schema_text))
    schema.app = get_wsgi_application()
    answers: dict[str, set[int]] = {}

    def send(case: schemathesis.Case) -> None:
        if isinstance(case.body, dict):  # what it names exists
            case.body.update({name: ids[name] for name in case.body if name in ids})
            case.body.pop("documents", None)
            if "text_rev" in case.body:
                case.body["text_rev"] = Segment.objects.get(pk=segment.pk).text_rev
        if case.query:
            case.query.pop("cursor", None)  # a made-up one is a 404: tested with the lists
        response = case.call(headers={"Authorization": f"Bearer {secret}"})
        answers.setdefault(case.operation.label, set()).add(response.status_code)
        case.validate_response(response, checks=CHECKS)

    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        assert operation is not None
        count += 1
        known = {p.name: ids[p.name] for p in operation.path_parameters}
        bare = operation.method == "get" and not len(operation.query)
        for mode in (
            schemathesis.GenerationMode.POSITIVE,
            *(() if bare else (schemathesis.GenerationMode.NEGATIVE,)),
        ):
            cases = operation.as_strategy(generation_mode=mode, path_parameters=known)
            bounds = BOUNDS if mode.is_positive else settings(BOUNDS, max_examples=1)
            bounds(given(cases)(send))()
    assert count > 25
    # the requests got somewhere: most doors answered well at least once
    well = [label for label, codes in answers.items() if any(code < 400 for code in codes)]
    assert len(well) > len(answers) * 0.7, sorted(set(answers) - set(well))
    assert not [label for label, codes in answers.items() if 401 in codes]


def test_an_unforeseen_error_is_500_in_the_same_shape(monkeypatch, db):
    from projects.api import views

    def broken(*args: Any, **options: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(views, "access_segment", broken)
    user = make.user_make()
    api = APIClient(raise_request_exception=False)
    api.force_login(user)
    segment = make.segments_of(make.project_make(user))[0]
    response = api.get(f"/api/v1/segments/{segment.public_id}/")
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal"
    assert "secret" not in response.content.decode()
