"""Makes the bucket named in the settings if it is not there; waits up to a minute for the store. Safe to run twice."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError


def bucket_create(environ: Mapping[str, str], *, wait_s: float = 60.0) -> str:
    """Create S3_BUCKET and return what was done. Raises the store's error once the time is over."""
    bucket = environ.get("S3_BUCKET", "")
    if not bucket:
        return "S3_BUCKET is not set: nothing to do."
    client = boto3.client(
        "s3",
        endpoint_url=environ.get("S3_ENDPOINT_URL") or None,
        aws_access_key_id=environ.get("S3_ACCESS_KEY") or None,
        aws_secret_access_key=environ.get("S3_SECRET_KEY") or None,
        region_name=environ.get("S3_REGION") or "us-east-1",
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            connect_timeout=3,
            read_timeout=10,
            retries={"max_attempts": 1},
        ),
    )
    deadline = time.monotonic() + wait_s
    while True:
        try:
            client.head_bucket(Bucket=bucket)
            return f"Bucket {bucket} is there."
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                client.create_bucket(Bucket=bucket)
                return f"Bucket {bucket} created."
            if time.monotonic() > deadline:
                raise
        except BotoCoreError:
            if time.monotonic() > deadline:
                raise
        time.sleep(1)


if __name__ == "__main__":
    sys.stdout.write(bucket_create(os.environ) + "\n")
