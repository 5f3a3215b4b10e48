"""The speech port with the fake engine: what goes in, what comes out, what is refused and how."""

import asyncio
import base64
import io
import json
import wave

import av
import httpx
import numpy as np
import openai
import pytest


def wav(data: bytes) -> tuple[np.ndarray, int]:
    with wave.open(io.BytesIO(data)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()


async def test_sound_and_headers(serve):
    async with serve() as server:
        answer = await server.say("Hello there.", model="fake", voice="low", seed=7)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "audio/wav"
        samples, rate = wav(answer.content)
        assert rate == 24_000
        assert len(samples) == pytest.approx(12 * 0.06 * 24_000, abs=1)
        assert np.abs(samples).max() > 3000
        h = answer.headers
        assert (h["x-model"], h["x-model-revision"], h["x-voice"]) == ("fake", "fake-1", "low")
        assert (h["x-seed"], h["x-sample-rate"], h["x-truncated"], h["x-device"]) == (
            "7",
            "24000",
            "false",
            "cpu",
        )
        assert int(h["x-batch-size"]) == 1
        assert float(h["x-queue-seconds"]) >= 0
        assert int(h["x-queue-ms"]) >= 0
        again = await server.say("Hello there.", model="fake@fake-1", voice="low", seed=7)
        assert again.content == answer.content
        other = await server.say("Hello there.", model="fake", voice="low", seed=8)
        assert other.content != answer.content


async def test_formats_decode_to_the_same_length(serve):
    async with serve() as server:
        for name in ("wav", "flac", "mp3", "opus", "aac", "pcm"):
            answer = await server.say("A line of forty characters, or nearly so", response_format=name)
            assert answer.status_code == 200
            if name == "pcm":
                seconds = len(answer.content) / 2 / 24_000
            else:
                with av.open(io.BytesIO(answer.content)) as file:
                    seconds = sum(f.samples / f.sample_rate for f in file.decode(audio=0))
            assert seconds == pytest.approx(40 * 0.06, abs=0.12), name


REFUSALS = [
    ({"input": ""}, 400, "invalid_request", "input"),
    ({"input": "…!"}, 422, "text_not_speakable", "input"),
    ({"input": "a\x00b"}, 400, "invalid_request", "input"),
    ({"input": ["a"]}, 400, "invalid_request", "input"),
    ({"model": "nobody"}, 404, "model_not_found", "model"),
    ({"model": "fake@other"}, 409, "revision_mismatch", "model"),
    ({"voice": "nobody"}, 404, "voice_not_found", "voice"),
    ({"language": "de"}, 400, "language_not_supported", "language"),
    ({"language": "not a tag"}, 400, "invalid_request", "language"),
    ({"speed": 9}, 400, "invalid_request", "speed"),
    ({"speed": True}, 400, "invalid_request", "speed"),
    ({"seed": -1}, 400, "invalid_request", "seed"),
    ({"response_format": "midi"}, 400, "invalid_request", "response_format"),
    ({"stream_format": "tape"}, 400, "invalid_request", "stream_format"),
    ({"input": "Wait <break time='1s'/> here"}, 400, "markup_not_supported", "input"),
    ({"input": "<speak>Hello</speak>"}, 400, "markup_not_supported", "input"),
    ({"input": "word " * 2000}, 507, "too_long", "input"),
    ({"input": "please fail"}, 422, "text_not_speakable", "input"),
]


async def test_refusals(serve):
    async with serve(options={"languages": "en-US", "error_on": "please fail"}) as server:
        for fields, status, code, param in REFUSALS:
            answer = await server.say(**{"text": "Hello.", **fields})
            assert answer.status_code == status, fields
            error = answer.json()["error"]
            assert (error["code"], error["param"]) == (code, param), fields
            if code == "language_not_supported":
                assert "en-US" in error["message"]
            if code == "markup_not_supported":
                assert "<break>" in error["message"] or "<speak>" in error["message"]


async def test_comparison_signs_are_not_markup(serve):
    async with serve() as server:
        assert (await server.say("If a < b and c > d, then a<b.")).status_code == 200


async def test_any_english_fits_english(serve):
    async with serve(options={"languages": "en-US"}) as server:
        for language in ("en", "en-GB", "en_AU", ""):
            assert (await server.say("Hello.", language=language)).status_code == 200


async def test_unusable_fields_are_named(serve):
    async with serve() as server:
        answer = await server.say("Hello.", instructions="softly", context_before="He sighed.")
        assert answer.headers["x-ignored"] == "instructions, context"


async def test_models_and_voices(serve):
    async with serve(aliases={"tts-1": "fake"}) as server:
        item = (await server.http.get("/v1/models")).json()["data"][0]
        assert item["id"] == "fake"
        assert item["ready"] is True
        assert item["revision"] == "fake-1"
        assert item["pool_hint"] == "cpu"
        assert item["sample_rate"] == 24_000
        assert (await server.http.get("/v1/models/fake")).json() == item
        voices = (await server.http.get("/v1/voices", params={"model": "fake"})).json()["data"]
        assert [v["id"] for v in voices] == ["tone", "low", "high"]
        assert voices[0].keys() == {"id", "name", "model", "revision", "languages", "gender", "kind"}
        assert (await server.http.get("/v1/voices", params={"model": "x"})).status_code == 404
        assert (await server.say("Hi there.", model="tts-1")).headers["x-model"] == "fake"


async def test_torchserve_callers(serve):
    async with serve() as server:
        for args in (
            {"json": {"text": "Hello there."}},
            {"json": {"data": "Hello there."}},
            {"content": b"Hello there.", "headers": {"content-type": "text/plain"}},
            {"content": b"Hello there.", "headers": {"content-type": "application/x-www-form-urlencoded"}},
            {"data": {"data": "Hello there."}},
            {"content": b'{"text": "Hello there."}'},
        ):
            answer = await server.http.post("/predictions/fake", **args)
            assert answer.status_code == 200, args
            assert answer.content[:4] == b"RIFF"
        assert (await server.http.post("/predictions/fake/fake-1", json={"text": "Hi"})).status_code == 200
        missing = await server.http.post("/predictions/nobody", json={"text": "Hi"})
        assert missing.status_code == 404
        assert missing.json()["type"] == "ModelNotFoundException"
        version = await server.http.post("/predictions/fake/9", json={"text": "Hi"})
        assert version.json()["type"] == "ModelVersionNotFoundException"
        assert (await server.http.get("/ping")).json() == {"status": "Healthy"}


async def test_health_while_loading(serve):
    async with serve(wait=False, options={"load_ms": "700"}) as server:
        async with asyncio.timeout(5):
            while True:
                try:
                    assert (await server.http.get("/live")).status_code == 200
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.01)
        assert (await server.http.get("/ready")).status_code == 503
        assert (await server.http.get("/ping")).status_code == 503
        early = await server.say("Hello.")
        assert early.status_code == 503
        assert early.json()["error"]["code"] == "not_ready"
        assert int(early.headers["retry-after"]) > 0
        await server.ready()
        assert (await server.http.get("/ready")).status_code == 200
        server.service.draining = True
        assert (await server.http.get("/ready")).status_code == 503
        assert (await server.say("Hello.")).status_code == 200


async def test_official_client(serve):
    async with serve() as server:
        client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        speech = await client.audio.speech.create(model="fake", voice="tone", input="Hello there, client.")
        with av.open(io.BytesIO(speech.content)) as file:
            assert file.streams.audio[0].codec_context.name.startswith("mp3")
        text = "This is the first sentence of all. And here is the second one, just as long. A third ends it now."
        async with client.audio.speech.with_streaming_response.create(
            model="fake", voice="tone", input=text, response_format="pcm", stream_format="audio"
        ) as stream:
            chunks = [c async for c in stream.iter_bytes(4096)]
        assert len(b"".join(chunks)) / 2 / 24_000 == pytest.approx(len(text) * 0.06, abs=0.1)
        assert [m.id for m in (await client.models.list()).data] == ["fake"]
        with pytest.raises(openai.NotFoundError) as caught:
            await client.audio.speech.create(model="nobody", voice="tone", input="Hello")
        assert caught.value.code == "model_not_found"
        await client.close()


async def test_server_sent_events_arrive_while_the_rest_is_made(serve):
    text = "This is the first sentence of all. " * 4
    async with serve(options={"delay_ms": "300"}) as server:
        body = {"input": text, "response_format": "pcm", "stream_format": "sse"}
        times, audio, events = [], b"", []
        loop = asyncio.get_running_loop()
        async with server.http.stream("POST", "/v1/audio/speech", json=body) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line[6:])
                    events.append(event["type"])
                    times.append(loop.time())
                    audio += base64.b64decode(event.get("audio", ""))
        assert events == ["speech.audio.delta"] * 4 + ["speech.audio.done"]
        assert times[-1] - times[0] > 0.6
        assert len(audio) / 2 / 24_000 == pytest.approx(len(text) * 0.06, abs=0.1)


async def test_stream_that_breaks_does_not_pass_for_whole(serve):
    text = "This is the first sentence of all. Now this one shall fail here."
    async with serve(options={"error_on": "shall fail"}) as server:
        body = {"input": text, "response_format": "pcm", "stream_format": "audio"}
        with pytest.raises(httpx.RemoteProtocolError):
            await server.http.post("/v1/audio/speech", json=body)
        sse = await server.http.post("/v1/audio/speech", json={**body, "stream_format": "sse"})
        assert '"code":"text_not_speakable"' in sse.text
        assert "speech.audio.done" not in sse.text


async def test_api_key(serve):
    async with serve() as server:
        server.service.api_key = "secret"
        assert (await server.say("Hello.")).status_code == 401
        assert (await server.say("Hello.", headers={"Authorization": "Bearer wrong"})).status_code == 401
        assert (await server.say("Hello.", headers={"Authorization": "Bearer secret"})).status_code == 200
        assert (await server.http.get("/live")).status_code == 200


async def test_unknown_addresses_and_methods(serve):
    async with serve() as server:
        assert (await server.http.get("/nothing")).json()["error"]["code"] == "invalid_request"
        assert (await server.http.get("/v1/audio/speech")).status_code == 405
        big = await server.http.post("/v1/audio/speech", content=b"x" * (2 << 20))
        assert big.status_code == 400


async def test_metrics(serve):
    async with serve() as server:
        await server.say("Hello there.")
        for url in (f"{server.url}/metrics", f"{server.metrics_url}/metrics"):
            text = (await server.http.get(url)).text
            assert 'tts_requests_total{lane="bulk",model="fake",outcome="ok"} 1.0' in text
            for name in (
                "tts_queue_jobs", "tts_queue_seconds", "tts_batch_seconds_bucket", "tts_batch_items_bucket",
                "tts_batch_fill_ratio_bucket", "tts_audio_seconds_total", "tts_rtf", "tts_device_busy_seconds_total",
                "tts_model_ready", "tts_queue_wait_seconds_bucket", "tts_gpu_memory_bytes",
            ):  # fmt: skip
                assert name in text, name
