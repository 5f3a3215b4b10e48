"""People and tokens for operators."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from .browsing import ReadMostlyAdmin
from .models import ApiToken, User


@admin.register(User)
class StudioUserAdmin(UserAdmin):
    """People. Nobody is deleted here: what they did stays theirs; take `active` away instead."""

    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_display = ("username", "email", "first_name", "last_name", "is_staff", "is_active", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    list_per_page = 50
    readonly_fields = ("public_id", "last_login", "date_joined")
    fieldsets = (*(UserAdmin.fieldsets or ()), (_("Studio"), {"fields": ("public_id", "time_zone")}))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(ReadMostlyAdmin):
    """Tokens. Their secret is shown once, to whoever makes one: `manage.py api_token`."""

    changeable = ("name", "revoked_at")
    list_display = ("name", "prefix", "user", "scope", "created_at", "last_used_at", "revoked_at")
    list_filter = ("scope",)
    list_select_related = ("user",)
    search_ids = ("user__public_id",)
    search_text = ("name", "prefix", "user__username")
    search_help_text = _("Part of a token's name, its first letters or its owner's name.")
    actions = ("revoke",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [name for name in super().get_readonly_fields(request, obj) if name != "digest"]

    @admin.action(description=_("Revoke"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """From now on these tokens are refused."""
        queryset.filter(revoked_at=None).update(revoked_at=timezone.now())
