"""Conversions and their jobs, exports, pools, and what the pipeline remembers of them."""

from .conversion import Conversion, SegmentJob
from .export import Export
from .pool import Pool
from .upkeep import Breaker, DeadLetter, Garbage, JobEvent

__all__ = ["Breaker", "Conversion", "DeadLetter", "Export", "Garbage", "JobEvent", "Pool", "SegmentJob"]
