"""Chapter renders in object storage: after one changed sentence an export makes one chapter anew."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import BinaryIO, cast

from django.core.files.base import File
from django.core.files.storage import default_storage

from projects.models import Project

log = logging.getLogger(__name__)


class StorageRenders:
    """A RenderStore below a book's prefix. `used` lists the keys that an export has asked for.

    What cannot be read or kept costs time only, so storage that fails here is logged and the chapter made anew.
    """

    def __init__(self, project: Project) -> None:
        self._prefix = f"p/{project.public_id}/renders"
        self.used: list[str] = []
        self.found = 0

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key[:2]}/{key}"

    def get(self, key: str) -> BinaryIO | None:
        """The open file, or None."""
        self.used.append(key)
        try:
            file = cast(BinaryIO, default_storage.open(self._key(key), "rb"))
        except FileNotFoundError:
            return None
        except Exception:
            log.warning("the render %s could not be read; it is made anew", key, exc_info=True)
            return None
        self.found += 1
        return file

    def put(self, key: str, file: BinaryIO) -> None:
        """Keep the file. Asked only for what was not there or was damaged, so an older entry goes first: a local
        storage would else keep both, the new one under another name."""
        name = self._key(key)
        try:
            default_storage.delete(name)
            default_storage.save(name, File(file))
        except Exception:
            log.warning("the render %s could not be kept", key, exc_info=True)

    def drop(self, keys: Iterable[str]) -> None:
        """Delete renders that no export needs any more. Safe to call twice."""
        for key in keys:
            try:
                default_storage.delete(self._key(key))
            except Exception:
                log.warning("the render %s could not be deleted", key, exc_info=True)
