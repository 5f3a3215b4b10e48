"""Routes of the editor."""

from __future__ import annotations

from django.urls import path

from . import consumers, views

urlpatterns = [
    path("", views.library, name="library"),
    path("imports/", views.upload, name="upload"),
    path("imports/<uuid:public_id>/", views.import_detail, name="import-detail"),
    path("imports/<uuid:public_id>/dismiss", views.import_dismissed, name="import-dismiss"),
    path("books/<uuid:public_id>/", views.project, name="project"),
    path("books/<uuid:public_id>/edit", views.project_edit, name="project-edit"),
    path("books/<uuid:public_id>/cover", views.cover, name="cover"),
    path("books/<uuid:public_id>/voices", views.voices, name="voices"),
    path("books/<uuid:public_id>/voice", views.project_voice, name="project-voice"),
    path("chapters/<uuid:public_id>/", views.document, name="document"),
    path("chapters/<uuid:public_id>/rows", views.document_rows, name="document-rows"),
    path("chapters/<uuid:public_id>/include", views.document_included, name="document-include"),
    path("sentences/<uuid:public_id>/", views.segment, name="segment"),
    path("sentences/<uuid:public_id>/inspector", views.segment_inspector, name="segment-inspector"),
    path("sentences/<uuid:public_id>/edit", views.segment_edit, name="segment-edit"),
    path("sentences/<uuid:public_id>/text", views.segment_text, name="segment-text"),
]

websocket_urlpatterns = [
    path("ws/documents/<uuid:public_id>/", consumers.DocumentConsumer.as_asgi()),
    path("ws/projects/<uuid:public_id>/", consumers.ProjectConsumer.as_asgi()),
    path("ws/library/", consumers.LibraryConsumer.as_asgi()),
]
