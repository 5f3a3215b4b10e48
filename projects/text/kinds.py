"""The kinds of documents, blocks and boundaries. One list each, shared by importers, models and the pause table."""

from typing import Final

BLOCK_KINDS: Final = (
    "heading",
    "subheading",
    "part_title",
    "paragraph",
    "quote",
    "verse",
    "list_item",
    "letter",
    "epigraph",
    "dedication",
    "scene_break",
    "note",
    "table",
    "code",
    "formula",
    "caption",
    "image",
    "toc",
)

DOCUMENT_KINDS: Final = (
    "front_matter",
    "opening_credits",
    "part",
    "chapter",
    "notes",
    "back_matter",
    "closing_credits",
    "retail_sample",
)

BOUNDARY_KINDS: Final = (
    "within_sentence",
    "clause_split",
    "sentence",
    "paragraph",
    "dialogue_turn",
    "verse_line",
    "stanza",
    "list_item",
    "chapter_number",
    "heading",
    "subheading_before",
    "subheading_after",
    "part_title",
    "scene_break",
    "quotation",
    "note",
    "chapter_end",
)

HEADING_KINDS: Final = frozenset({"heading", "subheading", "part_title"})
"""Blocks that are titles: always segments of their own."""

LINE_KINDS: Final = frozenset({"verse", *HEADING_KINDS})
"""Blocks whose line breaks are part of the text: each line is a segment."""

QUOTED_KINDS: Final = frozenset({"quote", "letter", "epigraph", "dedication"})
"""Blocks set apart from the narration: a longer pause stands around them."""
