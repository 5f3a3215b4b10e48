"""The commands of compose.yaml, run for real: every role starts on the real services, stays up, and ends when asked.

This is as far as a machine without a container engine gets: same commands, same settings, other addresses.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.servers import port_free

pytestmark = [pytest.mark.services, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ROLES = ("inference", "web", "synthesis", "results", "production", "upkeep")


class Box:
    """Runs services of compose.yaml as processes, with addresses of this machine in place of host names."""

    def __init__(self, folder: Path, addresses: dict[str, str]) -> None:
        self.folder = folder
        self.services: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())[
            "services"
        ]
        self.web, self.inference = port_free(), port_free()
        self.given = {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "ALLOWED_HOSTS": "127.0.0.1",
            "HTTPS": "false",
            "POSTGRES_PASSWORD": "p",
            "RABBITMQ_PASSWORD": "p",
            "INFERENCE_POOLS": f"cpu=http://127.0.0.1:{self.inference}",
            "S3_PUBLIC_ENDPOINT_URL": addresses["S3_ENDPOINT_URL"],
        } | addresses
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def environment(self, name: str) -> dict[str, str]:
        """The service's settings: what compose would fill in, then this machine's addresses for what it names."""
        named = self.services[name].get("environment", {})
        filled = {
            key: re.sub(r"\$\{(\w+)(:?[-?][^}]*)?\}", self._fill, str(value)) for key, value in named.items()
        }
        local = {key: value for key, value in self.given.items() if filled.get(key)}
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        own = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "STUDIO_DATA_DIR": str(self.folder)}
        worker = {"INFERENCE_MANAGEMENT_PORT": "0", "INFERENCE_METRICS_PORT": "0", "INFERENCE_ENGINE": "fake"}
        return inherited | own | (worker if name.startswith("inference") else filled | local)

    def _fill(self, match: re.Match[str]) -> str:
        name, default = match[1], match[2] or ""
        return self.given.get(name) or (default[2:] if default.startswith(":-") else "")

    def command(self, name: str) -> list[str]:
        """The service's command, or its image's, for this machine."""
        words = self.services[name].get("command")
        if words is None:
            text = (ROOT / "deploy" / Path(self.services[name]["build"]["dockerfile"]).name).read_text()
            words = yaml.safe_load(re.findall(r"^CMD (\[.*\])$", text, re.M)[-1])
        ports = {"8000": str(self.web), "8080": str(self.inference), "0.0.0.0": "127.0.0.1"}
        return [ports.get(word, word) for word in words]

    def run(self, name: str) -> subprocess.CompletedProcess[bytes]:
        """Run a one-shot to its end."""
        env = self.environment(name)
        env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
        return subprocess.run(self.command(name), cwd=ROOT, env=env, capture_output=True, timeout=180)

    def start(self, name: str) -> None:
        """Start a role in a group of its own; its words go to a file."""
        env = self.environment(name)
        env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
        words = self.command(name)
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                [str(BIN / words[0]), *words[1:]],
                cwd=ROOT,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=3) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def wait_for(url: str, box: Box, name: str, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while status(url) != 200:
        assert box.processes[name].poll() is None, f"{name} ended:\n{box.log(name)}"
        assert time.monotonic() < deadline, f"{url} does not answer 200:\n{box.log(name)}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def box(tmp_path_factory, postgres_server, rabbitmq_url, redis_url, s3_server) -> Iterator[Box]:
    addresses = {
        "DATABASE_URL": postgres_server.database_create("compose_box"),
        "BROKER_URL": rabbitmq_url,
        "REDIS_URL": redis_url,
        "S3_ENDPOINT_URL": s3_server.endpoint,
        "S3_ACCESS_KEY": s3_server.key,
        "S3_SECRET_KEY": s3_server.secret,
        "S3_BUCKET": "compose-box",
    }
    box = Box(tmp_path_factory.mktemp("box"), addresses)
    try:
        yield box
    finally:
        box.kill()
        postgres_server.database_drop("compose_box")


def test_one_shot_migrates_and_makes_the_bucket(box, s3_server):
    done = box.run("migrate")
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert b"Bucket compose-box created." in done.stdout
    s3_server.client().head_bucket(Bucket="compose-box")
    assert box.run("migrate").returncode == 0, "the one-shot runs at every start of the box"


def test_every_role_starts_stays_and_ends(box):
    for name in ROLES:
        box.start(name)
    wait_for(f"http://127.0.0.1:{box.inference}/ping", box, "inference")
    wait_for(f"http://127.0.0.1:{box.web}/healthz", box, "web")
    wait_for(f"http://127.0.0.1:{box.web}/readyz", box, "web")
    time.sleep(3)  # a role that cannot reach its services gives up early
    for name in ROLES:
        assert box.processes[name].poll() is None, f"{name} ended:\n{box.log(name)}"
        assert "Traceback" not in box.log(name), f"{name}:\n{box.log(name)}"
    assert not box.environment("synthesis")["DATABASE_URL"], "the synthesis role gets no database"
    for name in ROLES:
        os.kill(box.processes[name].pid, signal.SIGTERM)
    for name in ROLES:
        try:
            box.processes[name].wait(30)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{name} does not end on SIGTERM:\n{box.log(name)}")
