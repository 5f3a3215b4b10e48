"""A real server with real child processes, in the test's own event loop."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from inference_worker.config import ServerConfig
from inference_worker.management import management_app
from inference_worker.run import _server, build, start_models
from inference_worker.server import Service, metrics_app, speech_app

TOKEN = "test-token"
_PORTS = iter(range(21_000 + os.getpid() % 4_000, 32_000))


def free_socket() -> socket.socket:
    """A bound loopback socket below the ephemeral range."""
    for port in _PORTS:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            sock.close()
            continue
        return sock
    raise RuntimeError("no free port")


class Running:
    """A server under test: clients for its three ports and the service behind them."""

    def __init__(self, service: Service, urls: list[str]) -> None:
        self.service = service
        self.url, self.management_url, self.metrics_url = urls
        limits = httpx.Limits(max_connections=None)
        self.http = httpx.AsyncClient(base_url=self.url, timeout=60, limits=limits)
        self.admin = httpx.AsyncClient(
            base_url=self.management_url, timeout=60, headers={"Authorization": f"Bearer {TOKEN}"}
        )

    async def say(self, text: str, **extra: Any) -> httpx.Response:
        """One request for a WAV; `headers` and JSON fields may be given."""
        headers = extra.pop("headers", None)
        body = {"input": text, "response_format": "wav", **extra}
        return await self.http.post("/v1/audio/speech", json=body, headers=headers)

    async def ready(self, timeout_s: float = 20) -> None:
        async with asyncio.timeout(timeout_s):
            while not self.service.registry.ready:
                await asyncio.sleep(0.01)


Start = Callable[..., contextlib.AbstractAsyncContextManager[Running]]


@contextlib.asynccontextmanager
async def running(wait: bool = True, **settings: Any) -> AsyncIterator[Running]:
    defaults: dict[str, Any] = {"engine": "fake", "warmup_budget_s": 0.5, "threads": 1}
    config = ServerConfig(**{**defaults, **settings})
    service = build(config)
    apps = [speech_app(service), management_app(service, TOKEN), metrics_app(service)]
    sockets = [free_socket() for _ in apps]
    servers = [_server(app) for app in apps]
    tasks = [asyncio.create_task(s.serve(sockets=[k])) for s, k in zip(servers, sockets, strict=True)]
    start_models(service, config)
    server = Running(service, [f"http://127.0.0.1:{k.getsockname()[1]}" for k in sockets])
    try:
        if wait and config.engine != "none":
            await server.ready()
        yield server
    finally:
        await service.registry.close()
        await server.http.aclose()
        await server.admin.aclose()
        for s in servers:
            s.should_exit = True
        await asyncio.gather(*tasks)


@pytest.fixture
def serve() -> Start:
    """`async with serve(engine="fake", options={…}) as server:`"""
    return running


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    """A port that somebody else listens on."""
    sock = free_socket()
    sock.listen()
    yield sock
    sock.close()


@pytest.fixture
def free_port() -> int:
    """A port nobody listens on, most likely."""
    sock = free_socket()
    port = sock.getsockname()[1]
    sock.close()
    return port


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    """An empty model store."""
    folder = tmp_path / "store"
    folder.mkdir()
    return folder
