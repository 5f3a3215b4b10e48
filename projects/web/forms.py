"""What people type, checked."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from projects.importers.registry import importers
from projects.models import Project

# what the file dialog offers: every ending that some importer knows
ACCEPT = ",".join(dict.fromkeys(ending for importer in importers() for ending in importer.extensions))


class UploadForm(forms.Form):
    """A manuscript."""

    file = forms.FileField(
        label=_("Manuscript"), allow_empty_file=True, error_messages={"required": _("Choose a file first.")}
    )


class SegmentTextForm(forms.Form):
    """An inline edit: the text, and which revision of it was open."""

    text = forms.CharField(label=_("Text"), max_length=20_000, widget=forms.Textarea)
    spoken = forms.CharField(label=_("Spoken text"), max_length=20_000, required=False, widget=forms.Textarea)
    text_rev = forms.IntegerField(min_value=1, widget=forms.HiddenInput)


class ProjectForm(forms.ModelForm):
    """A book's metadata; authors are separated by commas."""

    authors = forms.CharField(
        label=_("Author"), required=False, help_text=_("Several: separate them with commas.")
    )

    class Meta:
        model = Project
        fields = (
            "title",
            "subtitle",
            "authors",
            "translator",
            "narrator",
            "language",
            "series",
            "series_position",
            "publisher",
            "year",
            "isbn",
            "rights",
            "description",
        )
        widgets = {
            "description": forms.Textarea(attrs={"rows": 4}),
            "language": forms.TextInput(attrs={"size": 12}),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.initial["authors"] = self.instance.authors_text
        for field in self.fields.values():
            field.widget.attrs.setdefault("class", "input")
            field.widget.attrs.setdefault("dir", "auto")

    def clean_authors(self) -> list[str]:
        """A list of names."""
        return [name.strip() for name in self.cleaned_data["authors"].split(",") if name.strip()]

    def clean_language(self) -> str:
        """A BCP 47 tag, roughly: letters, digits and hyphens."""
        tag = self.cleaned_data["language"].strip()
        if not tag.replace("-", "").isalnum() or not tag[:2].isalpha():
            raise forms.ValidationError(_("Write the language as a tag, for example en or pt-BR."))
        return tag
