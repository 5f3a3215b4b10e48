"""TorchServe's management verbs, behind a token: models are named store entries, never addresses."""

from __future__ import annotations

import asyncio
import functools
import os
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from inference_worker.errors import SpeechError
from inference_worker.registry import Registry, RegistryRefused, Version
from inference_worker.server import Service, bearer_is

MAX_WORKERS = 64
Handler = Callable[[Request], Awaitable[Response]]


def token_kept(given: str, state_dir: Path | None) -> tuple[str, Path | None]:
    """The management token and where it lies: as given, else kept in (or made for) the state folder.

    Without either a new token is made that nobody knows: the port is then of no use, which is the safe default.
    """
    if given:
        return given, None
    token = secrets.token_urlsafe(32)
    if state_dir is None:
        return token, None
    path = state_dir / "management.token"
    state_dir.mkdir(parents=True, exist_ok=True)
    try:
        with open(path, "x", opener=lambda p, f: os.open(p, f, 0o600), encoding="ascii") as out:
            out.write(token)
    except FileExistsError:
        token = path.read_text(encoding="ascii").strip()
    return token, path


def _refused(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"code": status, "type": kind, "message": message}, status)


def _status(message: str, code: int = 200) -> Response:
    return JSONResponse({"status": message}, code)


def _number(request: Request, name: str, default: int, high: int = MAX_WORKERS) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > high:
        raise RegistryRefused(400, "BadRequestException", f"{name} must be a whole number from 0 to {high}")
    return int(text)


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


class Management:
    """The handlers of the management port."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    async def register(self, request: Request) -> Response:
        """POST /models?url=ENTRY[&model_name=][&initial_workers=][&synchronous=true]"""
        entry = request.query_params.get("url", "")
        if not entry:
            raise RegistryRefused(400, "BadRequestException", "Parameter url is required.")
        name = request.query_params.get("model_name", "")
        if name and not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise RegistryRefused(
                400, "BadRequestException", "model_name holds letters, digits, dots, - and _"
            )
        workers = _number(request, "initial_workers", 0)
        await asyncio.to_thread(self.registry.verify, entry)  # beside the event loop: it can be gigabytes
        version = self.registry.register(name, entry, workers, verified=True)
        label = (
            f'Model "{version.name}" Version: {version.revision} registered with {workers} initial workers'
        )
        if not workers:
            return _status(f"{label}. Use scale workers API to add workers for the model.")
        if not _flag(request, "synchronous"):
            return _status("Processing worker updates...", 202)
        try:
            await version.until_ready(workers, self.registry.settings.start_timeout_s)
        except SpeechError:
            await self.registry.unregister(version.name, version.revision, 1, force=True)
            raise RegistryRefused(500, "InternalServerException", "The model could not be loaded.") from None
        return _status(label)

    async def models(self, request: Request) -> Response:
        """GET /models[?limit=][&next_page_token=]"""
        limit = _number(request, "limit", 100, 10**6) or 100
        start = _number(request, "next_page_token", 0, 10**6)
        names = sorted(self.registry.models)
        page = names[start : start + limit]
        models = []
        for name in page:
            version = self.registry.models[name].default_version()
            models.append({"modelName": name, "modelUrl": version.source or "builtin" if version else ""})
        body: dict[str, Any] = {"models": models}
        if start + limit < len(names):
            body = {"nextPageToken": str(start + limit), **body}
        return JSONResponse(body)

    async def describe(self, request: Request) -> Response:
        """GET /models/{name}[/{version}|/all]"""
        name, wanted = request.path_params["name"], request.path_params.get("version", "")
        model, _, version = self.registry.pick(name, "" if wanted == "all" else wanted)
        versions = list(model.versions.values()) if wanted == "all" else [version]
        return JSONResponse([describe(v, v is model.default_version()) for v in versions])

    async def scale(self, request: Request) -> Response:
        """PUT /models/{name}[/{version}]?min_worker=[&max_worker=][&synchronous=true]"""
        name, wanted = request.path_params["name"], request.path_params.get("version", "")
        workers = _number(request, "min_worker", 1)
        most = _number(request, "max_worker", max(workers, 1))
        if most < workers:
            raise RegistryRefused(400, "BadRequestException", "max_worker cannot be less than min_worker.")
        version = self.registry.scale(name, wanted, workers)
        if not _flag(request, "synchronous"):
            return _status("Processing worker updates...", 202)
        try:
            await version.until_ready(workers, self.registry.settings.start_timeout_s)
        except SpeechError:
            raise RegistryRefused(
                500, "InternalServerException", "The workers could not be started."
            ) from None
        return _status(f"Workers scaled to {workers} for model: {name}")

    async def unregister(self, request: Request) -> Response:
        """DELETE /models/{name}[/{version}]: what waits there is answered first."""
        name, wanted = request.path_params["name"], request.path_params.get("version", "")
        await self.registry.unregister(name, wanted)
        return _status(f'Model "{name}" unregistered')

    async def set_default(self, request: Request) -> Response:
        """PUT /models/{name}/{version}/set-default"""
        name, wanted = request.path_params["name"], request.path_params["version"]
        self.registry.set_default(name, wanted)
        return _status(f'Default version successfully updated for model "{name}" to "{wanted}"')

    async def store(self, request: Request) -> Response:
        """GET /store: names of the entries that can be registered."""
        return JSONResponse({"entries": self.registry.store.names() if self.registry.store else []})


def describe(version: Version, default: bool) -> dict[str, Any]:
    """One version as TorchServe describes it, and what we know beyond that."""
    limits = version.scheduler.limits
    workers = []
    for slot in range(max(version.workers, 0)):
        replica = version.replicas.get(slot)
        started = datetime.fromtimestamp(replica.started if replica else version.started_at, UTC)
        workers.append(
            {
                "id": str(9000 + slot),
                "startTime": started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "status": "READY" if replica else "LOADING" if not version.failure else "UNLOADED",
                "memoryUsage": replica.memory_bytes if replica else 0,
                "pid": replica.pid if replica else 0,
                "gpu": bool(replica and replica.spec.device.startswith("cuda")),
                "device": replica.spec.device if replica else "",
            }
        )
    return {
        "modelName": version.name,
        "modelVersion": version.revision,
        "modelUrl": version.source or "builtin",
        "runtime": "python",
        "engine": version.spec.engine,
        "default": default,
        "ready": version.ready,
        "draining": version.draining,
        "failure": "could not be loaded; see the log" if version.failure else "",
        "minWorkers": version.workers,
        "maxWorkers": version.workers,
        "batchSize": limits.max_items,
        "maxBatchDelay": round(limits.linger_s * 1000),
        "loadedAtStartup": not version.source,
        "measured": version.measured,
        "workers": workers,
        "jobQueueStatus": {
            "pendingRequests": version.waiting(),
            "queuedSeconds": round(version.queue_s(), 3),
            "remainingSeconds": round(max(0.0, limits.max_queue_s - version.queue_s()), 3),
        },
    }


def management_app(service: Service, token: str) -> Starlette:
    """The application of the management port. Every call needs the token."""
    doors = Management(service.registry)

    def door(path: str, handler: Handler, method: str) -> Route:
        @functools.wraps(handler)
        async def inner(request: Request) -> Response:
            if not bearer_is(request, token):
                return _refused(401, "InvalidKeyException", "Token Authorization failed.")
            try:
                return await handler(request)
            except RegistryRefused as exc:
                return _refused(exc.status, exc.kind, exc.message)

        return Route(path, inner, methods=[method])

    return Starlette(
        routes=[
            door("/models", doors.register, "POST"),
            door("/models", doors.models, "GET"),
            door("/models/{name}", doors.describe, "GET"),
            door("/models/{name}", doors.scale, "PUT"),
            door("/models/{name}", doors.unregister, "DELETE"),
            door("/models/{name}/{version}", doors.describe, "GET"),
            door("/models/{name}/{version}", doors.scale, "PUT"),
            door("/models/{name}/{version}", doors.unregister, "DELETE"),
            door("/models/{name}/{version}/set-default", doors.set_default, "PUT"),
            door("/store", doors.store, "GET"),
        ]
    )
