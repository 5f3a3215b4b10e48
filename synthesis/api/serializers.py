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
class PresetSerializer(serializers.Serializer):
    """A deliverable that can be made of the book."""

    preset = serializers.ChoiceField(choices=Export.Preset.choices, source="name")
    label = serializers.CharField()  # type: ignore[assignment]
    hint = serializers.CharField()
    content_type = serializers.CharField(source="mime")
    is_set = serializers.BooleanField(help_text="Several files, handed over as one ZIP.")
    rules = serializers.CharField(
        source="rules.name", default=None, allow_null=True, help_text="The delivery check it goes through."
    )
    disclosure = serializers.CharField(help_text="What is known about narration by a machine; verify.")


class SampleSerializer(serializers.Serializer):
    """Where the retail sample comes from; left out: the first minutes of chapter one."""

    document = serializers.UUIDField(required=False)
    minutes = serializers.IntegerField(required=False, min_value=1, max_value=5)


class ExportStartSerializer(serializers.Serializer):
    """Which deliverable, and of which chapters: none named is the whole audiobook."""

    preset = serializers.ChoiceField(choices=Export.Preset.choices, default=Export.Preset.M4B.value)
    documents = serializers.ListField(child=serializers.UUIDField(), default=list, max_length=2_000)
    since = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**31 - 1,
        help_text="Only the files that differ from this finished revision of the same preset (sets only).",
    )
    sample = SampleSerializer(required=False)


class MissingSerializer(serializers.Serializer):
    """A chapter that lacked sentences: when the export was asked for, and once it is done, when it was made."""

    chapter = serializers.CharField()
    sentences = serializers.IntegerField()


class CheckSummarySerializer(serializers.Serializer):
    """A delivery check in numbers: how many rules fail, warn and pass."""

    rules = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    dated = serializers.CharField(help_text="When the rules were read at their source.")
    fail = serializers.IntegerField()  # type: ignore[assignment]
    warn = serializers.IntegerField()
    passed = serializers.IntegerField(source="pass")


class CheckRowSerializer(serializers.Serializer):
    """One rule held against one file; an empty `file` is the set."""

    file = serializers.CharField()
    code = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    status = serializers.ChoiceField(
        choices=[("pass", "pass"), ("warn", "warn"), ("fail", "fail")],
    )
    value = serializers.CharField()
    wanted = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    dated = serializers.CharField()
    fix = serializers.CharField(help_text="A word for what would help; empty where it passes.")


class CheckSerializer(CheckSummarySerializer):
    """A delivery check with every row, as stored with the revision."""

    rows = CheckRowSerializer(many=True)


class ChangesSerializer(serializers.Serializer):
    """The files of a set against those of an earlier revision of the same preset."""

    since = serializers.IntegerField()
    new = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(child=serializers.CharField())
    gone = serializers.ListField(child=serializers.CharField())
    same = serializers.ListField(child=serializers.CharField())


class LoudnessSerializer(serializers.Serializer):
    """Gated loudness of the whole book as delivered, and how far the file furthest from it lies."""

    lufs = serializers.FloatField()
    spread_lu = serializers.FloatField()


class DeliveredFileSerializer(serializers.Serializer):
    """A file of a delivery."""

    name = serializers.CharField()
    title = serializers.CharField()
    bytes = serializers.IntegerField()
    duration_ms = serializers.IntegerField()
    sha256 = serializers.CharField()


class ExportSerializer(serializers.Serializer):
    """A deliverable. Revisions count up and are never overwritten."""

    id = serializers.UUIDField(source="public_id")
    project = serializers.UUIDField(source="project.public_id")
    revision = serializers.IntegerField()
    preset = serializers.ChoiceField(choices=Export.Preset.choices)
    documents = serializers.ListField(child=serializers.UUIDField())
    since = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(choices=WorkState.choices)
    progress = serializers.FloatField(help_text="0 to 1.")
    eta_s = serializers.FloatField(allow_null=True, help_text="Seconds left, once enough was made to tell.")
    file_name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    duration_ms = serializers.IntegerField()
    missing = serializers.ListField(child=MissingSerializer(), source="report.missing", default=list)
    outdated = serializers.BooleanField(help_text="The book would come out otherwise now.")
    outdated_why = serializers.CharField()
    loudness = LoudnessSerializer(source="report.loudness", default=None, allow_null=True)
    check = CheckSummarySerializer(source="report.check", default=None, allow_null=True)
    changes = ChangesSerializer(source="report.changes", default=None, allow_null=True)
    notes = serializers.ListField(child=serializers.CharField(), source="report.notes", default=list)
    failure = FailureField()
    download = serializers.HyperlinkedIdentityField(
        view_name="api:export-download", lookup_field="public_id", lookup_url_kwarg="export"
    )
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class ExportDetailSerializer(ExportSerializer):
    """A deliverable with its files."""

    files = serializers.ListField(child=DeliveredFileSerializer(), source="details.files", default=list)


class CreditsSerializer(serializers.Serializer):
    """The credits that were written, as chapters."""

    documents = serializers.ListField(child=serializers.UUIDField())
