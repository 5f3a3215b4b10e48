"""Settings of the studio, safe for production as they stand; dev, test and prod only change what differs.

Every value a person may set is read through `env` and explained in `.env.example`.
"""

from __future__ import annotations

from botocore.config import Config
from django.utils.translation import gettext_lazy as _

from . import env

ROOT = env.ROOT
DATA_DIR = env.path("STUDIO_DATA_DIR", ROOT / "var")

SECRET_KEY = env.text("SECRET_KEY")
DEBUG = False
ALLOWED_HOSTS = env.items("ALLOWED_HOSTS")
CSRF_TRUSTED_ORIGINS = env.items("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_vite",
    "accounts",
    "projects",
    "synthesis",
    "voiceproject",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.TimeZoneMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "voiceproject.urls"
ASGI_APPLICATION = "voiceproject.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- state -----------------------------------------------------------------------------------------------------------
DATABASES = {"default": env.database("DATABASE_URL", f"sqlite:///{DATA_DIR / 'studio.sqlite3'}")}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- the conveyor: "" = inside this process; amqp://… = RabbitMQ ---------------------------------------------------
BROKER_URL = env.text("BROKER_URL")

# --- live status -----------------------------------------------------------------------------------------------------
REDIS_URL = env.text("REDIS_URL")
CHANNEL_LAYERS: dict[str, dict] = {
    "default": (
        {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": [REDIS_URL], "capacity": 1500, "expiry": 30},
        }
        if REDIS_URL
        else {"BACKEND": "voiceproject.embedded.EmbeddedChannelLayer", "CONFIG": {"capacity": 5000}}
    )
}

# --- objects: audio, manuscripts, exports --------------------------------------------------------------------------
S3_BUCKET = env.text("S3_BUCKET")
S3_ENDPOINT_URL = env.text("S3_ENDPOINT_URL")
S3_PUBLIC_ENDPOINT_URL = env.text("S3_PUBLIC_ENDPOINT_URL")  # what browsers can reach, where it differs
S3_ACCESS_KEY = env.text("S3_ACCESS_KEY")
S3_SECRET_KEY = env.text("S3_SECRET_KEY")
S3_REGION = env.text("S3_REGION", "us-east-1")
S3_LINK_SECONDS = env.number("S3_LINK_SECONDS", 3600)
OBJECTS_DIR = DATA_DIR / "objects"
STORAGES: dict[str, dict] = {
    "default": (
        {
            "BACKEND": "storages.backends.s3.S3Storage",
            "OPTIONS": {
                "bucket_name": S3_BUCKET,
                "endpoint_url": S3_ENDPOINT_URL or None,
                "access_key": S3_ACCESS_KEY or None,
                "secret_key": S3_SECRET_KEY or None,
                "region_name": S3_REGION,
                "default_acl": None,
                "querystring_expire": S3_LINK_SECONDS,
                "max_memory_size": 5_000_000,  # bytes of an opened object in memory; beyond, a temporary file
                "file_overwrite": True,  # keys carry the content's own hash: the same key is the same bytes
                # Path-style addresses, and checksums only where required: several S3-compatible stores refuse the
                # checksums that boto3 >= 1.36 sends by default.
                "client_config": Config(
                    signature_version="s3v4",
                    s3={"addressing_style": "path"},
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    connect_timeout=5,
                    read_timeout=30,
                    retries={"max_attempts": 4, "mode": "standard"},
                ),
            },
        }
        if S3_BUCKET
        else {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": OBJECTS_DIR}}
    ),
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- inference ---------------------------------------------------------------------------------------------------------
INFERENCE_POOLS = env.pools("INFERENCE_POOLS")
INFERENCE_ENGINE = env.text("INFERENCE_ENGINE", "kokoro")  # of the embedded worker
INFERENCE_TIMEOUT_S = env.number("INFERENCE_TIMEOUT_S", 240)
DEFAULT_VOICES = env.items("DEFAULT_VOICES", "af_heart,bf_emma")  # the first that speaks a book's own variant
PREVIEW_LEASE_S = env.number("PREVIEW_LEASE_S", 60)
BULK_LEASE_S = env.number("BULK_LEASE_S", 600)
PRODUCTION_LEASE_S = env.number("PRODUCTION_LEASE_S", 120)  # renewed while the worker lives
DISPATCH_WINDOW = env.number(
    "DISPATCH_WINDOW", 16
)  # orders in flight per pool; about twice what the workers hold
MAX_ATTEMPTS = env.number("MAX_ATTEMPTS", 3)
BREAKER_PROBE_S = env.number(
    "BREAKER_PROBE_S", 30
)  # until what failed again and again is tried with one order
GARBAGE_GRACE_S = env.number("GARBAGE_GRACE_S", 86_400)  # from unreferenced to deleted; longer than any lease
COLLECT_PERIOD_S = env.number("COLLECT_PERIOD_S", 3_600)  # how often storage is looked through
JOB_EVENT_DAYS = env.number("JOB_EVENT_DAYS", 30)  # how long the history of finished work is kept
UPKEEP_PERIOD_S = env.number("UPKEEP_PERIOD_S", 5)
SYNTHESIS_THREADS = env.number("SYNTHESIS_THREADS", 4)  # embedded only; beyond it dramatiq's --threads says

# --- uploads -----------------------------------------------------------------------------------------------------------
UPLOAD_LIMIT_BYTES = env.number("UPLOAD_LIMIT_MB", 200) * 1_000_000
FILE_UPLOAD_MAX_MEMORY_SIZE = 1_000_000  # bytes; larger uploads stream to a temporary file
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000

# --- people ------------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "projects:library"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ko", _("Korean")), ("ja", _("Japanese"))]
LOCALE_PATHS = [ROOT / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

# --- static ------------------------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "staticfiles"
STATICFILES_DIRS = [ROOT / "static" / "dist"] if (ROOT / "static" / "dist").is_dir() else []
DJANGO_VITE = {
    "default": {
        "dev_mode": False,
        "manifest_path": ROOT / "static" / "dist" / "manifest.json",
    }
}

# --- safety ------------------------------------------------------------------------------------------------------------
HTTPS = env.flag("HTTPS", True)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = False  # the proxy's business; it sets X-Forwarded-Proto
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.flag("TRUST_PROXY") else None
SECURE_HSTS_SECONDS = env.number("HSTS_SECONDS", 0)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

# --- REST --------------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.api.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "voiceproject.api.CursorPagination",
    "PAGE_SIZE": 50,
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "voiceproject.api.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Voice Project API",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "COMPONENT_SPLIT_PATCH": False,  # input serializers of PATCH say themselves what is required
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "voiceproject.api.schema_errors",
    ],
    "ENUM_NAME_OVERRIDES": {
        "SegmentState": "projects.models.Segment.State",
        "WorkState": "projects.work.WorkState",
        "ConversionState": "synthesis.models.Conversion.State",
        "Lane": "synthesis.models.Conversion.Lane",
        "Scope": "synthesis.services.conversions.Scope",
        "Only": "synthesis.services.conversions.Only",
        "DocumentKind": "projects.models.Document.Kind",
        "VoiceKind": "projects.models.Voice.Kind",
        "Narration": "projects.models.Project.Narration",
        "TakeOrigin": "projects.models.Take.Origin",
        "ExportPreset": "synthesis.models.Export.Preset",
        "Role": "accounts.roles.Role",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# --- seen from outside -------------------------------------------------------------------------------------------------
LOG_LEVEL = env.text("LOG_LEVEL", "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname).1s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
    "loggers": {
        "pika": {"level": "WARNING"},
        "dramatiq": {"level": "WARNING"},
        "dramatiq.broker.StubBroker": {
            "level": "ERROR"
        },  # several workers on one in-process broker are meant
        "httpx": {"level": "WARNING"},
        "botocore": {"level": "WARNING"},
    },
}
