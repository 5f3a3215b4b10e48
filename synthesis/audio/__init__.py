"""Sound as numbers: decoding, measuring, the timeline, and the book's samples in order. No Django, no database."""
