"""`manage.py check --deploy`: what must be true before the studio faces people."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Error, Tags, Warning, register


@register(Tags.security, deploy=True)
def services_check(app_configs: Any, **kwargs: Any) -> list[Any]:
    """Real services beyond one machine: broker, channel layer, bucket and workers are named."""
    found: list[Any] = []
    if not settings.BROKER_URL:
        found.append(
            Warning(
                "BROKER_URL is empty: work runs inside the web process.",
                hint="Set amqp://…",
                id="studio.W001",
            )
        )
    if settings.BROKER_URL and not settings.REDIS_URL:
        found.append(
            Error(
                "REDIS_URL is empty although roles run as separate processes: editors would not be told of new takes.",
                hint="Set redis://…",
                id="studio.E001",
            )
        )
    if settings.BROKER_URL and not settings.S3_BUCKET:
        found.append(
            Warning(
                "S3_BUCKET is empty: audio lies in a folder that every role must share.",
                hint="Set S3_BUCKET and its credentials, or mount one folder in all roles.",
                id="studio.W002",
            )
        )
    if settings.BROKER_URL and not settings.INFERENCE_POOLS:
        found.append(
            Error(
                "INFERENCE_POOLS is empty: nothing can speak.",
                hint="Set cpu=http://host:8080",
                id="studio.E002",
            )
        )
    return found
