"""One child process seen from the server: started, fed, watched, replaced when it dies or hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from inference_worker import frames

log = logging.getLogger("inference_worker.replica")

CHILD_ENV = {
    # Large tensors come and go with every batch; without these glibc gives the pages back each time (half the CPU).
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "67108864",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONUNBUFFERED": "1",
}


class ReplicaDied(Exception):
    """Raised when the child ended, broke its device or was killed because it hung."""


class ReplicaUnfit(Exception):
    """Raised when the child could not load its model; the message is for the operator."""


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    """What a child needs to know. `folder` is the model store entry ("" = weights elsewhere)."""

    engine: str
    device: str = "cpu"
    threads: int = 1
    folder: str = ""
    options: dict[str, str] = field(default_factory=dict)
    warmup_budget_s: float = 20.0


@dataclass(slots=True)
class Outcome:
    """A child's answer to a batch. `kind`: done, oom, failed."""

    kind: str
    results: list[dict[str, Any]]
    sound: bytes
    seconds: float
    memory_bytes: int = 0
    message: str = ""


class Replica:
    """A running child. Use from one event loop; one batch at a time."""

    def __init__(self, spec: ReplicaSpec) -> None:
        self.spec = spec
        self.process: asyncio.subprocess.Process | None = None
        self.about: dict[str, Any] = {}
        self.measured: dict[str, Any] = {}
        self.memory_bytes = 0
        self.started = time.time()
        self._errors: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Process id, 0 before the start."""
        return self.process.pid if self.process else 0

    async def start(self, timeout_s: float) -> None:
        """Start the child and wait until it has loaded and warmed up.

        Raises ReplicaUnfit when it says it cannot, ReplicaDied when it ends or is not ready within `timeout_s`.
        """
        env = {**os.environ, **CHILD_ENV}
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            env[name] = str(self.spec.threads)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "inference_worker.child",
            json.dumps(asdict(self.spec)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            limit=1 << 20,
            start_new_session=False,
        )
        self._errors = asyncio.create_task(self._forward_errors())
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    head, _ = await self._read()
                    if head["op"] == "loaded":
                        self.about = head["about"]
                    elif head["op"] == "ready":
                        self.measured = head["measured"]
                        self.memory_bytes = head.get("memory", 0)
                        return
                    elif head["op"] == "unfit":
                        raise ReplicaUnfit(head["message"])
        except TimeoutError:
            await self.kill()
            raise ReplicaDied(f"not ready within {timeout_s:.0f} s") from None
        except BaseException:
            await self.kill()
            raise

    async def _forward_errors(self) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(4096):
            sys.stderr.buffer.write(chunk)
            sys.stderr.flush()

    async def _read(self) -> tuple[dict[str, Any], bytes]:
        assert self.process is not None
        assert self.process.stdout is not None
        stream = self.process.stdout
        try:
            n, m = frames.HEAD.unpack(await stream.readexactly(frames.HEAD.size))
            if n > frames.MAX_BYTES or m > frames.MAX_BYTES:
                raise ReplicaDied("spoke nonsense")
            data = await stream.readexactly(n)
            tail = await stream.readexactly(m) if m else b""
        except asyncio.IncompleteReadError:
            raise ReplicaDied(f"ended (exit {await self._exit_code()})") from None
        return json.loads(data), tail

    async def _exit_code(self) -> int | None:
        assert self.process is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                return await self.process.wait()
        return None

    async def speak(self, number: int, items: list[dict[str, Any]], timeout_s: float) -> Outcome:
        """Run a batch. Raises ReplicaDied when the child dies under it or needs longer than `timeout_s`."""
        await self._write({"op": "speak", "batch": number, "items": items})
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    head, tail = await self._read()
                    if head["op"] == "fault":
                        raise ReplicaDied(f"device fault: {head['message']}")
                    if head.get("batch") == number:
                        break
        except TimeoutError:
            log.error("replica %s hung for %.0f s, killed", self.pid, timeout_s)
            await self.kill()
            raise ReplicaDied("hung") from None
        self.memory_bytes = head.get("memory", self.memory_bytes)
        return Outcome(
            head["op"],
            head.get("results", []),
            tail,
            head["seconds"],
            self.memory_bytes,
            head.get("message", ""),
        )

    async def cancel(self, number: int) -> None:
        """Tell the child that nobody waits for a batch any more."""
        with contextlib.suppress(ReplicaDied):
            await self._write({"op": "cancel", "batch": number})

    async def _write(self, head: dict[str, Any]) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(frames.pack(head))
            await self.process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            raise ReplicaDied(f"ended (exit {await self._exit_code()})") from None

    async def kill(self) -> None:
        """End the child now. Safe to call twice."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        if self._errors is not None:
            self._errors.cancel()

    async def stop(self, grace_s: float = 5.0) -> None:
        """Close the child's input, wait for its end, kill it if that takes too long. Safe to call twice."""
        if self.process is None:
            return
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(grace_s):
                await self.process.wait()
        except TimeoutError:
            pass
        await self.kill()
