"""Tests: fast hashing, own folder, no build of the front end needed. Services come from the environment if set."""

from __future__ import annotations

import tempfile
from pathlib import Path

from . import env
from .base import *  # noqa: F403  (a delta of base: STYLE)
from .base import DJANGO_VITE, ROOT, STORAGES

SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["*"]
HTTPS = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
DATA_DIR = Path(tempfile.mkdtemp(prefix="studio-test-"))
OBJECTS_DIR = DATA_DIR / "objects"
if not env.text("S3_BUCKET"):
    STORAGES["default"]["OPTIONS"] = {"location": OBJECTS_DIR}
DATABASES = {"default": env.database("TEST_DATABASE_URL", f"sqlite:///{DATA_DIR / 'test.sqlite3'}")}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": DATA_DIR / "test.sqlite3"}  # a file: worker threads share it
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
if not (ROOT / "static" / "dist" / "manifest.json").exists():
    DJANGO_VITE["default"]["dev_mode"] = True  # pages render without a build
STATIC_ROOT = DATA_DIR / "staticfiles"
STATIC_ROOT.mkdir()
DISPATCH_INLINE = True  # no threads behind a test's back
