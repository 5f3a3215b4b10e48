"""The admin's way through tables of any size: pages by key, nothing counted, found by public id, read before written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

OLDER, NEWER = "older_than", "newer_than"  # internal keys, in the admin only


def _key(value: str | None) -> int | None:
    """A key from a query string, or None for none or nonsense."""
    return int(value) if value and value.isascii() and value.isdigit() and len(value) < 19 else None


class KeysetChangeList(ChangeList):
    """A change list, newest first, that reads one page and one row more, and never counts."""

    older_url = newer_url = newest_url = ""

    def __init__(self, request: HttpRequest, *args: Any, **options: Any) -> None:
        self.older_than, self.newer_than = _key(request.GET.get(OLDER)), _key(request.GET.get(NEWER))
        super().__init__(request, *args, **options)
        for name in (OLDER, NEWER):  # a new search or filter begins at the newest
            self.params.pop(name, None)
        rows = self.result_list
        if rows and self.more_older:
            self.older_url = self.get_query_string({OLDER: rows[-1].pk})
        if rows and self.more_newer:
            self.newer_url = self.get_query_string({NEWER: rows[0].pk})
        if self.older_than or self.newer_than:
            self.newest_url = self.get_query_string({})

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        found = super().get_filters_params(params)
        for name in (OLDER, NEWER):
            found.pop(name, None)
        return found

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        size = self.list_per_page
        if self.newer_than is not None:
            found = list(self.queryset.filter(pk__gt=self.newer_than).order_by("pk")[: size + 1])
            self.more_newer, self.more_older = len(found) > size, True
            rows = found[:size][::-1]
        else:
            queryset = self.queryset
            if self.older_than is not None:
                queryset = queryset.filter(pk__lt=self.older_than)
            found = list(queryset[: size + 1])
            self.more_newer, self.more_older = self.older_than is not None, len(found) > size
            rows = found[:size]
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)  # of the page: nobody counts the table
        self.show_full_result_count = False
        self.show_admin_actions = bool(rows)
        self.can_show_all = self.multi_page = False
        self.paginator = self.model_admin.get_paginator(request, rows, size)  # type: ignore[arg-type]


class ReadMostlyAdmin(admin.ModelAdmin):
    """Rows to look at: fields are read-only unless named in `changeable`; nothing is added or deleted here.

    `search_ids` are lookups of public ids, tried one after the other so that each uses its index; `search_text` are
    fields of small tables in which any part of the text may be searched.
    """

    changeable: tuple[str, ...] = ()
    search_ids: tuple[str, ...] = ("public_id",)
    search_text: tuple[str, ...] = ()
    search_fields = ("public_id",)  # shows the box; get_search_results says what it does
    search_help_text: ClassVar[Any] = _("A public id, whole.")
    change_list_template = "admin/keyset_change_list.html"
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    links: tuple[str, ...] = ("rows",)

    def get_changelist(self, request: HttpRequest, **options: Any) -> type[ChangeList]:
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        queryset = super().get_queryset(request)
        related = self.list_select_related
        return (
            queryset.select_related(*related) if isinstance(related, (list, tuple)) and related else queryset
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fields = [
            f.name for f in self.opts.concrete_fields if f.name not in self.changeable and not f.primary_key
        ]
        return [*(name for name in self.links if hasattr(self, name)), *fields]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [*self.changeable, *self.get_readonly_fields(request, obj)]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            wanted = UUID(term)
        except ValueError:
            wanted = None
        if wanted is not None:
            for lookup in self.search_ids:
                found = queryset.filter(**{lookup: wanted})
                if found.exists():
                    return found, False
        elif self.search_text:
            anywhere = Q()
            for name in self.search_text:
                anywhere |= Q(**{f"{name}__icontains": term})
            return queryset.filter(anywhere), False
        return queryset.none(), False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def rows_link(model: str, label: Any, **where: Any) -> SafeString:
    """A link to the rows of "app.Model" that belong to something: rows_link("projects.Take", …, segment=7)."""
    app, _sep, name = model.lower().partition(".")
    query = urlencode({f"{field}__exact": value for field, value in where.items()})
    return format_html('<a href="{}?{}">{}</a>', reverse(f"admin:{app}_{name}_changelist"), query, label)


def row_link(row: Model | None, label: Any = "") -> SafeString | str:
    """A link to one row's page; a dash for none."""
    if row is None:
        return "–"
    address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', address, label or str(row) or row.pk)


def joined(links: Iterable[SafeString]) -> SafeString:
    """Links in one line."""
    return format_html_join(" · ", "{}", ((link,) for link in links))
