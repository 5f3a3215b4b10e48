"""A speech server that stands alone: voice models behind HTTP, batched, bounded and replaceable while it runs."""

__version__ = "0.1.0"
