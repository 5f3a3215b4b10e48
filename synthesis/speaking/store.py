"""Where audio lies: an S3-compatible store or a folder, one small port for both. Pure."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from .config import SpeakingConfig


class StorageRefused(Exception):
    """Raised when the store cannot be reached or refuses; a later try may succeed."""


class ObjectStore(Protocol):
    """The worker's view of storage: it only ever adds."""

    def put(self, key: str, data: bytes, content_type: str) -> None:
        """Store bytes under a key, whole or not at all; the same key again is the same bytes. Raises StorageRefused."""
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
            raise StorageRefused(f"the folder {self.root} refused: {exc.strerror or exc}") from exc


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


@cache
def store_from(config: SpeakingConfig) -> ObjectStore:
    """The store a configuration names. One per process: boto3 clients are thread-safe, sessions are not."""
    return BucketStore(config) if config.s3_bucket else FolderStore(config.objects_dir)
