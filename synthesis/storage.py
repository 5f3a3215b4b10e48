"""Objects as the studio reads them: keys, links for browsers, bytes in ranges."""

from __future__ import annotations

from functools import cache
from typing import Any

import boto3
from django.conf import settings


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
    # The host is part of what is signed: the link must be made for the address at which the browser asks.
    return _signer(settings.S3_PUBLIC_ENDPOINT_URL or settings.S3_ENDPOINT_URL).generate_presigned_url(
        "get_object",
        Params={"Bucket": settings.S3_BUCKET, "Key": key, **parameters},
        ExpiresIn=settings.S3_LINK_SECONDS,
    )


@cache
def _signer(endpoint_url: str) -> Any:
    """A client that only signs: it never connects. One per process, since each takes long to make; thread-safe."""
    options = settings.STORAGES["default"]["OPTIONS"]
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint_url or None,
        aws_access_key_id=options["access_key"],
        aws_secret_access_key=options["secret_key"],
        region_name=options["region_name"],
        config=options["client_config"],
    )
