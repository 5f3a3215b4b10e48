"""The project itself as an app: system checks and what binds the embedded default."""

from django.apps import AppConfig


class VoiceprojectConfig(AppConfig):
    name = "voiceproject"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from . import checks  # noqa: F401  (registers the checks)
