"""What the doors of synthesis take in and give out. Input and output apart; no logic but the checks of single fields."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from projects.api.serializers import FailureField, choices_of
from projects.work import WorkState
from synthesis.models import Conversion, Export
from synthesis.services.conversions import Only, Scope


# --- conversions -------------------------------------------------------------------------------------------------------
class ConversionStartSerializer(serializers.Serializer):
    """What to make: one of `project`, `document` and `segment`, and which of its sentences."""

    project = serializers.UUIDField(required=False)
    document = serializers.UUIDField(required=False)
    segment = serializers.UUIDField(required=False)
    only = serializers.ChoiceField(choices=choices_of(Only), default=Only.MISSING_STALE.value)
    new_variant = serializers.BooleanField(
        default=False, help_text="Another take, with another seed, of what has one already (with only=all)."
    )

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        if sum(name in data for name in ("project", "document", "segment")) != 1:
            raise serializers.ValidationError(_("Name one of project, document and segment."))
        return data


class FailureCountSerializer(serializers.Serializer):
    """Sentences that failed for one reason."""

    code = serializers.CharField()
    count = serializers.IntegerField()
    message = serializers.CharField()
    remedy = serializers.CharField()


class JobCountsSerializer(serializers.Serializer):
    """Sentences by what became of them. What had the wanted take already is not among them."""

    total = serializers.IntegerField()
    waiting = serializers.IntegerField()
    leased = serializers.IntegerField(help_text="Handed to the workers.")
    done = serializers.IntegerField()
    failed = serializers.IntegerField()
    cancelled = serializers.IntegerField()
    failures = FailureCountSerializer(many=True)


class ConversionSerializer(serializers.Serializer):
    """A request to make takes."""

    id = serializers.UUIDField(source="public_id")
    project = serializers.UUIDField(source="project.public_id")
    document = serializers.UUIDField(source="document.public_id", default=None, allow_null=True)
    scope = serializers.ChoiceField(choices=choices_of(Scope))
    only = serializers.ChoiceField(choices=choices_of(Only))
    lane = serializers.ChoiceField(choices=Conversion.Lane.choices)
    state = serializers.ChoiceField(choices=Conversion.State.choices)
    counts = JobCountsSerializer()
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ConversionDetailSerializer(ConversionSerializer):
    """A conversion with how long it will take."""

    eta_s = serializers.FloatField(allow_null=True, help_text="Seconds left, once enough was made to tell.")
    waiting_why = serializers.CharField(help_text="Why nothing moves; empty while all is well.")


class ConversionQuerySerializer(serializers.Serializer):
    project = serializers.UUIDField(required=False)
    state = serializers.ChoiceField(choices=Conversion.State.choices, required=False)


# --- exports -----------------------------------------------------------------------------------------------------------
class ExportStartSerializer(serializers.Serializer):
    """Which deliverable, and of which chapters: none named is the whole audiobook."""

    preset = serializers.ChoiceField(choices=Export.Preset.choices, default=Export.Preset.M4B.value)
    documents = serializers.ListField(child=serializers.UUIDField(), default=list, max_length=2_000)


class MissingSerializer(serializers.Serializer):
    """A chapter that lacked sentences when the export was asked for."""

    chapter = serializers.CharField()
    sentences = serializers.IntegerField()


class ExportSerializer(serializers.Serializer):
    """A deliverable. Revisions count up and are never overwritten."""

    id = serializers.UUIDField(source="public_id")
    project = serializers.UUIDField(source="project.public_id")
    revision = serializers.IntegerField()
    preset = serializers.ChoiceField(choices=Export.Preset.choices)
    documents = serializers.ListField(child=serializers.UUIDField())
    state = serializers.ChoiceField(choices=WorkState.choices)
    progress = serializers.FloatField(help_text="0 to 1.")
    file_name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    duration_ms = serializers.IntegerField()
    missing = serializers.ListField(child=MissingSerializer(), source="report.missing", default=list)
    failure = FailureField()
    download = serializers.HyperlinkedIdentityField(
        view_name="api:export-download", lookup_field="public_id", lookup_url_kwarg="export"
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
