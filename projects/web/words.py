"""Names of languages as people know them."""

from __future__ import annotations

from django.conf.locale import LANG_INFO
from django.utils.translation import gettext as _


def language_name(tag: str) -> str:
    """The language's own name where it is known, else the tag: en-GB → English (GB)."""
    if tag == "*":
        return _("any language")
    primary, _sep, region = tag.partition("-")
    info = LANG_INFO.get(tag.lower()) or LANG_INFO.get(primary.lower())
    if not info or "name" not in info:
        return tag
    return f"{info['name']} ({region})" if region and tag.lower() not in LANG_INFO else str(info["name"])
