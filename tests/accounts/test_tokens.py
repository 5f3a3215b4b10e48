"""Tokens and sessions: how programs and pages say who they are."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import ApiToken
from accounts.services import PREFIX, api_token_create, api_token_used, token_digest
from tests import factories as make

pytestmark = pytest.mark.django_db
API = "/api/v1"


def with_token(secret: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


@pytest.fixture
def book():
    return make.project_make(make.user_make("owner"))


def test_a_token_acts_for_its_person_and_its_secret_is_not_kept(book):
    owner = book.memberships.get().user
    token, secret = api_token_create(owner, "script", ApiToken.Scope.WRITE)
    assert secret.startswith(PREFIX)
    assert token.digest == token_digest(secret)
    assert secret not in str({f.name: getattr(token, f.name) for f in ApiToken._meta.fields})
    api = with_token(secret)
    assert api.get(f"{API}/projects/").json()["results"][0]["id"] == str(book.public_id)
    changed = api.patch(f"{API}/projects/{book.public_id}/", {"title": "By a program"}, format="json")
    assert changed.status_code == 200  # and no CSRF token was asked for


def test_a_reading_token_may_only_read(book):
    _token, secret = api_token_create(book.memberships.get().user, "script")
    api = with_token(secret)
    assert api.get(f"{API}/projects/{book.public_id}/").status_code == 200
    refused = api.patch(f"{API}/projects/{book.public_id}/", {"title": "No"}, format="json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("case", ["unknown", "revoked", "inactive", "garbled"])
def test_a_token_that_does_not_count_is_401(book, case):
    owner = book.memberships.get().user
    token, secret = api_token_create(owner, "script")
    if case == "revoked":
        ApiToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())
    elif case == "inactive":
        owner.is_active = False
        owner.save()
    else:
        secret = {"unknown": f"{PREFIX}nobody", "garbled": "ÿÿ"}[case]
    response = with_token(secret).get(f"{API}/projects/")
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["error"]["code"] == "not_authenticated"


def test_use_is_noted_at_most_once_a_minute(book, django_assert_num_queries):
    token, _secret = api_token_create(book.memberships.get().user, "script")
    api_token_used(token)
    token.refresh_from_db()
    assert token.last_used_at is not None
    with django_assert_num_queries(0):
        api_token_used(token)
    token.last_used_at -= timedelta(minutes=2)
    with django_assert_num_queries(1):
        api_token_used(token)


def test_a_session_needs_the_csrf_token_to_write(book):
    api = APIClient(enforce_csrf_checks=True)
    api.force_login(book.memberships.get().user)
    assert api.get(f"{API}/projects/{book.public_id}/").status_code == 200
    refused = api.patch(f"{API}/projects/{book.public_id}/", {"title": "No"}, format="json")
    assert refused.status_code == 403
    assert "CSRF" in refused.json()["error"]["message"]
    api.cookies["csrftoken"] = "a" * 32
    allowed = api.patch(
        f"{API}/projects/{book.public_id}/", {"title": "Yes"}, format="json", HTTP_X_CSRFTOKEN="a" * 32
    )
    assert allowed.status_code == 200


def test_the_command_prints_the_secret_alone(book):
    out, err = StringIO(), StringIO()
    call_command("api_token", "owner", "--name", "backup", "--write", stdout=out, stderr=err)
    secret = out.getvalue().strip()
    token = ApiToken.objects.get(digest=token_digest(secret))
    assert (token.user.username, token.name, token.scope) == ("owner", "backup", "write")
    assert secret not in err.getvalue()
    call_command("api_token", "owner", stdout=out, stderr=err)
    assert ApiToken.objects.filter(scope="read").count() == 1


def test_the_command_refuses_who_is_not_there():
    with pytest.raises(CommandError, match="nobody"):
        call_command("api_token", "nobody")
    make.user_make("away", is_active=False)
    with pytest.raises(CommandError, match="not active"):
        call_command("api_token", "away")
    assert not ApiToken.objects.exists()
