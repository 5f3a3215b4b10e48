"""Conversions and their jobs, exports, pools."""

from .conversion import Conversion, SegmentJob
from .export import Export
from .pool import Pool

__all__ = ["Conversion", "Export", "Pool", "SegmentJob"]
