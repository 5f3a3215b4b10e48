"""Settings of a server: command line over environment over defaults. Nothing is read anywhere else."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path


def cores_owned() -> int:
    """CPU cores this process may use: its affinity, and the cgroup's quota where there is one (at least 1)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            cores = min(cores, max(1, math.floor(int(quota) / int(period))))
    except (OSError, ValueError):
        pass
    return max(1, cores)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything `serve` can be told. Ports: 0 = do not open. Times in seconds."""

    host: str = "127.0.0.1"
    port: int = 8080
    management_host: str = "127.0.0.1"
    management_port: int = 8081
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 8082
    engine: str = "kokoro"
    name: str = ""
    options: dict[str, str] = field(default_factory=dict)
    load: tuple[tuple[str, str], ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ("cpu",)
    workers: int = 0
    threads: int = 0
    model_store: Path | None = None
    state_dir: Path | None = None
    management_token: str = ""
    api_key: str = ""
    max_queue_s: float = 300.0
    max_batch: int = 0
    bulk_batch_s: float = 2.0
    watchdog_s: float = 30.0
    start_timeout_s: float = 900.0
    warmup_budget_s: float = 20.0
    drain_grace_s: float = 5.0
    drain_timeout_s: float = 110.0
    exit_with_stdin: bool = False
    log_level: str = "info"

    def replicas(self) -> int:
        """Replicas of the first model: as asked, else one per device."""
        return self.workers or len(self.devices)

    def replica_threads(self) -> int:
        """CPU threads of one replica: as asked, else the cores this process owns shared among the CPU replicas."""
        if self.threads:
            return self.threads
        on_cpu = self.replicas() if all(d == "cpu" for d in self.devices) else 1
        return max(1, cores_owned() // max(1, on_cpu))
