"""Where audio lies: an S3-compatible store or a folder, one small port for both. Pure."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from .config import SpeakingConfig


class StorageRefused(Exception):
    """Raised when the store cannot be reached or refuses; a later try may succeed."""


PAGE = 1000  # keys per page of a listing


class ObjectStore(Protocol):
    """Storage as the pipeline uses it: the synthesis worker only ever adds, the collector looks and deletes."""

    def put(self, key: str, data: bytes, content_type: str) -> None:
        """Store bytes under a key, whole or not at all; the same key again is the same bytes. Raises StorageRefused."""
        ...

    def size(self, key: str) -> int | None:
        """Length of an object in bytes, None if it is not there. Raises StorageRefused."""
        ...

    def read(self, key: str) -> bytes:
        """An object's bytes. Raises StorageRefused, also for one that is not there."""
        ...

    def pages(self, prefix: str) -> Iterator[list[tuple[str, float]]]:
        """(key, age in seconds) of all objects below a prefix. Raises StorageRefused."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error. Raises StorageRefused."""
        ...


class FolderStore:
    """Objects as files below one folder; writes are atomic (temporary file, then rename)."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def put(self, key: str, data: bytes, content_type: str) -> None:
        path = self.root / key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(name, 0o644)
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as exc:
            raise self._refused(exc) from exc

    def size(self, key: str) -> int | None:
        try:
            return (self.root / key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise self._refused(exc) from exc

    def read(self, key: str) -> bytes:
        try:
            return (self.root / key).read_bytes()
        except OSError as exc:
            raise self._refused(exc) from exc

    def pages(self, prefix: str) -> Iterator[list[tuple[str, float]]]:
        page: list[tuple[str, float]] = []
        for folder, _folders, names in os.walk(self.root / prefix):
            for name in names:
                if name.startswith(".part-"):
                    continue
                path = Path(folder) / name
                try:
                    age_s = time.time() - path.stat().st_mtime
                except FileNotFoundError:
                    continue
                page.append((path.relative_to(self.root).as_posix(), age_s))
                if len(page) >= PAGE:
                    yield page
                    page = []
        if page:
            yield page

    def delete(self, key: str) -> None:
        path = self.root / key
        try:
            path.unlink(missing_ok=True)
        except NotADirectoryError:
            return
        except OSError as exc:
            raise self._refused(exc) from exc
        for folder in list(path.parents)[:2]:  # of its fingerprint, then of the project's takes, where empty
            try:
                folder.rmdir()
            except OSError:
                return

    def _refused(self, exc: OSError) -> StorageRefused:
        return StorageRefused(f"the folder {self.root} refused: {exc.strerror or exc}")


class BucketStore:
    """Objects in an S3 bucket. Path-style addresses and checksums only where required: several S3-compatible stores
    refuse the checksums that boto3 ≥ 1.36 sends by default."""

    def __init__(self, config: SpeakingConfig) -> None:
        import boto3
        from botocore.config import Config

        self.bucket = config.s3_bucket
        self.client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=config.s3_endpoint_url or None,
            aws_access_key_id=config.s3_access_key or None,
            aws_secret_access_key=config.s3_secret_key or None,
            region_name=config.s3_region,
            config=Config(
                signature_version="s3v4",
                s3={"addressing_style": "path"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                connect_timeout=5,
                read_timeout=30,
                retries={"max_attempts": 4, "mode": "standard"},
                max_pool_connections=32,
            ),
        )

    def put(self, key: str, data: bytes, content_type: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self.client.put_object(Bucket=self.bucket, Key=key, Body=data, ContentType=content_type)
        except (BotoCoreError, ClientError) as exc:
            raise StorageRefused(f"the bucket {self.bucket} refused: {exc}") from exc

    def size(self, key: str) -> int | None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return int(self.client.head_object(Bucket=self.bucket, Key=key)["ContentLength"])
        except ClientError as exc:
            if exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
                return None
            raise StorageRefused(f"the bucket {self.bucket} refused: {exc}") from exc
        except BotoCoreError as exc:
            raise StorageRefused(f"the bucket {self.bucket} refused: {exc}") from exc

    def read(self, key: str) -> bytes:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return bytes(self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read())
        except (BotoCoreError, ClientError) as exc:
            raise StorageRefused(f"the bucket {self.bucket} refused: {exc}") from exc

    def pages(self, prefix: str) -> Iterator[list[tuple[str, float]]]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            for page in self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=prefix, PaginationConfig={"PageSize": PAGE}
            ):
                found = [
                    (item["Key"], time.time() - item["LastModified"].timestamp())
                    for item in page.get("Contents", ())
                ]
                if found:
                    yield found
        except (BotoCoreError, ClientError) as exc:
            raise StorageRefused(f"the bucket {self.bucket} refused: {exc}") from exc

    def delete(self, key: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self.client.delete_object(Bucket=self.bucket, Key=key)
        except (BotoCoreError, ClientError) as exc:
            raise StorageRefused(f"the bucket {self.bucket} refused: {exc}") from exc


@cache
def store_from(config: SpeakingConfig) -> ObjectStore:
    """The store a configuration names. One per process: boto3 clients are thread-safe, sessions are not."""
    return BucketStore(config) if config.s3_bucket else FolderStore(config.objects_dir)
