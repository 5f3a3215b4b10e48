"""Addresses below /api/v1/."""

from __future__ import annotations

from django.urls import re_path

from projects.api.urls import urlpatterns as projects_urls
from synthesis.api.urls import urlpatterns as synthesis_urls

from .api import NoSuchAddress

app_name = "api"
urlpatterns = [*projects_urls, *synthesis_urls, re_path(r"", NoSuchAddress.as_view(), name="none")]
