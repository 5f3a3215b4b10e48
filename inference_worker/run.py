"""The server process from start to end: ports, signals, drain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette

from inference_worker.config import ServerConfig
from inference_worker.management import management_app, token_kept
from inference_worker.metrics import Metrics
from inference_worker.registry import PoolSettings, Registry, RegistryRefused
from inference_worker.replica import ReplicaSpec
from inference_worker.scheduler import Limits
from inference_worker.server import Service, metrics_app, speech_app
from inference_worker.store import Store

log = logging.getLogger("inference_worker")


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: one of ours serves three ports."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


def _server(app: Starlette) -> _Server:
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
        server_header=False,
    )
    return _Server(config)


def _event(**fields: object) -> None:
    """One JSON line on standard output, for the process that started us."""
    with contextlib.suppress(OSError, ValueError):
        print(json.dumps(fields), flush=True)


def run(config: ServerConfig) -> int:
    """Serve until told to stop; the exit status (2 = a port is taken)."""
    logging.basicConfig(
        level=config.log_level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    ports = [(config.host, config.port)]
    if config.management_port:
        ports.append((config.management_host, config.management_port))
    if config.metrics_port:
        ports.append((config.metrics_host, config.metrics_port))
    sockets = []
    for host, port in ports:
        try:
            sockets.append(_socket(host, port))
        except OSError as exc:
            log.error("cannot listen on %s:%s: %s", host, port, exc.strerror)
            return 2
    try:
        asyncio.run(_main(config, sockets))
    except KeyboardInterrupt:
        return 130
    return 0


def build(config: ServerConfig) -> Service:
    """Registry and service as configured; nothing is started yet."""
    metrics = Metrics()
    settings = PoolSettings(
        devices=config.devices,
        threads=config.replica_threads(),
        start_timeout_s=config.start_timeout_s,
        watchdog_s=config.watchdog_s,
        warmup_budget_s=config.warmup_budget_s,
        limits=Limits(max_queue_s=config.max_queue_s, bulk_batch_s=config.bulk_batch_s),
        max_batch=config.max_batch,
    )
    store = Store(config.model_store) if config.model_store else None
    state = config.state_dir / "models.json" if config.state_dir else None
    registry = Registry(settings, metrics, store, state)
    registry.aliases = dict(config.aliases)
    return Service(registry, metrics, config.api_key)


def start_models(service: Service, config: ServerConfig) -> None:
    """Begin to load what the state file, the command line and --load name."""
    registry = service.registry
    registry.restore()
    for name, entry in config.load:
        try:
            registry.register(name, entry, config.replicas())
        except RegistryRefused as exc:
            if exc.status != 409:
                raise SystemExit(f"{name}: {exc.message}") from None
    if config.engine != "none":
        spec = ReplicaSpec(config.engine, options=dict(config.options))
        registry.start(config.name or config.engine, spec, config.replicas())


async def _main(config: ServerConfig, sockets: list[socket.socket]) -> None:
    loop = asyncio.get_running_loop()
    service = build(config)
    token, path = token_kept(config.management_token, config.state_dir)
    apps = [speech_app(service)]
    if config.management_port:
        apps.append(management_app(service, token))
        where = (
            f"lies in {path}"
            if path
            else "comes from INFERENCE_MANAGEMENT_TOKEN (none set: the port answers 401)"
        )
        log.info("management token %s", where)
    if config.metrics_port:
        apps.append(metrics_app(service))
    servers = [_server(app) for app in apps]

    stop = asyncio.Event()
    now = asyncio.Event()

    def ask(gently: bool) -> None:
        if stop.is_set() or not gently:
            now.set()
        stop.set()

    loop.add_signal_handler(signal.SIGTERM, ask, True)
    loop.add_signal_handler(signal.SIGINT, ask, False)
    if config.exit_with_stdin:
        _watch_stdin(loop, ask)

    tasks = [asyncio.create_task(s.serve(sockets=[sock])) for s, sock in zip(servers, sockets, strict=True)]
    start_models(service, config)
    _event(event="listening", host=config.host, port=sockets[0].getsockname()[1])
    announce = asyncio.create_task(_announce(service))
    ended = asyncio.create_task(stop.wait())
    await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)

    service.draining = True
    if not now.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(now.wait(), config.drain_grace_s)
    service.refusing = True
    if not now.is_set():
        drains = asyncio.gather(
            *(v.drain(config.drain_timeout_s, bulk=False) for v in service.registry.all())
        )
        cut = asyncio.create_task(now.wait())
        either: list[asyncio.Future[Any]] = [drains, cut]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    await service.registry.close()
    await asyncio.sleep(0.05)  # let the last answers go out
    for server in servers:
        server.should_exit = True
    announce.cancel()
    ended.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    service.pool.shutdown(wait=False, cancel_futures=True)


async def _announce(service: Service) -> None:
    while not service.registry.ready:
        await asyncio.sleep(0.05)
    _event(event="ready", models=[f"{v.name}@{v.revision}" for v in service.registry.all()])
    log.info("ready: %s", ", ".join(f"{v.name}@{v.revision}" for v in service.registry.all()))


def _watch_stdin(loop: asyncio.AbstractEventLoop, ask: Callable[[bool], None]) -> None:
    """End with the parent: when the pipe closes, stop at once; if that hangs, end hard."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        timer = threading.Timer(10, os._exit, [1])
        timer.daemon = True
        timer.start()
        loop.call_soon_threadsafe(ask, False)

    threading.Thread(target=watch, daemon=True, name="stdin").start()
