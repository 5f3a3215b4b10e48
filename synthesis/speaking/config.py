"""What a synthesis worker needs to know, from the environment. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SpeakingConfig:
    """Addresses and credentials; times in seconds."""

    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)  # {pool: addresses}
    broker_url: str = ""
    objects_dir: str = ""
    s3_bucket: str = ""
    s3_endpoint_url: str = ""
    s3_access_key: str = ""
    s3_secret_key: str = ""
    s3_region: str = "us-east-1"
    inference_timeout_s: float = 240.0

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> SpeakingConfig:
        """The same variables that the studio's settings read."""
        pools: dict[str, tuple[str, ...]] = {}
        for part in environ.get("INFERENCE_POOLS", "").split(";"):
            pool, _, addresses = part.partition("=")
            if pool.strip():
                pools[pool.strip()] = tuple(a.strip().rstrip("/") for a in addresses.split("|") if a.strip())
        data = Path(environ.get("STUDIO_DATA_DIR") or "var")
        return cls(
            pools=pools,
            broker_url=environ.get("BROKER_URL", ""),
            objects_dir=str(data / "objects"),
            s3_bucket=environ.get("S3_BUCKET", ""),
            s3_endpoint_url=environ.get("S3_ENDPOINT_URL", ""),
            s3_access_key=environ.get("S3_ACCESS_KEY", ""),
            s3_secret_key=environ.get("S3_SECRET_KEY", ""),
            s3_region=environ.get("S3_REGION", "us-east-1"),
            inference_timeout_s=float(environ.get("INFERENCE_TIMEOUT_S", "240")),
        )
