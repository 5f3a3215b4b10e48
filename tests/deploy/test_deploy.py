"""What an operator relies on: every setting explained, images pinned, nobody root, commands that exist.

The files are read as text and YAML: no machine that runs the suite needs a container engine.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CONTAINERFILES = sorted(DEPLOY.glob("*.Containerfile"))
READERS = {"text", "number", "flag", "items", "path", "pools", "database"}
OURS = ("migrate", "web", "synthesis", "results", "production", "upkeep", "inference", "inference-gpu")
OUTSIDE = {"CI", "PATH", "HOME", "CHROMIUM", "DJANGO_SETTINGS_MODULE"}


def settings_read() -> dict[str, str]:
    """Names of the environment variables that the code reads, with the file that reads them."""
    found: dict[str, str] = {}
    folders = ("voiceproject", "accounts", "projects", "synthesis", "inference_worker")
    for file in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                owner = ast.unparse(node.func.value)
                reads = owner == "env" and node.func.attr in READERS
                reads |= owner in ("os.environ", "environ") and node.func.attr in ("get", "setdefault")
                reads |= owner == "os" and node.func.attr == "getenv"
                name = node.args[0] if reads else None
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("env", "getenv")
            ):
                name = node.args[0] if node.args else None
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("os.environ", "environ"):
                name = node.slice
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.setdefault(name.value, str(file.relative_to(ROOT)))
    return found


def settings_explained() -> dict[str, str]:
    """Names in .env.example, each with the comment above it."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines():
        setting = re.match(r"(?:# )?([A-Z][A-Z0-9_]+)=", line)
        if setting:
            found[setting[1]] = " ".join(comment)
        elif line.startswith("# "):
            comment.append(line[2:])  # one comment may explain the group below it
        else:
            comment = []
    return found


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def test_every_setting_read_is_explained():
    explained = settings_explained()
    missing = {name: file for name, file in settings_read().items() if name not in explained.keys() | OUTSIDE}
    assert not missing, f"not in .env.example: {missing}"
    silent = [name for name, comment in explained.items() if len(comment) < 20]
    assert not silent, f"no explanation in .env.example: {silent}"


def test_every_setting_explained_is_read():
    text = (DEPLOY / "compose.yaml").read_text() + (ROOT / "bootstrap.py").read_text()
    known = settings_read().keys() | set(re.findall(r"[A-Z][A-Z0-9_]+", text)) | OUTSIDE
    assert not settings_explained().keys() - known


def test_compose_passes_only_known_settings():
    explained = settings_explained()
    for name in OURS:
        given = compose()["services"][name].get("environment", {})
        assert set(given) <= explained.keys(), name
    asked = set(re.findall(r"\$\{([A-Z0-9_]+)", (DEPLOY / "compose.yaml").read_text()))
    assert asked <= explained.keys()


def test_example_holds_no_secret():
    values = dict(
        re.findall(
            r"^#? ?([A-Z0-9_]*(?:SECRET|PASSWORD|TOKEN|SECRET_KEY))=(.*)$",
            (ROOT / ".env.example").read_text(),
            re.M,
        )
    )
    assert values, "the pattern found nothing"
    assert not {name: value for name, value in values.items() if value}


def image_pinned(image: str) -> bool:
    """A tag with at least two numbers, or a digest."""
    return "@sha256:" in image or bool(re.search(r":v?\d+\.\d+", image))


def test_pinning_is_recognised():
    assert image_pinned("postgres:17.6-bookworm")
    assert not image_pinned("postgres:17")
    assert not image_pinned("postgres:latest")
    assert not image_pinned("postgres")


@pytest.mark.parametrize("name", sorted(compose()["services"]))
def test_service(name: str):
    service = compose()["services"][name]
    assert image_pinned(service["image"]), service["image"]
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["logging"]["options"]["max-size"]
    assert not service.get("privileged")
    assert service.get("network_mode") != "host"
    if name in OURS:
        assert not re.match(r"(0|root)(:|$)", service["user"])
        assert service["cap_drop"] == ["ALL"]
        assert (DEPLOY / Path(service["build"]["dockerfile"]).name).exists()
    elif name != "proxy":
        assert service["healthcheck"]["test"]
    for port in service.get("ports", []):
        assert name == "proxy" or ":-127.0.0.1:" in port, f"{name} listens to the world by default: {port}"


def test_state_lives_in_volumes():
    document = compose()
    for name in ("postgres", "rabbitmq", "s3"):
        volumes = {volume.split(":")[0] for volume in document["services"][name]["volumes"]}
        assert volumes & document["volumes"].keys(), name


def test_synthesis_role_has_no_database():
    assert compose()["services"]["synthesis"]["environment"]["DATABASE_URL"] == ""
    assert "postgres" not in compose()["services"]["synthesis"]["depends_on"]


@pytest.mark.parametrize("role", ["synthesis", "results", "production"])
def test_worker_command_names_a_module_that_exists(role: str):
    words = compose()["services"][role]["command"]
    assert words[0] == "dramatiq"
    assert (ROOT / (words[1].replace(".", "/") + ".py")).exists(), words[1]


def test_all_queues_have_a_worker():
    queues: set[str] = set()
    for service in compose()["services"].values():
        words = service.get("command") or []
        if "-Q" in words:
            after = words[words.index("-Q") + 1 :]
            queues |= set(
                after[: next((i for i, word in enumerate(after) if word.startswith("-")), len(after))]
            )
    assert queues >= {"preview", "synthesis", "results", "imports", "exports"}


def test_rabbitmq_settings():
    text = (DEPLOY / "rabbitmq.conf").read_text()
    settings = dict(re.findall(r"^([a-z_.]+) *= *(\S+)", text, re.M))
    assert int(settings["consumer_timeout"]) >= 86_400_000
    assert settings["prometheus.tcp.ip"] == "127.0.0.1"


@pytest.mark.parametrize("path", CONTAINERFILES, ids=lambda path: path.name)
def test_containerfile(path: Path):
    text = path.read_text(encoding="utf-8")
    lines = [line.split() for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]
    stages = {line[3] for line in lines if line[0] == "FROM" and len(line) > 3}
    images = [line[1] for line in lines if line[0] == "FROM"]
    assert len(images) >= 3, "one stage to build the assets, one for the packages, one to run"
    assert all(image_pinned(image) for image in images if image not in stages), images
    final = lines[max(i for i, line in enumerate(lines) if line[0] == "FROM") :]
    users = [line[1] for line in final if line[0] == "USER"]
    assert users, "runs as root"
    assert not re.match(r"(0|root)(:|$)", users[-1])
    assert any(line[0] == "HEALTHCHECK" for line in final)
    for line in lines:
        if line[0] == "COPY":
            sources = [word for word in line[1:-1] if not word.startswith("--")]
            if not line[1].startswith("--from"):
                for source in sources:
                    assert (ROOT / source).exists(), f"{path.name} copies {source}"


def test_image_users_are_those_of_compose():
    for name, file in (("web", "studio"), ("inference", "inference")):
        user = compose()["services"][name]["user"]
        assert f"USER {user}\n" in (DEPLOY / f"{file}.Containerfile").read_text()


def constraints() -> dict[str, str]:
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!]+", line), line
            name, version = line.split("==")
            pins[_plain(name)] = version
    return pins


def test_constraints_pin_what_the_dependencies_need():
    """Everything that our requirements pulled into this environment is pinned, down to the last one."""
    pins = constraints()
    text = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [*text["dependencies"], *(d for extra in text["optional-dependencies"].values() for d in extra)]
    seen: set[tuple[str, str]] = set()
    unpinned: dict[str, str] = {}
    while waiting:
        wish = Requirement(waiting.pop())
        for extra in ("", *wish.extras):
            key = (_plain(wish.name), extra)
            if key in seen or key[0] == "torch":
                continue
            seen.add(key)
            try:
                needs = importlib.metadata.requires(wish.name) or []
            except importlib.metadata.PackageNotFoundError:
                continue
            if key[0] not in pins:
                unpinned[key[0]] = importlib.metadata.version(wish.name)
            waiting += [n for n in needs if not (m := Requirement(n).marker) or m.evaluate({"extra": extra})]
    unpinned = {
        name: version for name, version in unpinned.items() if name not in ("setuptools", "pip", "wheel")
    }
    assert not unpinned, f"add to constraints.txt: {unpinned}"


def test_constraints_pin_the_dependencies():
    pins = constraints()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(d for extra in project["optional-dependencies"].values() for d in extra),
    ]
    names = {_plain(re.match(r"[A-Za-z0-9_.-]+", wish)[0]) for wish in wanted}
    assert names - pins.keys() <= {"torch"}, "in pyproject.toml, but not in constraints.txt"
    assert "torch" not in pins, "pinned in pyproject.toml: builds differ by machine"
    assert int(pins["redis"].split(".")[0]) < 8


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_an_object_opened_from_the_bucket_does_not_fill_memory():
    """django-storages keeps what it opens in memory whole unless told otherwise: an audiobook is half a gigabyte."""
    code = "from voiceproject.settings import base; print(base.STORAGES['default']['OPTIONS']['max_memory_size'])"
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "S3_BUCKET": "studio"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert 0 < int(told.stdout) <= 20_000_000
