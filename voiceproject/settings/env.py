"""Typed readers of the environment: the only place where settings look at it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import environ

ROOT = Path(__file__).resolve().parents[2]

env = environ.Env()
# A `.env` beside manage.py is read if it is there; what the environment says already wins. Tests must not depend on it.
if os.environ.get("DJANGO_SETTINGS_MODULE") != "voiceproject.settings.test":
    environ.Env.read_env(ROOT / ".env", overwrite=False)


def text(name: str, default: str = "") -> str:
    """A string; surrounding white space is taken off."""
    return env.str(name, default=default).strip()


def number(name: str, default: int) -> int:
    """An integer. Raises ImproperlyConfigured or ValueError for anything else."""
    return env.int(name, default=default)


def flag(name: str, default: bool = False) -> bool:
    """true/false, yes/no, on/off, 1/0."""
    return env.bool(name, default=default)


def items(name: str, default: str = "") -> list[str]:
    """A comma separated list; empty items are dropped."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def path(name: str, default: Path) -> Path:
    """A folder or file; relative ones are taken from the project's root."""
    value = text(name)
    return (ROOT / value).resolve() if value else default


def pools(name: str, default: str = "") -> dict[str, list[str]]:
    """Inference pools: `cpu=http://a:8080|http://b:8080;gpu=http://c:8080` as {pool: [addresses]}."""
    found: dict[str, list[str]] = {}
    for part in text(name, default).split(";"):
        pool, _, addresses = part.partition("=")
        if pool.strip():
            found[pool.strip()] = [a.strip().rstrip("/") for a in addresses.split("|") if a.strip()]
    return found


def database(name: str, default: str) -> dict[str, Any]:
    """A DATABASE_URL as Django's dictionary; SQLite in WAL with IMMEDIATE transactions, PostgreSQL with health checks."""
    config: dict[str, Any] = dict(env.db(name, default=default))
    if config["ENGINE"].endswith("sqlite3"):
        config["OPTIONS"] = {
            # A worker thread that reads first and writes later would else meet "database is locked".
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,  # seconds
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
        }
    else:
        config.setdefault("CONN_MAX_AGE", 60)  # seconds
        config["CONN_HEALTH_CHECKS"] = True
    return config
