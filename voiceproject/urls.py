"""Route tables: pages, REST, admin, websockets."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import include, path
from django.utils.translation import gettext_lazy as _
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from projects.web.urls import urlpatterns as projects_urls
from projects.web.urls import websocket_urlpatterns as projects_sockets
from synthesis.web.urls import urlpatterns as synthesis_urls
from voiceproject import health

admin.site.site_header = admin.site.site_title = _("Voice Project")
admin.site.index_title = _("Review and operation")

urlpatterns = [
    path("", include((projects_urls, "projects"))),
    path("", include((synthesis_urls, "synthesis"))),
    path("sign-in/", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("sign-out/", auth_views.LogoutView.as_view(), name="logout"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="api-docs"),
    path("api/v1/", include("voiceproject.api_urls")),
    path("admin/", admin.site.urls),
]

websocket_urlpatterns = projects_sockets
