"""What the doors of books take in and give out. Input and output apart; no logic but the checks of single fields."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.roles import Role
from projects.failures import failure_words
from projects.models import Document, Project, Segment, Take, Voice
from projects.pauses import DEFAULT_PAUSES_MS, MAX_PAUSE_MS
from projects.work import WorkState

LANGUAGE = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}$"


def choices_of(enum: Any) -> list[tuple[str, str]]:
    """A plain string enumeration as choices."""
    return [(item.value, item.name) for item in enum]


# --- shared parts ------------------------------------------------------------------------------------------------------
class FailureSerializer(serializers.Serializer):
    """Why something failed: a code for programs; what happened and what helps for people."""

    code = serializers.CharField()
    message = serializers.CharField()
    remedy = serializers.CharField()
    detail = serializers.CharField()


def failure_of(row: Any) -> dict[str, str] | None:
    """The failure noted on a segment, import, job or export, or None."""
    if not row.failure_code:
        return None
    message, remedy = failure_words(row.failure_code, row.failure_detail)
    return {"code": row.failure_code, "message": message, "remedy": remedy, "detail": row.failure_detail}


class FailureField(serializers.SerializerMethodField):
    """The `failure` of a row of work or a sentence."""

    def to_representation(self, value: Any) -> Any:
        return failure_of(value)

    def bind(self, field_name: str, parent: Any) -> None:
        serializers.Field.bind(self, field_name, parent)


extend_schema_field(FailureSerializer(allow_null=True))(FailureField)


class CountsSerializer(serializers.Serializer):
    """Sentences that are read aloud, by render state; `stale` and `missing` cut across the states."""

    total = serializers.IntegerField()
    empty = serializers.IntegerField()
    queued = serializers.IntegerField()
    rendering = serializers.IntegerField()
    ready = serializers.IntegerField()
    failed = serializers.IntegerField()
    stale = serializers.IntegerField()
    missing = serializers.IntegerField(help_text="Without any take, whatever the state.")
    words = serializers.IntegerField()
    estimated_hours = serializers.FloatField(source="hours_estimate")
    duration_s = serializers.FloatField(
        allow_null=True, help_text="Length with pauses, once nothing is missing."
    )


# --- voices ------------------------------------------------------------------------------------------------------------
class VoiceSerializer(serializers.Serializer):
    id = serializers.UUIDField(source="public_id")
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=Voice.Kind.choices)
    project = serializers.UUIDField(
        source="project.public_id",
        default=None,
        allow_null=True,
        help_text="Empty: a voice of the whole studio.",
    )
    engine = serializers.CharField()
    model = serializers.CharField()
    model_revision = serializers.CharField()
    revision = serializers.IntegerField()
    languages = serializers.ListField(child=serializers.CharField(), help_text='BCP 47; "*" is any.')
    speed = serializers.FloatField()
    gender = serializers.CharField()
    licence = serializers.CharField()
    pool = serializers.CharField()
    retired_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when it is not offered any more; books that use it keep it."
    )


class VoiceRefSerializer(serializers.Serializer):
    """A voice, in short."""

    id = serializers.UUIDField(source="public_id")
    name = serializers.CharField()


class VoiceQuerySerializer(serializers.Serializer):
    project = serializers.UUIDField(required=False, help_text="Also the voices that belong to this project.")
    language = serializers.RegexField(
        LANGUAGE, required=False, max_length=35, help_text="Only voices that speak it."
    )


# --- projects ----------------------------------------------------------------------------------------------------------
class ProjectSerializer(serializers.Serializer):
    id = serializers.UUIDField(source="public_id")
    role = serializers.ChoiceField(choices=choices_of(Role), help_text="Yours.")
    title = serializers.CharField()
    subtitle = serializers.CharField()
    authors = serializers.ListField(child=serializers.CharField())
    translator = serializers.CharField()
    narrator = serializers.CharField()
    narration = serializers.ChoiceField(choices=Project.Narration.choices)
    language = serializers.CharField()
    series = serializers.CharField()
    series_position = serializers.CharField()
    publisher = serializers.CharField()
    year = serializers.CharField()
    rights = serializers.CharField()
    isbn = serializers.CharField()
    description = serializers.CharField()
    voice = VoiceRefSerializer(allow_null=True)
    created_at = serializers.DateTimeField()


class RulesOutputSerializer(serializers.Serializer):
    pauses = serializers.DictField(child=serializers.IntegerField(), required=False)


class ProjectDetailSerializer(ProjectSerializer):
    """A project with its rules and the figures of its audiobook."""

    rules = RulesOutputSerializer()
    counts = CountsSerializer(help_text="Of the chapters that are in the audiobook.")


class RulesSerializer(serializers.Serializer):
    """Reading rules of a project; what is not named follows the studio's defaults."""

    pauses = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=MAX_PAUSE_MS),
        required=False,
        help_text="Pause in ms by the kind of boundary between two sentences.",
    )

    def validate_pauses(self, value: dict[str, int]) -> dict[str, int]:
        if unknown := sorted(set(value) - set(DEFAULT_PAUSES_MS)):
            raise serializers.ValidationError(
                "Unknown: {}. Known: {}.".format(", ".join(unknown[:5]), ", ".join(DEFAULT_PAUSES_MS))
            )
        return value


class ProjectChangeSerializer(serializers.Serializer):
    """Metadata to change; what is not named stays."""

    title = serializers.CharField(required=False, max_length=500)
    subtitle = serializers.CharField(required=False, allow_blank=True, max_length=500)
    authors = serializers.ListField(
        child=serializers.CharField(max_length=300), required=False, max_length=50
    )
    translator = serializers.CharField(required=False, allow_blank=True, max_length=300)
    narrator = serializers.CharField(required=False, allow_blank=True, max_length=300)
    narration = serializers.ChoiceField(choices=Project.Narration.choices, required=False)
    language = serializers.RegexField(LANGUAGE, required=False, max_length=35, help_text="BCP 47.")
    series = serializers.CharField(required=False, allow_blank=True, max_length=300)
    series_position = serializers.CharField(required=False, allow_blank=True, max_length=20)
    publisher = serializers.CharField(required=False, allow_blank=True, max_length=300)
    year = serializers.CharField(required=False, allow_blank=True, max_length=10)
    rights = serializers.CharField(required=False, allow_blank=True, max_length=1000)
    isbn = serializers.CharField(required=False, allow_blank=True, max_length=20)
    description = serializers.CharField(required=False, allow_blank=True, max_length=20_000)
    rules = RulesSerializer(required=False)


class ProjectVoiceSerializer(serializers.Serializer):
    voice = serializers.UUIDField()


class ProjectVoiceSetSerializer(serializers.Serializer):
    voice = VoiceRefSerializer()
    changed = serializers.IntegerField(
        help_text="Sentences that want to be made anew; their takes stay, stale."
    )


# --- imports -----------------------------------------------------------------------------------------------------------
class UploadSerializer(serializers.Serializer):
    """A manuscript: EPUB, DOCX, PDF, ODT, RTF, HTML, FB2, Markdown, plain text, or a zip of chapter files."""

    file = serializers.FileField(allow_empty_file=True)  # the service refuses an empty one, in words
    language = serializers.RegexField(
        LANGUAGE, required=False, max_length=35, help_text="BCP 47; else what the file says."
    )
    voice = serializers.UUIDField(required=False, help_text="Else the studio's default for the language.")


class ImportSerializer(serializers.Serializer):
    id = serializers.UUIDField(source="public_id")
    state = serializers.ChoiceField(choices=WorkState.choices)
    name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.CharField()
    language = serializers.CharField()
    project = serializers.UUIDField(source="project.public_id", default=None, allow_null=True)
    failure = FailureField()
    warnings = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


# --- documents ---------------------------------------------------------------------------------------------------------
class DocumentSerializer(serializers.Serializer):
    """A part of the book, usually a chapter, with its figures."""

    id = serializers.UUIDField(source="document.public_id")
    project = serializers.UUIDField(source="document.project.public_id")
    title = serializers.CharField(source="document.title")
    kind = serializers.ChoiceField(choices=Document.Kind.choices, source="document.kind")
    number = serializers.IntegerField(allow_null=True, help_text="Among the chapters that are read.")
    depth = serializers.IntegerField(source="document.depth")
    language = serializers.CharField(source="document.language", help_text="Empty: the project's.")
    included = serializers.BooleanField(source="document.included")
    exclusion_reason = serializers.CharField(source="document.exclusion_reason")
    version = serializers.IntegerField(source="document.version")
    counts = CountsSerializer()


class DocumentChangeSerializer(serializers.Serializer):
    title = serializers.CharField(required=False, allow_blank=True, max_length=500)
    included = serializers.BooleanField(required=False)


# --- segments ----------------------------------------------------------------------------------------------------------
class BlockRefSerializer(serializers.Serializer):
    """The paragraph a sentence belongs to, in short."""

    id = serializers.UUIDField(source="public_id")
    kind = serializers.CharField()
    skip_reason = serializers.CharField(help_text="Why it is not read aloud; empty: it is.")


class TakeRefSerializer(serializers.Serializer):
    """A take, in short."""

    id = serializers.UUIDField(source="public_id")
    number = serializers.IntegerField()
    duration_ms = serializers.IntegerField()
    audio = serializers.HyperlinkedIdentityField(
        view_name="api:take-audio", lookup_field="public_id", lookup_url_kwarg="take"
    )


class SegmentSerializer(serializers.Serializer):
    """A sentence, or a part of one: what is printed, what is said, what became of it."""

    id = serializers.UUIDField(source="public_id")
    document = serializers.UUIDField(source="document.public_id")
    block = BlockRefSerializer()
    text = serializers.CharField()
    separator = serializers.CharField(trim_whitespace=False)
    spoken = serializers.CharField(help_text="Empty: not read aloud.")
    spoken_set = serializers.BooleanField(help_text="The spoken words were set by hand.")
    language = serializers.CharField(help_text="Empty: the paragraph's, chapter's or project's.")
    boundary = serializers.CharField(help_text="What lies between this sentence and the next.")
    pause_after_ms = serializers.IntegerField(allow_null=True, help_text="Set by hand; null: by the rules.")
    voice = VoiceRefSerializer(allow_null=True, help_text="Null: the project's.")
    direction = serializers.CharField()
    text_rev = serializers.IntegerField(help_text="Send it back with an edit.")
    version = serializers.IntegerField(help_text="Grows with every change.")
    state = serializers.ChoiceField(choices=Segment.State.choices)
    stale = serializers.BooleanField(
        source="is_stale", help_text="The chosen take is not what it should sound like."
    )
    failure = FailureField()
    words = serializers.IntegerField()
    estimated_ms = serializers.IntegerField()
    chosen_take = TakeRefSerializer(allow_null=True)
    edit_at = serializers.DateTimeField(allow_null=True)
    qc_at = serializers.DateTimeField(allow_null=True)
    pickup_at = serializers.DateTimeField(allow_null=True)
    lock_at = serializers.DateTimeField(allow_null=True)
    changed_at = serializers.DateTimeField()


class SegmentQuerySerializer(serializers.Serializer):
    state = serializers.ChoiceField(choices=Segment.State.choices, required=False)
    stale = serializers.BooleanField(required=False)


class SegmentChangeSerializer(serializers.Serializer):
    """New words. `text_rev` is the revision they were written for: if somebody was faster, the answer is 409 with both
    texts."""

    text_rev = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    text = serializers.CharField(required=False, max_length=10_000)
    spoken = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=10_000,
        help_text="Sets the spoken words by hand; empty gives them back to the normaliser.",
    )


# --- takes -------------------------------------------------------------------------------------------------------------
class TakeSerializer(serializers.Serializer):
    """What was spoken or recorded for a sentence. Its audio never changes."""

    id = serializers.UUIDField(source="public_id")
    segment = serializers.UUIDField(source="segment.public_id")
    number = serializers.IntegerField()
    chosen = serializers.BooleanField()
    candidate = serializers.BooleanField(source="is_candidate", help_text="Waits for a choice.")
    origin = serializers.ChoiceField(choices=Take.Origin.choices)
    spoken = serializers.CharField()
    seed = serializers.IntegerField(source="variant")
    voice = VoiceRefSerializer(allow_null=True)
    model_revision = serializers.CharField()
    audio = serializers.HyperlinkedIdentityField(
        view_name="api:take-audio", lookup_field="public_id", lookup_url_kwarg="take"
    )
    sha256 = serializers.CharField(help_text="Of the audio file.")
    size_bytes = serializers.IntegerField()
    samples = serializers.IntegerField()
    rate_hz = serializers.IntegerField()
    speech_start = serializers.IntegerField(help_text="Samples.")
    speech_end = serializers.IntegerField(help_text="Samples, exclusive.")
    duration_ms = serializers.IntegerField()
    rms_db = serializers.FloatField()
    peak_db = serializers.FloatField()
    noise_floor_db = serializers.FloatField()
    loudness_lufs = serializers.FloatField(allow_null=True)
    inference_ms = serializers.IntegerField()
    note = serializers.CharField()
    created_at = serializers.DateTimeField()
