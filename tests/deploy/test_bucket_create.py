"""The one-shot that makes the bucket, against a real store."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from botocore.exceptions import BotoCoreError, ClientError


@pytest.fixture(scope="module")
def module() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "deploy" / "bucket_create.py"
    spec = importlib.util.spec_from_file_location("bucket_create", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_no_bucket_wanted(module):
    assert "nothing to do" in module.bucket_create({})


def test_a_store_that_is_not_there_is_an_error(module):
    with pytest.raises(BotoCoreError):
        module.bucket_create({"S3_BUCKET": "b", "S3_ENDPOINT_URL": "http://127.0.0.1:9", "S3_ACCESS_KEY": "k",
                              "S3_SECRET_KEY": "s"}, wait_s=0)  # fmt: skip


@pytest.mark.services
def test_created_once(module, s3_server):
    settings = s3_server.environment() | {"S3_BUCKET": "made-by-deploy"}
    assert module.bucket_create(settings, wait_s=10) == "Bucket made-by-deploy created."
    assert module.bucket_create(settings, wait_s=10) == "Bucket made-by-deploy is there."


@pytest.mark.services
def test_wrong_secret_is_an_error(module, s3_server):
    with pytest.raises(ClientError):
        module.bucket_create(s3_server.environment() | {"S3_SECRET_KEY": "wrong"}, wait_s=0)
