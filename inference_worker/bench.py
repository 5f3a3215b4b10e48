"""How fast a server is: many segments at once, previews among them; one JSON object and one table row."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from inference_worker.check import machine

WORDS = [
    "lantern",
    "harbour",
    "winter",
    "letter",
    "garden",
    "river",
    "window",
    "captain",
    "silver",
    "morning",
    "stranger",
    "candle",
    "answer",
    "mountain",
    "shadow",
    "kitchen",
    "whisper",
    "journey",
    "feather",
    "bottle",
    "thunder",
    "corner",
    "silence",
    "market",
    "ladder",
    "ribbon",
    "carried",
    "opened",
    "followed",
    "waited",
    "turned",
    "began",
    "crossed",
    "listened",
    "under",
    "beyond",
    "between",
    "after",
    "before",
]
HEAD = "| GPU | mean latency per request over {n} segments | segments/s | cost per audio hour at {price} | note |"


def segments(count: int, low: int = 20, high: int = 300, seed: int = 11) -> list[str]:
    """Texts of `low` to `high` characters, uniformly; the same on every run."""
    rng = random.Random(seed)
    out = []
    for _ in range(count):
        want = rng.randint(low, high)
        words: list[str] = []
        while len(" ".join(words)) < want:
            words.append(rng.choice(WORDS))
        out.append(" ".join(words)[:want].strip().capitalize() + ".")
    return out


def _tree_cpu_s(root: int) -> float:
    """CPU seconds of a process and its descendants so far (Linux; 0 elsewhere)."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            pid = int(entry.parent.name)
            parents[pid], spent[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
    total, queue = 0, [root]
    while queue:
        pid = queue.pop()
        total += spent.get(pid, 0)
        queue += [p for p, parent in parents.items() if parent == pid]
    return total / os.sysconf("SC_CLK_TCK")


def _metric(text: str, name: str) -> float:
    return sum(
        float(x.rpartition(" ")[2]) for x in text.splitlines() if x.startswith((name + "{", name + " "))
    )


async def _one_run(
    url: str, texts: list[str], model: str, voice: str, pid: int, previews: int
) -> dict[str, Any]:
    limits = httpx.Limits(max_connections=None)
    latencies: list[float] = []
    waits: list[float] = []
    codes: dict[str, int] = {}
    audio = 0.0
    preview_s: list[float] = []
    async with httpx.AsyncClient(base_url=url, timeout=3600, limits=limits) as client:

        async def one(text: str, priority: str) -> float:
            nonlocal audio
            body = {"model": model, "input": text, "voice": voice, "response_format": "pcm"}
            start = time.perf_counter()
            while True:
                try:
                    answer = await client.post(
                        "/v1/audio/speech", json=body, headers={"X-Priority": priority}
                    )
                except httpx.HTTPError as exc:
                    codes[type(exc).__name__] = codes.get(type(exc).__name__, 0) + 1
                    return 0.0
                if answer.status_code != 503:
                    break
                await asyncio.sleep(float(answer.headers.get("retry-after", 1)) * random.uniform(0.7, 1.3))
            took = time.perf_counter() - start
            codes[str(answer.status_code)] = codes.get(str(answer.status_code), 0) + 1
            if answer.status_code == 200:
                audio += len(answer.content) / 2 / int(answer.headers["x-sample-rate"])
                waits.append(int(answer.headers["x-queue-ms"]) / 1000)
                if priority == "bulk":
                    latencies.append(took)
            return took

        before = (await client.get("/metrics")).text
        cpu = _tree_cpu_s(pid) if pid else 0.0
        start = time.perf_counter()
        jobs = [asyncio.create_task(one(t, "bulk")) for t in texts]

        async def previewing() -> None:
            await asyncio.sleep(2)
            for i in range(previews):
                preview_s.append(await one(f"A short preview, number {'abcdefgh'[i % 8]}.", "interactive"))

        extra = asyncio.create_task(previewing())
        await asyncio.gather(*jobs)
        seconds = time.perf_counter() - start
        await extra
        cpu = _tree_cpu_s(pid) - cpu if pid else 0.0
        after = (await client.get("/metrics")).text
    busy = _metric(after, "tts_device_busy_seconds_total") - _metric(before, "tts_device_busy_seconds_total")
    latencies.sort()

    def quantile(share: float) -> float:
        return round(latencies[min(len(latencies) - 1, int(share * len(latencies)))], 3) if latencies else 0.0

    return {
        "segments": len(texts),
        "codes": codes,
        "seconds": round(seconds, 2),
        "segments_per_s": round(len(latencies) / seconds, 3),
        "audio_s": round(audio, 1),
        "audio_s_per_s": round(audio / seconds, 3),
        "latency_mean_s": round(statistics.fmean(latencies), 3) if latencies else 0.0,
        "latency_p50_s": quantile(0.5),
        "latency_p95_s": quantile(0.95),
        "previews_s": [round(x, 2) for x in preview_s],
        "server_cpu_ms_per_segment": round(cpu / max(1, len(texts)) * 1000, 1),
        "device_busy_share": round(busy / seconds, 3),
    }


def _free_port(first: int = 18_900) -> int:
    """A port below the ephemeral range that nobody listens on."""
    for port in range(first, 32_000):
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(("127.0.0.1", port))
            return port
    raise SystemExit("no free port")


@contextlib.asynccontextmanager
async def _own_server(args: argparse.Namespace, options: dict[str, str]) -> AsyncIterator[tuple[str, int]]:
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "inference_worker",
        "serve",
        "--engine",
        args.engine,
        "--port",
        str(port),
    ]
    command += [
        "--management-port",
        "0",
        "--metrics-port",
        "0",
        "--devices",
        args.devices,
        "--exit-with-stdin",
    ]
    command += [
        "--workers",
        str(args.workers),
        "--threads",
        str(args.threads),
        "--max-batch",
        str(args.max_batch),
    ]
    command += ["--max-queue-seconds", "36000"]
    for key, value in options.items():
        command += ["--option", f"{key}={value}"]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        while line := await process.stdout.readline():
            if json.loads(line)["event"] == "ready":
                break
        else:
            raise SystemExit("the server did not start")
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _runs(args: argparse.Namespace, options: dict[str, str]) -> list[dict[str, Any]]:
    texts = segments(args.segments)
    previews = min(4, max(0, args.segments // 50))
    if args.url:
        return [
            await _one_run(args.url, texts, args.model, args.voice, 0, previews) for _ in range(args.repeat)
        ]
    async with _own_server(args, options) as (url, pid):
        return [await _one_run(url, texts, args.model, args.voice, pid, previews) for _ in range(args.repeat)]


def row(result: dict[str, Any]) -> str:
    """The Markdown row of a result."""
    best = result["median"]
    price = result["price"]
    cost = f"${price / (best['audio_s_per_s'] or 1):.3f}" if price else "no price given"
    return f"| {result['device']} | {best['latency_mean_s']:.2f} s | {best['segments_per_s']:.2f} | {cost} | {result['note']} |"


def _table(results: list[dict[str, Any]]) -> str:
    price = f"${results[0]['price']:g} an hour" if results[0]["price"] else "$X"
    head = HEAD.format(n=results[0]["median"]["segments"], price=price)
    return "\n".join([head, "|---|---|---|---|---|", *(row(r) for r in results)])


def bench(args: argparse.Namespace, options: dict[str, str]) -> int:
    """Run, print JSON and the row; with --compare lay stored results beside each other. 0 when all were answered."""
    if args.compare:
        print(_table([json.loads(p.read_text(encoding="utf-8")) for p in args.compare]))
        return 0
    runs = asyncio.run(_runs(args, options))
    ordered = sorted(runs, key=lambda r: r["seconds"])
    facts = machine()
    gpu = (
        facts["gpus"][0]["name"]
        if facts["gpus"] and args.devices != "cpu"
        else f"none ({facts['cores']} CPU cores)"
    )
    result = {
        "device": gpu,
        "engine": args.engine if not args.url else args.url,
        "devices": args.devices,
        "price": args.price,
        "note": args.note or f"{args.engine}, {args.devices}",
        "machine": facts,
        "median": ordered[len(ordered) // 2],
        "runs": runs,
    }
    text = json.dumps(result, indent=1)
    if args.out:
        args.out.write_text(text, encoding="utf-8")
    print(text)
    print(_table([result]))
    return 0 if all(set(r["codes"]) == {"200"} for r in runs) else 1
