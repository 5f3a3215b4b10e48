"""Routes of synthesis: conversions, sound, exports."""

from __future__ import annotations

from django.urls import path

from . import views

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
    path("books/<uuid:public_id>/deliver", views.exports, name="exports"),
    path("books/<uuid:public_id>/exports", views.export_created, name="export-create"),
    path("exports/<uuid:public_id>/retry", views.export_retried, name="export-retry"),
    path("exports/<uuid:public_id>/download", views.export_download, name="export-download"),
]
