from django.db import migrations, models


class Migration(migrations.Migration):
    """Every format of the registry and every shop's preset; what a delivery check needs to remember."""

    dependencies = [("synthesis", "0002_flow")]

    operations = [
        migrations.AlterField(
            model_name="export",
            name="preset",
            field=models.CharField(
                choices=[
                    ("m4b", "M4B audiobook"),
                    ("acx", "ACX-style MP3 set"),
                    ("inaudio", "INaudio (Findaway) MP3 set"),
                    ("google_play", "Google Play MP3 set"),
                    ("spotify", "Spotify for Authors MP3 set"),
                    ("aggregator", "Apple and Kobo through an aggregator"),
                    ("mp3", "MP3, one file a chapter"),
                    ("epub", "EPUB 3 with read-aloud"),
                    ("epub_original", "The original EPUB with read-aloud"),
                    ("srt", "Captions (SRT)"),
                    ("vtt", "Captions (WebVTT)"),
                    ("flac", "FLAC masters"),
                    ("wav", "WAV masters"),
                    ("opus", "Opus, one file a chapter"),
                    ("transcript", "Transcript (text)"),
                    ("lpf", "W3C Audiobook"),
                    ("daw", "Reaper and Audacity hand-over"),
                ],
                default="m4b",
                max_length=20,
                verbose_name="preset",
            ),
        ),
        migrations.AddField(
            model_name="export",
            name="since",
            field=models.PositiveIntegerField(blank=True, null=True, verbose_name="changed since revision"),
        ),
        migrations.AddField(
            model_name="export",
            name="sample",
            field=models.JSONField(blank=True, default=dict, verbose_name="retail sample"),
        ),
        migrations.AddField(
            model_name="export",
            name="started_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="started"),
        ),
        migrations.AddField(
            model_name="export",
            name="details",
            field=models.JSONField(blank=True, default=dict, verbose_name="details"),
        ),
    ]
