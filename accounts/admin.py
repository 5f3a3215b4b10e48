"""People and tokens for operators."""

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.utils.translation import gettext_lazy as _

from .models import ApiToken, User


@admin.register(User)
class StudioUserAdmin(UserAdmin):
    show_full_result_count = False
    list_display = ("username", "email", "first_name", "last_name", "is_staff", "is_active", "last_login")
    readonly_fields = ("public_id", "last_login", "date_joined")
    fieldsets = (*(UserAdmin.fieldsets or ()), (_("Studio"), {"fields": ("public_id", "time_zone")}))


@admin.register(ApiToken)
class ApiTokenAdmin(admin.ModelAdmin):
    show_full_result_count = False
    list_display = ("name", "prefix", "user", "scope", "created_at", "last_used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("name", "prefix", "user__username")
    autocomplete_fields = ("user",)
    readonly_fields = ("prefix", "created_at", "last_used_at")

    def has_add_permission(self, request: object) -> bool:
        return False  # a token's secret is shown once, to its owner: `manage.py` or the API make it
