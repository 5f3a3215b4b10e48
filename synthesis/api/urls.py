"""Addresses of synthesis, below /api/v1/."""

from django.urls import path

from . import views

urlpatterns = [
    path("conversions/", views.ConversionList.as_view(), name="conversions"),
    path("conversions/<uuid:conversion>/", views.ConversionDetail.as_view(), name="conversion"),
    path("conversions/<uuid:conversion>/pause/", views.ConversionPause.as_view(), name="conversion-pause"),
    path("conversions/<uuid:conversion>/resume/", views.ConversionResume.as_view(), name="conversion-resume"),
    path("conversions/<uuid:conversion>/cancel/", views.ConversionCancel.as_view(), name="conversion-cancel"),
    path("conversions/<uuid:conversion>/retry/", views.ConversionRetry.as_view(), name="conversion-retry"),
    path("takes/<uuid:take>/audio/", views.TakeAudio.as_view(), name="take-audio"),
    path("projects/<uuid:project>/exports/", views.ExportList.as_view(), name="exports"),
    path("projects/<uuid:project>/export-presets/", views.PresetList.as_view(), name="export-presets"),
    path("projects/<uuid:project>/credits/", views.ProjectCredits.as_view(), name="credits"),
    path("exports/<uuid:export>/", views.ExportDetail.as_view(), name="export"),
    path("exports/<uuid:export>/download/", views.ExportDownload.as_view(), name="export-download"),
    path("exports/<uuid:export>/check/", views.ExportCheck.as_view(), name="export-check"),
    path("exports/<uuid:export>/check.csv", views.ExportCheckCsv.as_view(), name="export-check-csv"),
    path("exports/<uuid:export>/retry/", views.ExportRetry.as_view(), name="export-retry"),
    path("exports/<uuid:export>/cancel/", views.ExportCancel.as_view(), name="export-cancel"),
]
