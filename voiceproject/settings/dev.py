"""The embedded default: the whole studio on one machine, with nothing but Python."""

from __future__ import annotations

import secrets

from . import env
from .base import *  # noqa: F403  (a delta of base: STYLE)
from .base import ALLOWED_HOSTS, DATA_DIR, SECRET_KEY, STORAGES

DEBUG = env.flag("DEBUG")
HTTPS = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("HTTPS", False)
ALLOWED_HOSTS = ALLOWED_HOSTS or ["localhost", "127.0.0.1", "[::1]"]

if not SECRET_KEY:
    # Made once and kept beside the data, so that sessions outlive a restart.
    _key = DATA_DIR / "secret_key"
    if not _key.exists():
        DATA_DIR.mkdir(parents=True, exist_ok=True)
        _key.touch(mode=0o600)
        _key.write_text(secrets.token_urlsafe(50))
    SECRET_KEY = _key.read_text().strip()

DISPATCH_WINDOW = env.number("DISPATCH_WINDOW", 8)  # one voice on one machine holds about four
STATIC_ROOT = DATA_DIR / "staticfiles"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns of a folder that is not there
# No collectstatic on one machine: files are served from where they lie.
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
