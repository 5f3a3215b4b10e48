"""What a role did, for Prometheus. Pure; every role that has a METRICS_PORT serves its own."""

from __future__ import annotations

import logging
import os

from prometheus_client import Counter, Histogram, start_http_server

log = logging.getLogger(__name__)

STEPS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600)  # buckets

ORDERS = Counter("studio_orders", "Orders filled by this synthesis worker.", ["pool", "lane", "outcome"])
STAGE = Histogram(
    "studio_stage_seconds", "Time of one sentence in one stage.", ["stage"], buckets=STEPS_S
)  # belt, inference, store, report (synthesis worker); settle, dispatch (results worker)
RESULTS = Counter("studio_results", "Results settled, by what became of them.", ["outcome", "settled"])
DISPATCHED = Counter("studio_dispatched", "Orders handed to the broker and confirmed.", ["pool"])
UNCONFIRMED = Counter("studio_unconfirmed", "Orders that the broker did not confirm in time.")
LEASES_EXPIRED = Counter("studio_leases_expired", "Leases that ran out before anybody reported.")
DEAD_LETTERS = Counter("studio_dead_letters", "Messages the broker gave up on.", ["queue", "reason"])


def measures_serve(environ: dict[str, str] | None = None) -> bool:
    """Serve /metrics on METRICS_PORT (0 or unset = not at all), at METRICS_HOST (the loopback); whether it does.

    A port that is taken (several processes of one role on a machine) is said and is no error.
    """
    if environ is None:
        environ = dict(os.environ)
    port, host = int(environ.get("METRICS_PORT") or 0), environ.get("METRICS_HOST") or "127.0.0.1"
    if not port:
        return False
    try:
        start_http_server(port, addr=host)
    except OSError as exc:
        log.warning("no metrics on %s:%d: %s", host, port, exc.strerror or exc)
        return False
    return True
