"""Synthesis: from a wanted sentence to a take, and from takes to an audiobook."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SynthesisConfig(AppConfig):
    name = "synthesis"
    verbose_name = _("Synthesis")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from projects.work import on_work_added, on_work_moved
        from synthesis.services.dispatching import aims_wake
        from synthesis.services.history import events_append
        from synthesis.services.production import production_wake
        from synthesis.web import panels

        on_work_added(production_wake)
        on_work_added(aims_wake)
        on_work_moved(events_append)
        panels.hang()
