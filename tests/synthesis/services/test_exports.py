"""Exports as a production worker makes them: real takes in, files that an independent program reads out."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import zipfile
from datetime import timedelta

import pytest
from django.core.files.storage import FileSystemStorage, default_storage
from django.utils import timezone

from projects.models import Document, ManuscriptImport, Project, Segment
from projects.services.manuscripts import import_create, import_run
from projects.services.segments import segment_edit_text, take_choose
from projects.work import WorkState
from synthesis.models import Export
from synthesis.revisions import ExportRow, exports_of
from synthesis.services import exports as service
from synthesis.services.bookplans import book_plan
from synthesis.services.credits import CreditsImpossible, credits_write
from synthesis.services.deliverables import deliverable, deliverables
from synthesis.services.exports import (
    ExportImpossible,
    export_cancel,
    export_create,
    export_retry,
)
from tests import factories as make
from tests.houses import epub_make
from tests.synthesis.services.sounding import book_spoken, run, take_spoken

pytestmark = pytest.mark.django_db


@pytest.fixture
def book() -> Project:
    return book_spoken()


def made(project: Project, preset: str = "m4b", **options) -> Export:
    export = run(export_create(project, None, preset=preset, **options))
    assert export.state == WorkState.DONE, (export.failure_code, export.failure_detail)
    return export


def archive(export: Export) -> zipfile.ZipFile:
    with default_storage.open(export.file_key) as file:
        return zipfile.ZipFile(io.BytesIO(file.read()))


def probed(ffprobe: str, path) -> dict:
    command = [
        ffprobe,
        "-v",
        "error",
        "-of",
        "json",
        "-show_format",
        "-show_streams",
        "-show_chapters",
        str(path),
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)


# -- formats ---------------------------------------------------------------------------------------------------------
def test_every_preset_is_offered_and_m4b_is_the_first(book):
    offered = [d.name for d in deliverables(book)]
    assert offered[0] == Export._meta.get_field("preset").default == "m4b"
    assert set(offered) == set(Export.Preset.values) - {"epub_original"}  # the book did not come from an EPUB
    with pytest.raises(ExportImpossible) as caught:
        export_create(book, None, preset="epub_original")
    assert caught.value.code == "no_original"


@pytest.mark.parametrize(
    ("preset", "extension", "mime"),
    [
        ("m4b", ".m4b", "audio/mp4"),  # TRAPS: an M4B must be served as audio/mp4
        ("acx", ".zip", "application/zip"),
        ("daw", ".zip", "application/zip"),
        ("epub", ".epub", "application/epub+zip"),
        ("vtt", ".vtt", "text/vtt; charset=utf-8"),
        ("lpf", ".lpf", "application/audiobook+zip"),
    ],
)
def test_how_it_is_handed_over(preset, extension, mime):
    assert (deliverable(preset).extension, deliverable(preset).mime) == (extension, mime)


def test_an_m4b_is_what_another_program_says_it_is(book, ffprobe, tmp_path):
    export = made(book)
    assert export.file_name == "The_Salt_Ledger_r1.m4b"
    path = tmp_path / export.file_name
    with default_storage.open(export.file_key) as file:
        path.write_bytes(file.read())
    told = probed(ffprobe, path)
    assert [c["tags"]["title"] for c in told["chapters"]] == ["The Ferry", "The Lamp Room"]
    assert float(told["format"]["duration"]) * 1000 == pytest.approx(export.duration_ms, abs=50)
    assert export.size_bytes == path.stat().st_size
    assert export.report["check"]["fail"] == 0
    assert abs(export.report["loudness"]["lufs"] + 18) < 0.5


def test_a_set_is_zipped_named_by_its_preset_and_passes_what_the_studio_decides(book, ffprobe, tmp_path):
    book.authors, book.isbn = ["Mara Quill"], "9780000000002"
    book.save()
    credits = credits_write(book)
    for segment in Segment.objects.filter(document__in=credits):
        take_spoken(segment, 0.5)
    export = made(book, "acx", sample={"minutes": 1})
    assert export.file_name == "The_Salt_Ledger_r1_acx.zip"
    files = archive(export)
    assert files.namelist() == [
        "001_Opening_Credits.mp3",
        "002_Chapter_01_The_Ferry.mp3",
        "003_Chapter_02_The_Lamp_Room.mp3",
        "004_Closing_Credits.mp3",
        "Retail_Sample.mp3",
    ]
    failing = {row["code"] for row in export.details["check"] if row["status"] == "fail"}
    assert failing == {
        "cover"
    }  # level, peaks, noise, head, tail, format, names, credits and sample are in order
    path = tmp_path / "two.mp3"
    path.write_bytes(files.read("002_Chapter_01_The_Ferry.mp3"))
    audio = next(s for s in probed(ffprobe, path)["streams"] if s["codec_type"] == "audio")
    assert (audio["codec_name"], audio["sample_rate"], audio["channels"], audio["bit_rate"]) == (
        "mp3",
        "44100",
        1,
        "192000",
    )


def test_text_formats_need_no_sound_of_their_own(book):
    export = made(book, "srt")
    with default_storage.open(export.file_key) as file:
        text = file.read().decode()
    assert "Nobody had counted the lamps." in text
    assert export.report.get("check") is None
    assert "gain" not in export.report


def test_voices_are_evened_by_one_fixed_gain_each(book):
    other = make.voice_make("Ben")
    quiet = make.segments_of(book)[2]
    Segment.objects.filter(pk=quiet.pk).update(voice=other)
    take_spoken(Segment.objects.get(pk=quiet.pk), level=0.05, seed=70, voice=other)
    clips = [line.clip for chapter in book_plan(book).chapters for line in chapter.lines]
    gains = {clip.gain_db for clip in clips}
    assert 0.0 in gains
    (raised,) = gains - {0.0}
    assert raised == pytest.approx(6.0, abs=1.0)
    assert raised % 0.5 == 0


# -- after a change --------------------------------------------------------------------------------------------------
def test_after_one_changed_sentence_one_chapter_is_rendered(book, monkeypatch):
    opened: list[str] = []
    real = service._clip_open
    monkeypatch.setattr(service, "_clip_open", lambda key: (opened.append(key), real(key))[1])
    first = made(book)
    assert len(opened) == len(make.segments_of(book))
    opened.clear()
    segment = make.segments_of(book)[1]
    take_spoken(segment, 0.9, seed=90)
    second = made(book)
    kept = set(first.details["renders"]) & set(second.details["renders"])
    assert (len(kept), len(second.details["renders"])) == (1, 2)
    ferry = segment.document
    assert len(opened) == Segment.objects.filter(document=ferry).exclude(spoken="").count()
    assert second.report["gain"]["gain_db"] == first.report["gain"]["used_db"]
    # what only r1 was made of is let go
    gone = set(first.details["renders"]) - kept
    prefix = f"p/{book.public_id}/renders"
    assert not any(default_storage.exists(f"{prefix}/{key[:2]}/{key}") for key in gone)
    assert all(default_storage.exists(f"{prefix}/{key[:2]}/{key}") for key in second.details["renders"])


def test_nothing_changed_gives_the_same_bytes_from_renders_alone(book, monkeypatch):
    first = made(book)
    monkeypatch.setattr(service, "_clip_open", lambda key: pytest.fail(f"{key} was opened"))
    second = made(book)
    assert second.details["files"][0]["sha256"] == first.details["files"][0]["sha256"]
    assert (second.revision, second.file_key != first.file_key) == (2, True)
    assert default_storage.exists(first.file_key)  # never overwritten


def test_a_damaged_render_is_made_again(book):
    first = made(book)
    key = first.details["renders"][0]
    name = f"p/{book.public_id}/renders/{key[:2]}/{key}"
    default_storage.delete(name)
    default_storage.save(name, io.BytesIO(b"{half"))
    second = made(book)
    assert second.details["files"][0]["sha256"] == first.details["files"][0]["sha256"]
    with default_storage.open(name) as file:
        assert len(file.read()) > 1_000  # and kept in place of the damaged one


def test_a_delta_holds_only_what_changed(book):
    first = made(book, "mp3")
    take_spoken(make.segments_of(book)[1], 0.9, seed=91)
    second = made(book, "mp3", since=first.revision)
    ferry, lamps = "001_Chapter_01_The_Ferry.mp3", "002_Chapter_02_The_Lamp_Room.mp3"
    assert second.report["changes"] == {
        "since": 1,
        "new": [],
        "changed": [ferry],
        "gone": [],
        "same": [lamps],
    }
    files = archive(second)
    assert files.namelist() == [ferry, "CHANGES.txt"]
    assert ferry in files.read("CHANGES.txt").decode()
    assert second.file_name == "The_Salt_Ledger_r2_mp3_since_r1.zip"
    third = made(book, "mp3")  # compared with r2, whose list of files is whole
    assert third.report["changes"]["same"] == [ferry, lamps]
    assert archive(third).namelist() == [ferry, lamps]


def test_a_delta_wants_a_set_and_a_finished_revision(book):
    for preset, since, code in (("m4b", 1, "not_a_set"), ("mp3", 7, "no_revision")):
        with pytest.raises(ExportImpossible) as caught:
            export_create(book, None, preset=preset, since=since)
        assert caught.value.code == code


def row_of(export: Export) -> ExportRow:
    return next(row for row in exports_of(export.project) if row.pk == export.pk)


def later(segment: Segment) -> None:
    """The clock has moved on since the export read the book."""
    Segment.objects.filter(pk=segment.pk).update(changed_at=timezone.now() + timedelta(seconds=5))


def test_outdated_is_what_would_come_out_otherwise(book):
    export = made(book)
    assert not row_of(export).outdated
    segment = make.segments_of(book)[1]
    Segment.objects.filter(pk=segment.pk).update(qc_at=timezone.now())
    later(segment)
    assert not row_of(export).outdated  # an approval is no change of the book
    segment.refresh_from_db()
    segment_edit_text(
        segment, text="The ferry left at one.", text_rev=segment.text_rev, user=make.user_make()
    )
    later(segment)
    assert row_of(export).outdated_why == "1 sentence changed"
    Document.objects.filter(pk=make.chapters_of(book)[1].pk).update(included=False)
    Project.objects.filter(pk=book.pk).update(narrator="Nora")
    export.project.refresh_from_db()
    assert row_of(export).outdated_why == "1 sentence changed, chapters changed, the book's data changed"


def test_choosing_the_old_take_again_makes_it_current_again(book):
    segment = make.segments_of(book)[1]
    before = segment.chosen_take
    export = made(book)
    take_spoken(segment, 0.9, seed=92)
    later(segment)
    assert row_of(export).outdated
    segment.refresh_from_db()
    take_choose(segment, before)
    later(segment)
    assert not row_of(export).outdated


# -- what is missing, what goes wrong ------------------------------------------------------------------------------------
def test_what_is_missing_is_said_before_and_after(book):
    lamp = make.chapters_of(book)[1]
    Segment.objects.filter(pk=make.segments_of(lamp)[-1].pk).update(chosen_take=None)
    export = export_create(book, None)
    assert export.report["missing"] == [{"chapter": "The Lamp Room", "sentences": 1}]
    export = run(export)
    assert export.report["missing"] == [{"chapter": "The Lamp Room", "sentences": 1}]
    (row,) = [row for row in export.details["check"] if row["code"] == "missing"]
    assert (row["status"], row["value"], row["fix"]) == ("fail", "1", "make")


def test_a_part_of_the_book(book):
    lamp = make.chapters_of(book)[1]
    export = made(book, "mp3", documents=[str(lamp.public_id)])
    assert archive(export).namelist() == ["001_Chapter_01_The_Lamp_Room.mp3"]


def test_a_take_that_is_gone_fails_plainly_and_a_retry_goes_on(book):
    take = make.segments_of(book)[-1].chosen_take
    with default_storage.open(take.audio_key) as file:
        sound = file.read()
    default_storage.delete(take.audio_key)
    export = run(export_create(book, None))
    assert (export.state, export.failure_code, export.file_key) == (WorkState.FAILED, "clip_unusable", "")
    default_storage.save(take.audio_key, io.BytesIO(sound))
    assert export_retry(export)
    assert not export_retry(export)
    export = run(Export.objects.get(pk=export.pk))
    assert (export.state, export.revision) == (WorkState.DONE, 1)


@pytest.mark.parametrize(("error", "code"), [(errno.ENOSPC, "disk_full"), (errno.EIO, "storage_away")])
def test_disk_and_storage_faults_have_plain_words(book, monkeypatch, error, code):
    def refuse(name, content, max_length=None):
        raise OSError(error, "no")

    monkeypatch.setattr(default_storage, "save", refuse)
    export = run(export_create(book, None, preset="srt"))
    assert (export.state, export.failure_code, export.file_key) == (WorkState.FAILED, code, "")
    assert row_of(export).failure != code  # words, not the code


def test_cancelled_while_it_runs_no_file_appears(book, monkeypatch):
    export = export_create(book, None)
    real = service._clip_open

    def open_and_cancel(key):
        export_cancel(Export.objects.get(pk=export.pk))
        return real(key)

    monkeypatch.setattr(service, "_clip_open", open_and_cancel)
    export = run(export)
    assert (export.state, export.file_key) == (WorkState.CANCELLED, "")
    assert not export_cancel(export)


def test_a_file_that_came_too_late_is_taken_away(book, monkeypatch):
    export = export_create(book, None)
    saved: list[str] = []
    real = default_storage.save

    def save(name, content, max_length=None):
        if "/exports/" in name:
            Export.objects.filter(pk=export.pk).update(dispatch_no=9)
            saved.append(name)
        return real(name, content)

    monkeypatch.setattr(default_storage, "save", save)
    export = run(export)
    assert (export.state, export.file_key) == (WorkState.LEASED, "")
    assert saved
    assert not default_storage.exists(saved[0])


def test_versions_grow_with_every_change(book):
    export = make.export_make(book)
    steps = [
        (0, WorkState.WAITING, 0.0), (1, WorkState.LEASED, 0.0), (1, WorkState.LEASED, 0.5), (1, WorkState.FAILED, 0.5),
        (1, WorkState.WAITING, 0.0), (2, WorkState.LEASED, 0.0), (2, WorkState.DONE, 1.0),
    ]  # fmt: skip
    versions = []
    for export.dispatch_no, export.state, export.progress in steps:
        versions.append(ExportRow(export, "").version)
    assert versions == sorted(set(versions))


# -- credits -----------------------------------------------------------------------------------------------------------
def test_credits_are_chapters_first_and_last_and_written_once(book):
    book.narrator = "Nora"
    book.save()
    opening, closing = credits_write(book)
    assert [d.pk for d in make.chapters_of(book)][:: len(make.chapters_of(book)) - 1] == [
        opening.pk,
        closing.pk,
    ]
    assert (opening.kind, closing.kind) == ("opening_credits", "closing_credits")
    text = " ".join(s.text for s in make.segments_of(opening))
    assert "The Salt Ledger." in text
    assert "Written by Mara Quill." in text
    assert "Narrated by Nora." in text
    assert make.segments_of(closing)[-1].text == "The End."
    assert all(s.recipe and s.spoken for s in make.segments_of(opening))
    assert credits_write(book) == []


def test_credits_in_another_language_are_names_alone(book):
    book.language = "de"
    book.save()
    opening, _closing = credits_write(book)
    assert " ".join(s.text for s in make.segments_of(opening)) == "The Salt Ledger. Mara Quill. Ada."


def test_credits_want_an_author(book):
    book.authors = []
    book.save()
    with pytest.raises(CreditsImpossible):
        credits_write(book)


def test_the_original_epub_gets_sound_laid_over_its_text(tmp_path):
    path = epub_make(tmp_path / "ferry.epub", "The Salt Ledger", [("The Ferry", ["The ferry left at noon."])])
    with path.open("rb") as file:
        row = import_create(make.user_make(), file, path.name, voice=make.voice_make())
    ManuscriptImport.objects.filter(pk=row.pk).update(state=WorkState.LEASED, dispatch_no=1)
    row.refresh_from_db()
    import_run(row, 1)
    row.refresh_from_db()
    assert row.state == WorkState.DONE
    book = row.project
    for segment in make.segments_of(book):
        if segment.spoken:
            take_spoken(segment, 0.5, seed=3)
    assert "epub_original" in [d.name for d in deliverables(book)]
    export = made(book, "epub_original")
    assert export.file_name == "The_Salt_Ledger_r1_epub_original.epub"
    names = archive(export).namelist()
    assert any(name.endswith(".smil") for name in names)
    assert any(name.endswith(".mp3") for name in names)


# -- delivered twice -------------------------------------------------------------------------------------------------
def test_the_second_run_of_one_dispatch_does_not_take_the_file_away(book, monkeypatch, tmp_path):
    """As in a bucket, where the same key is the same object: a message delivered twice, both runs to the end."""
    bucket = FileSystemStorage(location=tmp_path, allow_overwrite=True)
    monkeypatch.setattr(service.default_storage, "save", bucket.save)
    monkeypatch.setattr(service.default_storage, "delete", bucket.delete)
    export = export_create(book, None, preset="transcript")
    Export.objects.filter(pk=export.pk).update(state=WorkState.LEASED, dispatch_no=1)
    export.refresh_from_db()
    second = service._Run(export, 1, lambda: True)
    deliver = service._Run._deliver

    def overtaken(this, *args):
        if this is second:  # at its very end the other run comes first
            service._Run(export, 1, lambda: True).run()
            monkeypatch.setattr(this, "_progress", lambda share: None)
        deliver(this, *args)

    monkeypatch.setattr(service._Run, "_deliver", overtaken)
    second.run()
    export.refresh_from_db()
    assert export.state == WorkState.DONE
    assert bucket.size(export.file_key) == export.size_bytes


def test_a_pause_after_a_paragraph_comes_once_where_no_spaces_part_sentences(book):
    segments = Segment.objects.filter(document__project=book, block__kind="paragraph").in_order()
    block = segments[0].block
    block.segments.update(separator="")  # as in Japanese
    block.pause_after_ms = 4_321
    block.save()
    pauses = [
        line.pause_after_ms
        for chapter in book_plan(book).chapters
        for line in chapter.lines
        if line.block == str(block.public_id)
    ]
    assert len(pauses) > 1
    assert [ms == 4_321 for ms in pauses] == [False] * (len(pauses) - 1) + [True]
