"""Books for operators: to look at, at any size. Writes go through services."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.browsing import ReadMostlyAdmin, joined, row_link, rows_link

from .models import Block, Document, ManuscriptImport, Membership, Project, Segment, SegmentEdit, Take, Voice
from .services.projects import document_update, project_update

SHOWN = 60  # characters of a sentence in a list


class MembershipInline(admin.TabularInline):
    """Who works on a book."""

    model = Membership
    extra = 0
    raw_id_fields = ("user",)
    fields = ("user", "role", "created_at")
    readonly_fields = ("created_at",)


@admin.register(Project)
class ProjectAdmin(ReadMostlyAdmin):
    changeable = (
        "title",
        "subtitle",
        "translator",
        "narrator",
        "series",
        "series_position",
        "publisher",
        "year",
        "rights",
        "isbn",
        "description",
    )
    list_display = ("title", "authors_text", "language", "voice", "created_at", "rows")
    list_filter = ("narration",)
    list_select_related = ("voice",)
    search_text = ("title",)
    search_help_text = _("A public id, whole, or part of the title.")
    inlines = (MembershipInline,)

    @admin.display(description=_("rows"))
    def rows(self, project: Project) -> SafeString:
        """What belongs to it."""
        return joined(
            [
                rows_link("projects.Document", _("chapters"), project=project.pk),
                rows_link("projects.ManuscriptImport", _("imports"), project=project.pk),
                rows_link("synthesis.Conversion", _("conversions"), project=project.pk),
                rows_link("synthesis.Export", _("exports"), project=project.pk),
            ]
        )

    def save_model(self, request: HttpRequest, obj: Project, form: Any, change: bool) -> None:
        project_update(
            obj, **{name: form.cleaned_data[name] for name in form.changed_data if name in self.changeable}
        )


@admin.register(Membership)
class MembershipAdmin(ReadMostlyAdmin):
    changeable = ("role",)
    list_display = ("user", "project", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "project")
    search_ids = ("project__public_id", "user__public_id")
    search_text = ("user__username", "project__title")
    search_help_text = _("A book's or person's public id, or part of their name.")


@admin.register(Document)
class DocumentAdmin(ReadMostlyAdmin):
    changeable = ("title", "included")
    list_display = ("title", "project", "kind", "included", "order_key", "rows")
    list_filter = ("kind", "included")
    list_select_related = ("project",)
    search_ids = ("public_id", "project__public_id")
    search_text = ("title",)
    search_help_text = _("The public id of a chapter or book, whole, or part of the title.")

    @admin.display(description=_("rows"))
    def rows(self, document: Document) -> SafeString:
        """What belongs to it."""
        return joined(
            [
                rows_link("projects.Block", _("paragraphs"), document=document.pk),
                rows_link("projects.Segment", _("sentences"), document=document.pk),
            ]
        )

    def save_model(self, request: HttpRequest, obj: Document, form: Any, change: bool) -> None:
        before = Document.objects.select_related("project").get(pk=obj.pk)
        document_update(before, title=form.cleaned_data["title"], included=form.cleaned_data["included"])


@admin.register(Block)
class BlockAdmin(ReadMostlyAdmin):
    list_display = ("public_id", "document", "kind", "beginning", "skip_reason", "rows")
    list_select_related = ("document",)
    search_ids = ("public_id", "document__public_id")
    search_help_text = _("The public id of a paragraph or chapter, whole.")

    @admin.display(description=_("text"))
    def beginning(self, block: Block) -> str:
        """The first words."""
        return block.source_text[:SHOWN]

    @admin.display(description=_("rows"))
    def rows(self, block: Block) -> SafeString:
        """What belongs to it."""
        return rows_link("projects.Segment", _("sentences"), block=block.pk)


@admin.register(Segment)
class SegmentAdmin(ReadMostlyAdmin):
    list_display = (
        "public_id",
        "document",
        "beginning",
        "state",
        "failure_code",
        "text_rev",
        "changed_at",
        "rows",
    )
    list_filter = ("state",)
    list_select_related = ("document",)
    search_ids = ("public_id", "block__public_id", "document__public_id")
    search_help_text = _("The public id of a sentence, paragraph or chapter, whole.")

    @admin.display(description=_("text"))
    def beginning(self, segment: Segment) -> str:
        """The first words."""
        return segment.text[:SHOWN]

    @admin.display(description=_("rows"))
    def rows(self, segment: Segment) -> SafeString:
        """What belongs to it."""
        return joined(
            [
                rows_link("projects.Take", _("takes"), segment=segment.pk),
                rows_link("synthesis.SegmentJob", _("jobs"), segment=segment.pk),
                rows_link("projects.SegmentEdit", _("edits"), segment=segment.pk),
            ]
        )


@admin.register(SegmentEdit)
class SegmentEditAdmin(ReadMostlyAdmin):
    list_display = ("segment", "text_rev", "by", "at")
    list_select_related = ("segment", "by")
    search_ids = ("segment__public_id",)
    search_help_text = _("A sentence's public id, whole.")


@admin.register(Take)
class TakeAdmin(ReadMostlyAdmin):
    list_display = (
        "public_id",
        "sentence",
        "number",
        "origin",
        "voice",
        "duration_ms",
        "rms_db",
        "peak_db",
        "is_candidate",
        "created_at",
        "deleted_at",
    )
    list_filter = ("origin", "is_candidate")
    list_select_related = ("segment", "voice")
    search_ids = ("public_id", "segment__public_id")
    search_help_text = _("The public id of a take or sentence, whole.")

    @admin.display(description=_("segment"))
    def sentence(self, take: Take) -> SafeString | str:
        """The sentence it speaks."""
        return row_link(take.segment)


@admin.register(Voice)
class VoiceAdmin(ReadMostlyAdmin):
    """What a voice sounds like never changes here: only its name and description, and whether it is offered."""

    changeable = ("name", "gender", "licence", "retired_at")
    list_display = ("name", "kind", "engine", "model", "model_revision", "pool", "project", "retired_at")
    list_filter = ("kind",)
    list_select_related = ("project",)
    search_ids = ("public_id", "project__public_id")
    search_text = ("name", "engine_voice")
    search_help_text = _("A public id, whole, or part of the name.")


@admin.register(ManuscriptImport)
class ManuscriptImportAdmin(ReadMostlyAdmin):
    list_display = (
        "name",
        "user",
        "state",
        "failure_code",
        "project",
        "size_bytes",
        "created_at",
        "finished_at",
    )
    list_filter = ("state",)
    list_select_related = ("user", "project", "voice")
    search_ids = ("public_id", "project__public_id", "user__public_id")
    search_text = ("name",)
    search_help_text = _("The public id of an import, book or person, whole, or part of the file's name.")
