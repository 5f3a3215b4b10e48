"""All roles on one machine: the same actors and messages, carried inside one process; the inference worker as a child."""

from __future__ import annotations

import logging
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

import dramatiq
import httpx
from django.conf import settings
from django.db import close_old_connections
from django.db.models.functions import Now
from filelock import FileLock, Timeout

from projects.models import ManuscriptImport
from projects.work import WorkState, work_move
from synthesis.actors.doors import doors_open
from synthesis.models import Export, SegmentJob
from synthesis.services.dispatching import broker_get, broker_set, speaking_config
from synthesis.services.upkeep import upkeep_loop
from synthesis.speaking.actor import door_open

log = logging.getLogger(__name__)

WORKER_TIMEOUT_MS = 200  # how soon an idle worker thread notices that it should end
READY_WAIT_S = 180  # loading and warming up a voice


class AlreadyRunning(Exception):
    """Raised when another process works on the same data."""


def studio_lock() -> FileLock:
    """Take the lock on this data folder. Raises AlreadyRunning."""
    Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
    lock = FileLock(Path(settings.DATA_DIR) / "studio.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as exc:
        raise AlreadyRunning(str(settings.DATA_DIR)) from exc
    return lock


def port_free() -> int:
    """A free loopback port below the ephemeral range, where an outgoing connection cannot take it."""
    for _ in range(200):
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port between 20000 and 32000")


class InferenceChild:
    """The inference worker as a child process. It ends by itself when our end of its pipe closes, however we die; it is
    started again when it dies, on the same port."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.port = port_free()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="inference-keeper", daemon=True)

    def start(self) -> None:
        """Start it, and the thread that keeps it alive."""
        self._spawn()
        self._keeper.start()

    def _spawn(self) -> None:
        Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
        with (Path(settings.DATA_DIR) / "inference.log").open("ab") as log_file:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "inference_worker",
                    "serve",
                    "--engine",
                    self.engine,
                    "--host",
                    "127.0.0.1",
                    "--port",
                    str(self.port),
                    "--management-port",
                    str(port_free()),
                    "--metrics-port",
                    str(port_free()),
                    "--exit-with-stdin",
                ],
                cwd=settings.ROOT,
                stdin=subprocess.PIPE,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,  # Ctrl-C ends it through its pipe, after our workers
                env={**os.environ, "STUDIO_DATA_DIR": str(settings.DATA_DIR)},
            )

    def _keep(self) -> None:
        wait_s = 1.0
        while not self._stop.is_set():
            process = self.process
            if process is not None and process.poll() is not None and not self._stop.is_set():
                log.error("the inference worker ended with %s; starting it again", process.returncode)
                self._stop.wait(wait_s)
                wait_s = min(wait_s * 2, 60)
                if not self._stop.is_set():
                    try:
                        self._spawn()
                    except OSError:  # no memory, no descriptors: later there may be
                        log.exception("the inference worker could not be started")
            self._stop.wait(0.5)

    def ready(self) -> bool:
        """Whether it can speak now."""
        try:
            return httpx.get(f"{self.address}/ready", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def ready_wait(self, seconds: float = READY_WAIT_S) -> bool:
        """Wait until it can speak; False after so many seconds, or when we are asked to stop."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stop.is_set():
            if self.ready():
                return True
            time.sleep(0.1)
        return False

    def stop(self) -> None:
        """End it: its pipe closes, it drains; killed after ten seconds."""
        self._stop.set()
        process = self.process
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=5)


def leases_end() -> None:
    """On start: nobody holds what the previous boot had leased, since its conveyor died with it. Costs no attempt."""
    SegmentJob.objects.filter(state=WorkState.LEASED).update(lease_until=Now(), published=False)
    for model in (ManuscriptImport, Export):
        for pk, dispatch_no in model.objects.filter(state=WorkState.LEASED).values_list("pk", "dispatch_no"):  # type: ignore[attr-defined]
            work_move(
                model, pk, dispatch_no=dispatch_no, actor="boot", state=WorkState.WAITING, lease_until=None
            )


class EmbeddedRoles:
    """Workers for every queue and the upkeep timer, as threads of this process."""

    def __init__(self, *, inference: bool = True) -> None:
        self.lock: FileLock | None = None
        self.child: InferenceChild | None = None
        self.workers: list[dramatiq.Worker] = []
        self._inference = inference
        self._stop = threading.Event()
        self._upkeep: threading.Thread | None = None

    def __enter__(self) -> EmbeddedRoles:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything. Raises AlreadyRunning if another process works on the same data."""
        self.lock = studio_lock()
        if self._inference and not settings.INFERENCE_POOLS:
            self.child = InferenceChild(settings.INFERENCE_ENGINE)
            settings.INFERENCE_POOLS["cpu"] = [self.child.address]
            self.child.start()
        leases_end()
        broker_set(None)
        broker = broker_get()
        door_open(broker, speaking_config())
        doors_open(broker)
        for queues, threads in (
            ({"preview"}, 2),
            ({"synthesis"}, settings.SYNTHESIS_THREADS),
            ({"results"}, 1),
            ({"imports", "exports"}, 1),
        ):
            worker = dramatiq.Worker(
                broker, queues=queues, worker_threads=threads, worker_timeout=WORKER_TIMEOUT_MS
            )
            worker.start()
            self.workers.append(worker)
        self._upkeep = threading.Thread(target=self._upkeep_run, name="upkeep", daemon=True)
        self._upkeep.start()

    def _upkeep_run(self) -> None:
        try:
            upkeep_loop(self._stop.wait)
        finally:
            close_old_connections()

    def stop(self) -> None:
        """End everything; what was running resumes on the next start."""
        self._stop.set()
        if self.child:
            self.child.stop()  # first: running requests end at once instead of holding the workers
            settings.INFERENCE_POOLS.pop("cpu", None)
        for worker in self.workers:
            worker.stop(timeout=10_000)
        if self._upkeep:
            self._upkeep.join(timeout=5)
        if self.workers:
            broker_get().close()
            broker_set(None)
        self.workers = []
        if self.lock:
            self.lock.release()
