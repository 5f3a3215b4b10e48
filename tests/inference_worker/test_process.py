"""The server as its own process: announced, drained by SIGTERM, gone with its parent."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import psutil
import pytest


@contextlib.contextmanager
def process(port: int, *args: str) -> Iterator[tuple[subprocess.Popen, int]]:
    command = [sys.executable, "-m", "inference_worker", "serve", "--engine", "fake", "--port", str(port)]
    command += [
        "--management-port",
        "0",
        "--metrics-port",
        "0",
        "--warmup-seconds",
        "0.5",
        "--threads",
        "1",
        *args,
    ]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield child, port
    finally:
        for p in [*_children(child.pid), child]:
            with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                p.kill()
        child.wait()
        for pipe in (p for p in (child.stdin, child.stdout) if p):
            with contextlib.suppress(OSError):
                pipe.close()


def _children(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).children(recursive=True)
    return []


def events(child: subprocess.Popen, until: str) -> list[dict]:
    assert child.stdout is not None
    seen = []
    for line in child.stdout:
        seen.append(json.loads(line))
        if seen[-1]["event"] == until:
            break
    return seen


def test_server_and_replica_end_when_standard_input_closes(free_port):
    with process(free_port, "--exit-with-stdin") as (child, port):
        seen = events(child, "ready")
        assert [e["event"] for e in seen] == ["listening", "ready"]
        assert seen[0]["port"] == port
        assert seen[1]["models"] == ["fake@fake-1"]
        replicas = _children(child.pid)
        assert replicas
        child.stdin.close()
        assert child.wait(5) == 0
        assert not [p for p in replicas if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_replica_ends_when_the_server_is_killed(free_port):
    with process(free_port) as (child, _):
        events(child, "ready")
        replicas = _children(child.pid)
        child.kill()
        child.wait()
        _, alive = psutil.wait_procs(replicas, timeout=5)
        assert alive == []


async def test_sigterm_drains_in_order(free_port):
    options = ["--drain-grace", "0.6", "--option", "delay_ms=500", "--max-batch", "1"]
    with process(free_port, *options) as (child, port):
        await asyncio.to_thread(events, child, "ready")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:

            async def say(text: str, priority: str) -> httpx.Response:
                body = {"input": text, "response_format": "wav"}
                return await http.post("/v1/audio/speech", json=body, headers={"X-Priority": priority})

            bulk = [asyncio.create_task(say(f"Bulk line {i}.", "bulk")) for i in range(8)]
            await asyncio.sleep(0.2)
            os.kill(child.pid, signal.SIGTERM)
            await asyncio.sleep(0.1)
            assert (await http.get("/ready")).status_code == 503
            preview = asyncio.create_task(say("A preview in the grace period.", "interactive"))
            await asyncio.sleep(0.8)
            with contextlib.suppress(httpx.TransportError):
                late = await say("Too late.", "interactive")
                assert late.status_code == 503
                assert late.json()["error"]["code"] == "draining"
                assert late.headers["connection"] == "close"
            answers = await asyncio.gather(*bulk)
            codes = [a.status_code for a in answers]
            assert (await preview).status_code == 200
            assert 200 in codes
            assert 503 in codes
            assert set(codes) == {200, 503}  # nobody hangs, nobody is cut off
            refused = next(a for a in answers if a.status_code == 503)
            assert refused.headers["retry-after"] == "0"
        assert await asyncio.to_thread(child.wait, 10) == 0


def test_a_taken_port_is_said_and_ends(taken):
    command = [sys.executable, "-m", "inference_worker", "serve", "--engine", "fake"]
    command += ["--port", str(taken.getsockname()[1]), "--management-port", "0", "--metrics-port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 2
    assert "cannot listen" in result.stderr


def test_the_server_process_loads_no_model_library():
    code = (
        "import sys, inference_worker.run, inference_worker.management, inference_worker.openapi;"
        "print([m for m in ('torch', 'transformers', 'onnxruntime', 'django') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.strip() == "[]"


def test_start_is_quick(free_port):
    start = time.monotonic()
    with process(free_port) as (child, _):
        events(child, "listening")
        assert time.monotonic() - start < 15


@pytest.mark.parametrize("args", [["--option", "nonsense"], ["--load", "nonsense"]])
def test_bad_arguments_are_refused(args):
    command = [sys.executable, "-m", "inference_worker", "serve", "--engine", "fake", *args]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 1
    assert "KEY=VALUE" in result.stderr
