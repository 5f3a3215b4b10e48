"""The results and production roles: `dramatiq synthesis.actors.worker -Q results` (or `-Q imports exports`)."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceproject.settings.prod")
django.setup()

from synthesis.actors.doors import doors_open
from synthesis.services.dispatching import broker_get
from synthesis.speaking.measures import measures_serve

broker = broker_get()
doors_open(broker)
measures_serve()
