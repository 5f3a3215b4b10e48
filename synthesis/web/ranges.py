"""Stored objects to the browser: a signed link where there is a bucket, byte ranges from the folder otherwise."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import IO

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.utils.cache import patch_cache_control
from django.utils.http import content_disposition_header

from synthesis.storage import is_remote, signed_url

PIECE = 256 * 1024  # bytes
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})$", re.ASCII)


def object_response(
    request: HttpRequest, key: str, *, content_type: str, download_as: str = ""
) -> HttpResponse | StreamingHttpResponse:
    """An object as an answer. Takes never change under their key, so browsers may keep them. Raises Http404."""
    if is_remote():
        response: HttpResponse = HttpResponseRedirect(
            signed_url(key, content_type=content_type, download_as=download_as)
        )
        patch_cache_control(response, private=True, max_age=min(300, settings.S3_LINK_SECONDS // 2))
        return response
    try:
        file = default_storage.open(key, "rb")
        size = default_storage.size(key)
    except FileNotFoundError as exc:
        raise Http404 from exc
    begin, end, status = _range(request.headers.get("Range", ""), size)
    if status == 416:
        file.close()
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    file.seek(begin)
    pieces = _pieces(file, end - begin + 1)
    # Under ASGI a plain iterator would be read into memory whole before the first byte leaves.
    content = _asynchronous(pieces) if isinstance(request, ASGIRequest) else pieces
    answer = StreamingHttpResponse(content, status=status, content_type=content_type)
    answer["Content-Length"] = str(end - begin + 1)
    answer["Accept-Ranges"] = "bytes"
    answer["X-Content-Type-Options"] = "nosniff"
    if status == 206:
        answer["Content-Range"] = f"bytes {begin}-{end}/{size}"
    if download_as and (header := content_disposition_header(True, download_as)):
        answer["Content-Disposition"] = header
    patch_cache_control(answer, private=True, max_age=86_400, immutable=True)
    return answer


def _range(header: str, size: int) -> tuple[int, int, int]:
    """(first byte, last byte, status) for a Range header; several ranges or none give the whole object (RFC 9110)."""
    found = _RANGE.match(header.strip())
    if not found or found.group(0) == "bytes=-":
        return 0, size - 1, 200
    first, last = found.groups()
    if first:
        begin, end = int(first), min(int(last), size - 1) if last else size - 1
    else:
        begin, end = max(size - int(last), 0), size - 1
    if begin >= size or begin > end:
        return 0, 0, 416
    return begin, end, 206


def _pieces(file: IO[bytes], left: int) -> Iterator[bytes]:
    with file:
        while left > 0 and (piece := file.read(min(PIECE, left))):
            left -= len(piece)
            yield piece


async def _asynchronous(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    read = sync_to_async(lambda: next(pieces, b""), thread_sensitive=False)
    while piece := await read():
        yield piece
