"""Objects as the studio reads them: keys, links for browsers, bytes in ranges."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage


def is_remote() -> bool:
    """Whether objects lie in a bucket that browsers can read by signed links."""
    return bool(settings.S3_BUCKET)


def signed_url(key: str, *, content_type: str = "", download_as: str = "") -> str:
    """A link to an object in the bucket, valid for S3_LINK_SECONDS; ranges work on it.

    `download_as` makes the browser save it under that name.
    """
    parameters: dict[str, Any] = {}
    if content_type:
        parameters["ResponseContentType"] = content_type
    if download_as:
        ascii_name = download_as.encode("ascii", "replace").decode().replace('"', "'")
        parameters["ResponseContentDisposition"] = f'attachment; filename="{ascii_name}"'
    url = default_storage.url(key, parameters=parameters)  # type: ignore[call-arg]
    if settings.S3_PUBLIC_ENDPOINT_URL and settings.S3_ENDPOINT_URL:
        return url.replace(settings.S3_ENDPOINT_URL, settings.S3_PUBLIC_ENDPOINT_URL, 1)
    return url
