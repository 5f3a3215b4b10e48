"""Addresses of books, below /api/v1/."""

from django.urls import path

from . import views

urlpatterns = [
    path("projects/", views.ProjectList.as_view(), name="projects"),
    path("projects/<uuid:project>/", views.ProjectDetail.as_view(), name="project"),
    path("projects/<uuid:project>/voice/", views.ProjectVoice.as_view(), name="project-voice"),
    path("projects/<uuid:project>/documents/", views.DocumentList.as_view(), name="documents"),
    path("imports/", views.ImportList.as_view(), name="imports"),
    path("imports/<uuid:public_id>/", views.ImportDetail.as_view(), name="import"),
    path("documents/<uuid:document>/", views.DocumentDetail.as_view(), name="document"),
    path("documents/<uuid:document>/segments/", views.SegmentList.as_view(), name="segments"),
    path("segments/<uuid:segment>/", views.SegmentDetail.as_view(), name="segment"),
    path("segments/<uuid:segment>/takes/", views.TakeList.as_view(), name="takes"),
    path("takes/<uuid:take>/", views.TakeDetail.as_view(), name="take"),
    path("takes/<uuid:take>/choose/", views.TakeChoose.as_view(), name="take-choose"),
    path("voices/", views.VoiceList.as_view(), name="voices"),
    path("voices/<uuid:voice>/", views.VoiceDetail.as_view(), name="voice"),
]
