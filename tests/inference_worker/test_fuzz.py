"""Requests made up from our own OpenAPI document and from noise: no 5xx but the honest ones, no leak of paths."""

import asyncio
import json
import threading
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference_worker.openapi import speech_document

HONEST = {500: False, 503: True, 504: True, 507: True}
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """A server in its own thread, so that Hypothesis can call it without an event loop."""
    from inference_worker.config import ServerConfig
    from inference_worker.run import _server, _socket, build, start_models
    from inference_worker.server import speech_app

    started, stop, where = threading.Event(), threading.Event(), {}

    async def main() -> None:
        config = ServerConfig(engine="fake", warmup_budget_s=0.3, threads=1)
        service = build(config)
        for port in range(25_500, 26_500):
            try:
                sock = _socket("127.0.0.1", port)
                break
            except OSError:
                continue
        server = _server(speech_app(service))
        task = asyncio.create_task(server.serve(sockets=[sock]))
        start_models(service, config)
        while not service.registry.ready:
            await asyncio.sleep(0.01)
        where["url"] = f"http://127.0.0.1:{port}"
        started.set()
        while not stop.is_set():
            await asyncio.sleep(0.05)
        await service.registry.close()
        server.should_exit = True
        await task

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(20)
    yield where["url"]
    stop.set()
    thread.join(10)


def honest(status: int, text: str) -> None:
    assert status < 500 or HONEST.get(status), (status, text[:300])
    for leak in ("Traceback", "site-packages", "/home/", '.py"', ", line "):
        assert leak not in text, text[:300]


def test_made_up_from_the_document(base_url):
    schema = schemathesis.openapi.from_dict(speech_document())
    schema.config.update(base_url=base_url)
    seen = set()
    for operation in schema.get_all_operations():
        op = operation.ok()

        @QUICK
        @given(case=op.as_strategy())
        def run(case):
            response = case.call(base_url=base_url)
            seen.add((case.operation.label, response.status_code))
            honest(response.status_code, response.text if response.status_code >= 400 else "")
            if response.status_code >= 400 and response.status_code != 404:
                body = response.json()
                assert "error" in body or {"code", "type", "message"} <= body.keys()

        run()
    assert ("POST /v1/audio/speech", 200) in seen or ("POST /v1/audio/speech", 404) in seen


fields = st.dictionaries(
    st.sampled_from(
        ["model", "input", "voice", "speed", "seed", "language", "response_format", "stream_format", "x"]
    ),
    st.one_of(
        st.text(max_size=40),
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.sampled_from(["fake", "tone", "wav", "mp3", "sse", "audio", "en", "Hello there."]),
        st.lists(st.integers(), max_size=2),
        st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    ),
)


@QUICK
@given(body=fields)
def test_any_fields(base_url, body):
    answer = httpx.post(f"{base_url}/v1/audio/speech", content=json.dumps(body), timeout=30)
    honest(answer.status_code, answer.text if answer.status_code >= 400 else "")


@QUICK
@given(body=st.binary(max_size=300), kind=st.sampled_from(["application/json", "text/plain", "x", ""]))
def test_any_bytes(base_url, body, kind):
    for path in ("/v1/audio/speech", "/predictions/fake", "/predictions/fake/fake-1"):
        answer = httpx.post(base_url + path, content=body, headers={"content-type": kind}, timeout=30)
        honest(answer.status_code, answer.text if answer.status_code >= 400 else "")


@QUICK
@given(
    text=st.text(min_size=1, max_size=60),
    name=st.sampled_from(["wav", "flac", "mp3", "opus", "aac", "pcm"]),
    stream=st.sampled_from([None, "audio", "sse"]),
)
def test_any_text_is_spoken_or_refused(base_url, text, name, stream):
    body = {"model": "fake", "input": text, "response_format": name}
    if stream:
        body["stream_format"] = stream
    answer = httpx.post(f"{base_url}/v1/audio/speech", json=body, timeout=30)
    assert answer.status_code in (200, 400, 422)
    if answer.status_code == 200:
        assert answer.content


@QUICK
@given(
    priority=st.sampled_from(["interactive", "bulk", "BULK", "now", ""]),
    deadline=st.one_of(st.integers(-5, 10**13).map(str), st.sampled_from(["", "1e3", "soon", "٣"])),
    job=st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=300),
)
def test_any_headers(base_url, priority, deadline, job):
    headers = {"X-Priority": priority, "X-Deadline-Ms": deadline.encode(), "X-Job": job}
    body = {"model": "fake", "input": "Hello.", "response_format": "pcm"}
    answer = httpx.post(f"{base_url}/v1/audio/speech", json=body, headers=headers, timeout=30)
    assert answer.status_code in (200, 400, 504)
