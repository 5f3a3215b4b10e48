"""The synthesis role: `dramatiq synthesis.speaking.worker -Q preview synthesis --processes 1 --threads 8`.

Reads the environment (BROKER_URL, INFERENCE_POOLS, S3_…); needs neither Django nor a database.
"""

from __future__ import annotations

import logging

from .actor import door_open
from .config import SpeakingConfig
from .conveyor import broker_make
from .measures import measures_serve

logging.getLogger("pika").setLevel(logging.WARNING)
logging.getLogger("httpx").setLevel(logging.WARNING)

config = SpeakingConfig.from_env()
if not config.broker_url:
    raise SystemExit(
        "BROKER_URL is empty: a separate synthesis worker needs a broker, for example amqp://guest:guest@host"
    )
broker = broker_make(config.broker_url)
door = door_open(broker, config)
measures_serve()
