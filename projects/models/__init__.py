"""The book: projects, chapters, paragraphs, sentences, takes, voices."""

from .document import Block, Document
from .manuscript import ManuscriptImport
from .project import Membership, Project
from .segment import Segment, SegmentEdit
from .take import Take
from .voice import Voice

__all__ = [
    "Block",
    "Document",
    "ManuscriptImport",
    "Membership",
    "Project",
    "Segment",
    "SegmentEdit",
    "Take",
    "Voice",
]
