"""What Prometheus is told. One registry per server object, so that several can live in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

disable_created_metrics()  # twice the series for nothing

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 2, 3, 5, 10, 20, 40, 80, 160, 320)
Sample = tuple[str, str, dict[str, str], float]
"""Name, help, labels, value of a gauge read when scraped."""


class _Live(Collector):
    """Gauges read from the registry of models at the moment of the scrape."""

    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read

    def collect(self) -> Iterable[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for name, text, labels, value in self._read():
            family = families.get(name)
            if family is None:
                family = families[name] = GaugeMetricFamily(name, text, labels=list(labels))
            family.add_metric(list(labels.values()), value)
        return families.values()


class Metrics:
    """Counters and histograms of one server. Times in seconds."""

    def __init__(self) -> None:
        self.registry = r = CollectorRegistry()
        self.requests = Counter(
            "tts_requests", "Requests answered, by lane and outcome", ["model", "lane", "outcome"], registry=r
        )
        self.request_seconds = Histogram(
            "tts_request_seconds", "Whole time of a request", ["lane"], buckets=_SECONDS, registry=r
        )
        self.queue_wait = Histogram(
            "tts_queue_wait_seconds", "Time a request waited", ["lane"], buckets=_SECONDS, registry=r
        )
        self.batch_seconds = Histogram(
            "tts_batch_seconds", "Device time of a batch", ["model", "lane"], buckets=_SECONDS, registry=r
        )
        self.batch_items = Histogram(
            "tts_batch_items",
            "Items of a batch",
            ["model"],
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=r,
        )
        self.batch_fill = Histogram(
            "tts_batch_fill_ratio",
            "Wanted share of the padded work",
            ["model"],
            buckets=(0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0),
            registry=r,
        )
        self.audio_seconds = Counter("tts_audio_seconds", "Audio made", ["model"], registry=r)
        self.busy_seconds = Counter(
            "tts_device_busy_seconds", "Time devices spent on batches", ["model", "device"], registry=r
        )
        self.real_time = Gauge(
            "tts_rtf",
            "Device seconds per audio second, last batch (under 1 is faster than speech)",
            ["model"],
            registry=r,
        )
        self.restarts = Counter("tts_replica_restarts", "Replicas replaced", ["model", "reason"], registry=r)
        self.oom_splits = Counter(
            "tts_oom_splits", "Batches halved for lack of memory", ["model"], registry=r
        )
        self.shared = Counter(
            "tts_single_flight", "Requests that shared a waiting one", ["model"], registry=r
        )

    def watch(self, read: Callable[[], Iterable[Sample]]) -> None:
        """Add gauges that are read at every scrape."""
        self.registry.register(_Live(read))

    def text(self) -> bytes:
        """The exposition format, version 0.0.4."""
        return generate_latest(self.registry)


def nvml_samples() -> list[Sample]:
    """Memory and use of each NVIDIA device, where the driver and pynvml are there; else nothing."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:
        return []
    out: list[Sample] = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        label = {"device": f"cuda:{index}"}
        out.append(
            ("tts_device_memory_used_bytes", "Memory in use on the device (NVML)", label, float(memory.used))
        )
        out.append(
            ("tts_device_memory_total_bytes", "Memory of the device (NVML)", label, float(memory.total))
        )
        use = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
        out.append(("tts_device_use_ratio", "Share of time with a kernel running (NVML)", label, use))
    return out
