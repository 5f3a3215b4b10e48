"""The whole studio as processes, for tests that use it as a person does: embedded, or every role apart on real services."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import httpx

from tests.servers import port_free

ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "a lamp in the window"
START_S = 90.0


class Role:
    """One process of the studio, in a session of its own so that what it starts ends with it."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], folder: Path) -> None:
        self.name, self.command, self.env = name, command, env
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self.process is not None, f"{self.name} was never started"
        return self.process.pid

    def kill_alone(self) -> None:
        """kill -9 of this process only: its children must notice by themselves."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.process is not None
        self.process.wait(timeout=10)

    def kill(self) -> None:
        """kill -9, its children too."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=10)

    def stop(self, seconds: float = 15) -> int | None:
        """Ask it to end; kill it if it does not. Its exit code."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else None
        self.process.send_signal(signal.SIGINT if self.name == "studio" else signal.SIGTERM)
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


class House:
    """Roles that make one studio; `url`, `user` and `password` let a person in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.roles: dict[str, Role] = {}
        self.port = port_free()
        self.url = f"http://127.0.0.1:{self.port}"
        self.user, self.password = "admin", PASSWORD
        self.env: dict[str, str] = {}

    def role(self, name: str, *command: str, **env: str) -> Role:
        """Add and start a role."""
        role = Role(name, [sys.executable, *command], {**self.env, **env}, self.folder)
        self.roles[name] = role
        role.start()
        return role

    def wait(self) -> None:
        """Until the pages answer."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.2)
            self.check()
        raise AssertionError(f"the studio did not start\n{self.logs()}")

    def check(self) -> None:
        """Fail if a role ended by itself."""
        for role in self.roles.values():
            if role.process is not None and role.process.poll() not in (None, -signal.SIGKILL):
                raise AssertionError(
                    f"{role.name} ended with {role.process.returncode}\n{role.text()[-4000:]}"
                )

    def logs(self) -> str:
        return "\n".join(f"--- {role.name}\n{role.text()[-2500:]}" for role in self.roles.values())

    def manage(self, *arguments: str, **env: str) -> str:
        """Run a management command in this house."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments], cwd=ROOT, env={**self.env, **env}, capture_output=True,
            text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stop(self) -> None:
        for role in reversed(self.roles.values()):
            role.stop()


def embedded_house(folder: Path, *, engine: str = "fake", options: dict[str, str] | None = None) -> House:
    """Everything in one process on SQLite and files, as `make run` starts it."""
    house = House(folder)
    inherited = {
        k: v
        for k, v in os.environ.items()
        if k not in ("BROKER_URL", "DATABASE_URL", "REDIS_URL", "S3_BUCKET")
    }
    house.env = {
        **inherited,
        "DJANGO_SETTINGS_MODULE": "voiceproject.settings.dev",
        "STUDIO_DATA_DIR": str(folder / "data"),
        "INFERENCE_ENGINE": engine,
        "INFERENCE_ENGINE_OPTIONS": json.dumps(options or {}),
        "PYTHONUNBUFFERED": "1",
    }
    house.role("studio", "manage.py", "studio", "--first-start", "--port", str(house.port))
    house.wait()
    found = re.search(r"Password:\s+(\S+)", house.roles["studio"].text())
    assert found, house.logs()
    house.password = found.group(1)
    return house


def real_house(folder: Path, servers: dict[str, str], *, options: tuple[str, ...] = ()) -> House:
    """Every role a process of its own on PostgreSQL, RabbitMQ, Redis and S3."""
    house = House(folder)
    worker_port = port_free()
    house.env = {
        **os.environ,
        **servers,
        "DJANGO_SETTINGS_MODULE": "voiceproject.settings.dev",
        "STUDIO_DATA_DIR": str(folder / "data"),
        "INFERENCE_POOLS": f"cpu=http://127.0.0.1:{worker_port}",
        "UPKEEP_PERIOD_S": "1",
        "BULK_LEASE_S": "6",  # a killed worker's sentences are handed out again soon
        "PREVIEW_LEASE_S": "6",
        "PYTHONUNBUFFERED": "1",
        "dramatiq_queue_prefetch": "1",
    }
    house.manage("migrate", "--noinput")
    house.manage(
        "createsuperuser", "--noinput", "--username", house.user, "--email", "admin@example.org",
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
    )  # fmt: skip
    house.role(
        "inference", "-m", "inference_worker", "serve", "--engine", "fake", "--host", "127.0.0.1", "--port",
        str(worker_port), "--management-port", str(port_free()), "--metrics-port", str(port_free()),
        *(word for option in options for word in ("--option", option)),
    )  # fmt: skip
    house.role(
        "web",
        "-m",
        "uvicorn",
        "voiceproject.asgi:application",
        "--port",
        str(house.port),
        "--log-level",
        "warning",
    )
    dramatiq = ("-m", "dramatiq", "--processes", "1")
    house.role(
        "synthesis", *dramatiq, "--threads", "4", "synthesis.speaking.worker", "-Q", "preview", "synthesis"
    )
    house.role("results", *dramatiq, "--threads", "2", "synthesis.actors.worker", "-Q", "results")
    house.role(
        "production", *dramatiq, "--threads", "1", "synthesis.actors.worker", "-Q", "imports", "exports"
    )
    house.role("upkeep", "manage.py", "upkeep")
    house.wait()
    house.manage("voices", "--wait", "60")
    return house


CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""


def epub_make(
    path: Path, title: str, chapters: list[tuple[str, list[str]]], *, author: str = "Mara Quill"
) -> Path:
    """A small EPUB 3 with a contents page; chapters are (title, paragraphs)."""
    head = '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"><head><title>x</title></head><body>'
    names = [f"c{n}.xhtml" for n in range(1, len(chapters) + 1)]
    items = "".join(
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(names)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(names)))
    entries = "".join(
        f'<li><a href="{name}">{heading}</a></li>' for name, (heading, _) in zip(names, chapters, strict=True)
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr(
            "OEBPS/book.opf",
            '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:x:1</dc:identifier>'
            f"<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator><dc:language>en</dc:language></metadata>"
            f'<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>{items}'
            f"</manifest><spine>{spine}</spine></package>",
        )
        archive.writestr(
            "OEBPS/nav.xhtml", f'{head}<nav epub:type="toc"><ol>{entries}</ol></nav></body></html>'
        )
        for name, (heading, paragraphs) in zip(names, chapters, strict=True):
            text = "".join(f"<p>{p}</p>" for p in paragraphs)
            archive.writestr(f"OEBPS/{name}", f"{head}<h1>{heading}</h1>{text}</body></html>")
    return path
