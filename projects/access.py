"""A door's only way to an object. What you may not see is a 404; what you may see but not do is a 403."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.roles import Action, may

from .models import Document, ManuscriptImport, Membership, Project, Segment, Take, Voice

Id = UUID | str


def role_in(user: Any, project: Project) -> str | None:
    """The person's role in a project, or None."""
    return Membership.objects.filter(project=project, user_id=user.pk).values_list("role", flat=True).first()


def permitted(user: Any, project: Project, action: Action) -> bool:
    """Whether the person may act so in the project."""
    return may(role_in(user, project), action)


def projects_of(user: Any) -> QuerySet[Project]:
    """Projects the person may see."""
    return Project.objects.filter(memberships__user_id=user.pk)


def _checked(user: Any, project: Project, action: Action) -> None:
    role = role_in(user, project)
    if not may(role, Action.VIEW):
        raise Http404
    if not may(role, action):
        raise PermissionDenied(
            _("Your role in this book does not allow that. Its owner can change your role.")
        )


def _found(queryset: QuerySet[Any], public_id: Id) -> Any:
    try:
        found = queryset.filter(public_id=public_id).first()
    except (ValueError, TypeError, ValidationError) as exc:  # no id at all
        raise Http404 from exc
    if found is None:
        raise Http404
    return found


def access_project(user: Any, public_id: Id, action: Action = Action.VIEW) -> Project:
    """A project, if the person may act so in it. Raises Http404 or PermissionDenied."""
    project = _found(Project.objects.select_related("voice"), public_id)
    _checked(user, project, action)
    return project


def access_document(user: Any, public_id: Id, action: Action = Action.VIEW) -> Document:
    """A chapter. Raises Http404 or PermissionDenied."""
    document = _found(Document.objects.select_related("project", "project__voice"), public_id)
    _checked(user, document.project, action)
    return document


def access_segment(user: Any, public_id: Id, action: Action = Action.VIEW) -> Segment:
    """A sentence. Raises Http404 or PermissionDenied."""
    segment = _found(
        Segment.objects.select_related("document__project__voice", "block", "voice", "chosen_take"), public_id
    )
    _checked(user, segment.document.project, action)
    return segment


def access_take(user: Any, public_id: Id, action: Action = Action.VIEW) -> Take:
    """A take. Raises Http404 or PermissionDenied."""
    take = _found(
        Take.objects.filter(deleted_at=None).select_related("segment__document__project"), public_id
    )
    _checked(user, take.segment.document.project, action)
    return take


def voices_for(user: Any, project: Project | None = None) -> QuerySet[Voice]:
    """Voices the person may use: the studio's own and those of a project."""
    mine = Q(project=None)
    if project is not None:
        mine |= Q(project=project)
    return Voice.objects.filter(mine, retired_at=None).order_by("name", "pk")


def access_voice(user: Any, public_id: Id) -> Voice:
    """A voice of the studio, or of a project the person may see. Raises Http404."""
    voice = _found(Voice.objects.select_related("project"), public_id)
    if voice.project is not None:
        _checked(user, voice.project, Action.VIEW)
    return voice


def access_voice_offered(user: Any, public_id: Id, project: Project) -> Voice:
    """A voice that may read this book: not one of another book, not a retired one. Raises Http404."""
    return _found(voices_for(user, project), public_id)


def access_import(user: User, public_id: Id) -> ManuscriptImport:
    """One's own import. Raises Http404."""
    return _found(ManuscriptImport.objects.filter(user_id=user.pk).select_related("project"), public_id)
