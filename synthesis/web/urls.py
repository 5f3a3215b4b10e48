"""Routes of synthesis: conversions, sound, exports."""

from __future__ import annotations

from django.urls import path

from . import deliveries, views

urlpatterns = [
    path("conversions/scope", views.conversion_scope, name="conversion-scope"),
    path("conversions/", views.conversion_create, name="conversion-create"),
    path("conversions/<uuid:public_id>/pause", views.conversion_paused, name="conversion-pause"),
    path("conversions/<uuid:public_id>/resume", views.conversion_resumed, name="conversion-resume"),
    path("conversions/<uuid:public_id>/cancel", views.conversion_cancelled, name="conversion-cancel"),
    path("conversions/<uuid:public_id>/retry", views.conversion_retried, name="conversion-retry"),
    path("books/<uuid:public_id>/conversion", views.conversion_panel, name="conversion-panel"),
    path("chapters/<uuid:public_id>/make", views.document_make, name="document-make"),
    path("sentences/<uuid:public_id>/make", views.segment_make, name="segment-make"),
    path("takes/<uuid:public_id>/audio", views.take_audio, name="take-audio"),
    path("takes/<uuid:public_id>/peaks", views.take_peaks, name="take-peaks"),
    path("voices/<uuid:public_id>/sample", views.voice_sampled, name="voice-sample"),
    path("books/<uuid:public_id>/deliver", deliveries.exports, name="exports"),
    path("books/<uuid:public_id>/exports", deliveries.export_created, name="export-create"),
    path("books/<uuid:public_id>/credits", deliveries.credits_written, name="credits-write"),
    path("exports/<uuid:public_id>/retry", deliveries.export_retried, name="export-retry"),
    path("exports/<uuid:public_id>/cancel", deliveries.export_cancelled, name="export-cancel"),
    path("exports/<uuid:public_id>/download", deliveries.export_download, name="export-download"),
    path("exports/<uuid:public_id>/check.csv", deliveries.export_check_csv, name="export-check"),
]
