"""Failures in plain words, with what to do. The codes come from importers, the inference workers and the flow."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Words(NamedTuple):
    """What happened, and what helps."""

    failure: str | Promise
    remedy: str | Promise


FAILURES: dict[str, Words] = {
    # speaking
    "text_not_speakable": Words(
        _("The voice cannot speak this text."), _("Respell the odd word, or set the spoken text by hand.")
    ),
    "markup_not_supported": Words(
        _("The engine does not know the markup in this text."), _("Take the markup out.")
    ),
    "language_not_supported": Words(
        _("The voice does not speak this language."), _("Choose another voice, or correct the language.")
    ),
    "voice_not_found": Words(_("The voice is not installed any more."), _("Choose another voice.")),
    "model_not_found": Words(
        _("The voice's model is not installed on any worker."),
        _("Install it again, or choose another voice."),
    ),
    "revision_mismatch": Words(
        _("The worker has another revision of the model than this book is pinned to."),
        _("Install the pinned revision, or move the book to the new one."),
    ),
    "too_long": Words(_("The sentence is too long for the worker's memory."), _("Split it at a clause.")),
    "invalid_request": Words(
        _("The worker did not accept the request."), _("Look at the detail; it names the field.")
    ),
    "empty_audio": Words(_("The worker answered without sound."), _("Try again; another voice may help.")),
    "silent_audio": Words(_("The worker answered with silence."), _("Try again; another voice may help.")),
    "worker_busy": Words(_("All workers are busy."), _("It is tried again by itself.")),
    "worker_unreachable": Words(_("No worker answers."), _("It goes on by itself when one does.")),
    "storage_refused": Words(
        _("The storage refused the audio."), _("Check the storage; it is tried again by itself.")
    ),
    "internal": Words(_("The worker failed."), _("Try again. If it stays, the worker's log says why.")),
    "out_of_memory": Words(
        _("The worker ran out of memory."),
        _("Split the sentence, or give the worker a device with more memory."),
    ),
    "worker_lost": Words(
        _("The work was lost with its worker, again and again."), _("Look at the workers' logs.")
    ),
    # importing
    "not_an_archive": Words(
        _("The file is not what its name says: the archive cannot be opened."), _("Save it again.")
    ),
    "not_an_epub": Words(
        _("The file is a ZIP archive, but not an EPUB."), _("Export the book as EPUB again.")
    ),
    "empty_file": Words(_("The file is empty."), _("Choose the manuscript again.")),
    "malformed_document": Words(
        _("The file is damaged."), _("Open and save it again in the program it came from.")
    ),
    "unsafe_archive": Words(
        _("The archive is not safe to open: it unpacks to far too much, or reaches outside itself."),
        _("Use a file from a source you trust."),
    ),
    "drm_protected": Words(_("The book is copy-protected."), _("Ask the publisher for an unprotected file.")),
    "password_protected": Words(_("The file wants a password."), _("Save it without one.")),
    "no_readable_text": Words(
        _("No readable text was found."), _("A scan needs text recognition first; then import the result.")
    ),
    "unsupported_format": Words(
        _("This kind of file cannot be read."),
        _("Use EPUB, DOCX, PDF, ODT, RTF, HTML, FB2, Markdown or plain text."),
    ),
    "too_large": Words(_("The file is too large."), _("Split it, or ask the operator to raise the limit.")),
    "text_lost": Words(
        _("The import would have lost words, so it was stopped."),
        _("Please report this file; nothing was created."),
    ),
    # exporting
    "nothing_to_export": Words(_("No chapter has any sound yet."), _("Make a chapter first.")),
    "clip_unusable": Words(_("A take cannot be read."), _("Make its sentence again, then export.")),
    "disk_full": Words(
        _("The worker's disk is full."), _("Free some space; then try again, finished chapters are kept.")
    ),
    "storage_away": Words(
        _("The storage did not answer as it should."),
        _("Check it; then try again, finished chapters are kept."),
    ),
    "original_not_epub3": Words(
        _("The original is an EPUB 2, which knows no read-aloud."),
        _("Choose EPUB 3: the studio then makes one of its own."),
    ),
    "text_not_found": Words(
        _("No line of this book was found in the original EPUB."), _("Choose EPUB 3 instead.")
    ),
}


def failure_words(code: str, detail: str = "") -> tuple[str, str]:
    """(what happened, what helps) for a failure code; an unknown code speaks through its detail."""
    words = FAILURES.get(code)
    if words is None:
        return (detail or code, "")
    return (str(words.failure), str(words.remedy))
