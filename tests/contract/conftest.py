"""A real inference worker with the fake engine, as a process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.servers import port_free

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def fake_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address. It ends when its pipe closes, even if this process dies."""
    port = port_free()
    log = tmp_path_factory.mktemp("worker") / "worker.log"
    command = [
        sys.executable, "-m", "inference_worker", "serve", "--engine", "fake", "--host", "127.0.0.1",
        "--port", str(port), "--management-port", str(port_free()), "--metrics-port", str(port_free()),
        "--exit-with-stdin",
    ]  # fmt: skip
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=file, stderr=file)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                if httpx.get(f"{address}/ready", timeout=1).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
            assert process.poll() is None, log.read_text()
        else:
            pytest.fail(f"the worker did not get ready: {log.read_text()}")
        yield address
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=15)
