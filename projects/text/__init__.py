"""Text: from blocks to segments, from printed to spoken words. Pure: no Django, no files, no network."""

from .normalise import FRONTEND_REV, spoken_text
from .segment import SegmentDraft, boundary_between, is_dialogue, segment_block
from .spans import Span, spans_after_edit

__all__ = [
    "FRONTEND_REV",
    "SegmentDraft",
    "Span",
    "boundary_between",
    "is_dialogue",
    "segment_block",
    "spans_after_edit",
    "spoken_text",
]
