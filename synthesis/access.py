"""A door's only way to a conversion or an export: through the book it belongs to."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404

from accounts.roles import Action
from projects.access import access_project
from synthesis.models import Conversion, Export


def access_conversion(user: Any, public_id: UUID | str, action: Action = Action.VIEW) -> Conversion:
    """A conversion of a book the person may act in. Raises Http404 or PermissionDenied."""
    found = Conversion.objects.select_related("project", "document").filter(public_id=public_id).first()
    if found is None:
        raise Http404
    access_project(user, found.project.public_id, action)
    return found


def access_export(user: Any, public_id: UUID | str, action: Action = Action.VIEW) -> Export:
    """An export of a book the person may act in. Raises Http404 or PermissionDenied."""
    found = Export.objects.select_related("project").filter(public_id=public_id).first()
    if found is None:
        raise Http404
    access_project(user, found.project.public_id, action)
    return found
