"""HTTP doors for speech: OpenAI's, TorchServe's, health and metrics. No model library is imported here."""

from __future__ import annotations

import asyncio
import base64
import functools
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from inference_worker import metrics as metrics_room
from inference_worker.encode import FORMATS, Encoder, encode
from inference_worker.errors import SpeechError
from inference_worker.metrics import Metrics
from inference_worker.openapi import speech_document
from inference_worker.registry import Answer, Registry, Version
from inference_worker.split import sentences
from inference_worker.wire import MAX_BODY_BYTES, SpeechRequest, body_json, speech_request

log = logging.getLogger("inference_worker.server")

Handler = Callable[[Request], Awaitable[Response]]


class ClientGone(Exception):
    """Raised when the caller hung up before the answer; nothing is sent."""


class Service:
    """What the doors share: the registry, the metrics, the state of the server."""

    def __init__(self, registry: Registry, metrics: Metrics, api_key: str = "") -> None:
        self.registry = registry
        self.metrics = metrics
        self.api_key = api_key
        self.draining = False  # not ready any more, but still serving
        self.refusing = False  # takes nothing new
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="encode")
        self.inflight = 0

    @property
    def ready(self) -> bool:
        """Models loaded and warmed up, and not going down."""
        return self.registry.ready and not self.draining

    async def speak(self, request: Request, ask: SpeechRequest, revision: str = "") -> tuple[Version, Answer]:
        """Speak for as long as the caller stays. Raises SpeechError, ClientGone."""
        version = self.version(ask, revision)
        return version, await while_connected(request, self.counted(version, ask))

    def version(self, ask: SpeechRequest, revision: str = "") -> Version:
        """The version that shall answer. Raises SpeechError."""
        if self.refusing:
            raise SpeechError("draining", "The server is going down.", retry_after_s=0)
        return self.registry.find(f"{ask.model}@{revision}" if revision else ask.model)

    async def counted(self, version: Version, ask: SpeechRequest) -> Answer:
        """One spoken request, with its outcome in the metrics."""
        start = time.monotonic()
        outcome = "cancelled"
        self.inflight += 1
        try:
            answer = await version.speak(ask)
            outcome = "ok"
            return answer
        except SpeechError as exc:
            outcome = {
                "busy": "refused",
                "draining": "refused",
                "not_ready": "refused",
                "deadline_exceeded": "deadline",
                "too_long": "oom",
                "internal": "error",
            }.get(exc.code, "rejected")
            raise
        finally:
            self.inflight -= 1
            self.metrics.requests.labels(version.name, ask.lane.value, outcome).inc()
            if outcome == "ok":
                self.metrics.request_seconds.labels(ask.lane.value).observe(time.monotonic() - start)

    async def encoded(self, answer: Answer, name: str) -> bytes:
        """The answer's sound in a format; compression runs beside the event loop."""
        if name in ("wav", "pcm"):
            return encode(answer.pcm, answer.rate_hz, name)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.pool, encode, answer.pcm, answer.rate_hz, name)


async def while_connected(request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
    """Do the work unless the caller hangs up first: then it is cancelled. Raises ClientGone.

    The request's body must have been read.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        watch.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def body_read(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """The body, at most `limit` bytes. Raises SpeechError invalid_request when it is longer, ClientGone."""
    parts, size = [], 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size > limit:
                raise SpeechError("invalid_request", f"The body is larger than {limit} bytes.")
            parts.append(chunk)
    except ClientDisconnect:
        raise ClientGone from None
    return b"".join(parts)


def answer_headers(version: Version, answer: Answer) -> dict[str, str]:
    """What is told beside the sound; header values are ASCII."""
    headers = {
        "X-Model": answer.model,
        "X-Model-Revision": answer.revision,
        "X-Voice": answer.voice,
        "X-Sample-Rate": str(answer.rate_hz),
        "X-Seed": str(answer.seed),
        "X-Seed-Exact": str(answer.seed_exact).lower(),
        "X-Queue-Ms": str(answer.queue_ms),
        "X-Inference-Ms": str(answer.inference_ms),
        "X-Batch-Size": str(answer.batch_size),
        "X-Queue-Seconds": f"{answer.queue_s:.3f}",
        "X-Truncated": str(answer.truncated).lower(),
        "X-Device": answer.device,
    }
    if answer.ignored:
        headers["X-Ignored"] = ", ".join(answer.ignored)
    return {k: v.encode("ascii", "replace").decode() for k, v in headers.items()}


def error_response(error: SpeechError) -> Response:
    """OpenAI's error shape, with Retry-After where another try makes sense."""
    return JSONResponse(error.body(), error.status, headers=_retry_headers(error))


def _retry_headers(error: SpeechError) -> dict[str, str]:
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if error.code == "draining":
        headers["Connection"] = "close"
    return headers


_TORCHSERVE_KINDS = {
    400: "BadRequestException",
    401: "InvalidKeyException",
    404: "ModelNotFoundException",
    409: "ConflictStatusException",
    503: "ServiceUnavailableException",
    504: "InternalServerException",
    507: "InternalServerException",
    500: "InternalServerException",
}


def torchserve_error(error: SpeechError) -> Response:
    """TorchServe's error shape, our code beside it."""
    status = 404 if error.code == "revision_mismatch" else error.status
    kind = (
        "ModelVersionNotFoundException"
        if error.code == "revision_mismatch"
        else _TORCHSERVE_KINDS.get(status)
    )
    body = {
        "code": status,
        "type": kind or "BadRequestException",
        "message": error.message,
        "reason": error.code,
    }
    return JSONResponse(body, status, headers=_retry_headers(error))


class Doors:
    """The handlers of the speech port."""

    def __init__(self, service: Service) -> None:
        self.service = service

    # --- OpenAI -------------------------------------------------------------------------------------------

    async def speech(self, request: Request) -> Response:
        """POST /v1/audio/speech"""
        ask = speech_request(body_json(await body_read(request)), request.headers)
        if ask.stream_format:
            return await self._stream(request, ask)
        version, answer = await self.service.speak(request, ask)
        body = await self.service.encoded(answer, ask.response_format)
        mime = FORMATS[ask.response_format].mime
        return Response(body, media_type=mime, headers=answer_headers(version, answer))

    async def _stream(self, request: Request, ask: SpeechRequest) -> Response:
        """Sentence by sentence: the first is awaited, so that a refusal still has its status."""
        service = self.service
        pieces = sentences(ask.input)
        version = service.version(ask)
        version.check(ask)
        first = await while_connected(request, service.counted(version, ask.with_input(pieces[0])))
        # The whole stream is spoken by the version that began it, also when the default changes meanwhile.
        headers = answer_headers(version, first)
        sse = ask.stream_format == "sse"

        async def sound() -> AsyncIterator[bytes]:
            loop = asyncio.get_running_loop()
            encoder = Encoder(ask.response_format, first.rate_hz)
            answer: Answer | None = first
            ahead: asyncio.Task[Answer] | None = None
            total = 0
            try:
                for index in range(len(pieces)):
                    if ahead is not None:
                        answer = await ahead
                    assert answer is not None
                    if index + 1 < len(pieces):
                        ahead = asyncio.create_task(
                            service.counted(version, ask.with_input(pieces[index + 1]))
                        )
                    total += len(answer.pcm)
                    data = await loop.run_in_executor(service.pool, encoder.push, answer.pcm)
                    if data:
                        yield _delta(data) if sse else data
                ahead = None
                data = await loop.run_in_executor(service.pool, encoder.finish)
                if data:
                    yield _delta(data) if sse else data
                if sse:
                    usage = {"input_tokens": len(ask.input), "output_tokens": total // 2, "total_tokens": 0}
                    usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
                    yield _event({"type": "speech.audio.done", "usage": usage})
            except SpeechError as exc:
                if not sse:
                    raise  # the connection is cut: a short file must not pass for a whole one
                yield _event({"type": "error", **exc.body()})
            finally:
                if ahead is not None:
                    ahead.cancel()
                    await asyncio.gather(ahead, return_exceptions=True)

        mime = "text/event-stream" if sse else FORMATS[ask.response_format].mime
        return StreamingResponse(sound(), media_type=mime, headers=headers)

    async def models(self, request: Request) -> Response:
        """GET /v1/models"""
        return JSONResponse({"object": "list", "data": [self._item(v) for v in self._listed()]})

    async def model(self, request: Request) -> Response:
        """GET /v1/models/{model}"""
        return JSONResponse(self._item(self.service.registry.find(request.path_params["model"])))

    def _item(self, version: Version) -> dict[str, Any]:
        model = self.service.registry.models.get(version.name)
        return {**model_item(version), "default": model is not None and model.default_version() is version}

    def _listed(self) -> list[Version]:
        return [v for v in self.service.registry.all() if not v.closed]

    async def voices(self, request: Request) -> Response:
        """GET /v1/voices?model="""
        wanted = request.query_params.get("model", "")
        if wanted:
            versions = [self.service.registry.find(wanted)]
        else:
            defaults = [m.default_version() for m in self.service.registry.models.values()]
            versions = [v for v in defaults if v is not None]
        data = []
        for version in versions:
            for voice in version.about.get("voices", ()):
                languages = voice["languages"] or version.about["languages"]
                item = {
                    "id": voice["id"],
                    "name": voice["name"],
                    "model": version.name,
                    "revision": version.revision,
                }
                item |= {"languages": list(languages), "gender": voice["gender"], "kind": voice["kind"]}
                data.append(item)
        return JSONResponse({"object": "list", "data": data})

    # --- TorchServe ---------------------------------------------------------------------------------------

    async def predictions(self, request: Request) -> Response:
        """POST /predictions/{model}[/{version}]: JSON with "text" (or "input", "data", "body"), or the bare text."""
        try:
            fields = prediction_fields(await body_read(request), request.headers.get("content-type", ""))
            fields["model"] = request.path_params["model"]
            ask = speech_request(fields, request.headers, default_format="wav")
            version, answer = await self.service.speak(request, ask, request.path_params.get("version", ""))
        except SpeechError as exc:
            return torchserve_error(exc)
        body = await self.service.encoded(answer, ask.response_format)
        mime = FORMATS[ask.response_format].mime
        return Response(body, media_type=mime, headers=answer_headers(version, answer))

    # --- health -------------------------------------------------------------------------------------------

    async def ping(self, request: Request) -> Response:
        """GET /ping: as TorchServe's, but healthy only when every default model can speak (also when there is none)."""
        registry = self.service.registry
        healthy = registry.ready or not registry.models
        return JSONResponse({"status": "Healthy" if healthy else "Unhealthy"}, 200 if healthy else 503)

    async def live(self, request: Request) -> Response:
        """GET /live: the process answers; failing means that it should be restarted."""
        stuck = [v.name for v in self.service.registry.all() if v.failure and not v.replicas and v.loaded]
        return JSONResponse({"live": not stuck, "failed": stuck}, 503 if stuck else 200)

    async def ready(self, request: Request) -> Response:
        """GET /ready: 200 when loaded and warmed up, 503 before and while draining."""
        models = {
            f"{v.name}@{v.revision}" if v.revision else v.name: v.ready for v in self.service.registry.all()
        }
        ready = self.service.ready
        body = {"ready": ready, "draining": self.service.draining, "models": models}
        return JSONResponse(body, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics"""
        return Response(self.service.metrics.text(), media_type=metrics_room.CONTENT_TYPE)

    async def document(self, request: Request) -> Response:
        """GET /openapi.json"""
        return JSONResponse(speech_document())


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _delta(data: bytes) -> bytes:
    return _event({"type": "speech.audio.delta", "audio": base64.b64encode(data).decode()})


def model_item(version: Version) -> dict[str, Any]:
    """One version as an item of OpenAI's model list."""
    about = version.about
    return {
        "id": version.name,
        "object": "model",
        "created": int(version.started_at),
        "owned_by": "local",
        "revision": version.revision,
        "engine": version.spec.engine,
        "pool_hint": about.get("pool_hint", "cpu"),
        "sample_rate": about.get("sample_rate", 0),
        "languages": list(about.get("languages", ())),
        "licence": about.get("licence", ""),
        "ready": version.ready,
    }


def prediction_fields(body: bytes, content_type: str) -> dict[str, Any]:
    """What a TorchServe caller sent, as the fields of a speech request. Raises SpeechError invalid_request."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json" or (kind != "text/plain" and body.lstrip()[:1] == b"{"):
        data = body_json(body)
    else:
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError:
            raise SpeechError("invalid_request", "The body is not UTF-8 text.") from None
        if kind == "application/x-www-form-urlencoded" and text.partition("=")[0] in (
            "data",
            "body",
            "text",
            "input",
        ):
            data = {k: v[0] for k, v in parse_qs(text, max_num_fields=50).items()}
        else:
            data = {"input": text}
    for name in ("text", "data", "body"):
        if "input" not in data and name in data:
            data["input"] = data[name]
    return data


def guarded(service: Service, handler: Handler, *, key: bool = False) -> Handler:
    """A handler whose errors are answers, and which asks for the API key where one is set."""

    @functools.wraps(handler)
    async def inner(request: Request) -> Response:
        try:
            if key and service.api_key and not bearer_is(request, service.api_key):
                raise SpeechError("unauthorized", "A valid API key is needed.")
            return await handler(request)
        except SpeechError as exc:
            return error_response(exc)
        except ClientGone:
            return PlainTextResponse("", 499)

    return inner


def bearer_is(request: Request, secret: str) -> bool:
    """Whether the Authorization header carries the secret; compared in constant time."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), secret.encode())


async def _http_error(request: Request, exc: Exception) -> Response:
    status = exc.status_code if isinstance(exc, HTTPException) else 500
    message = {404: "There is nothing at this address.", 405: "This method is not allowed here."}.get(
        status, "Error."
    )
    body = {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "code": "invalid_request",
            "param": None,
        }
    }
    headers = exc.headers if isinstance(exc, HTTPException) else None
    return JSONResponse(body, status, headers=headers)


async def _crash(request: Request, exc: Exception) -> Response:
    log.exception("unexpected error", exc_info=exc)
    return error_response(SpeechError("internal", "The server made a mistake; it is in its log."))


def speech_app(service: Service) -> Starlette:
    """The application of the speech port."""
    doors = Doors(service)

    def route(path: str, handler: Handler, method: str = "GET", *, key: bool = False) -> Route:
        return Route(path, guarded(service, handler, key=key), methods=[method])

    return Starlette(
        routes=[
            route("/v1/audio/speech", doors.speech, "POST", key=True),
            route("/v1/models", doors.models, key=True),
            route("/v1/models/{model}", doors.model, key=True),
            route("/v1/voices", doors.voices, key=True),
            route("/predictions/{model}", doors.predictions, "POST", key=True),
            route("/predictions/{model}/{version}", doors.predictions, "POST", key=True),
            route("/ping", doors.ping),
            route("/live", doors.live),
            route("/ready", doors.ready),
            route("/metrics", doors.metrics),
            route("/openapi.json", doors.document),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _crash},
    )


def metrics_app(service: Service) -> Starlette:
    """The application of the metrics port: this server's metrics and, where there is one, the GPU's."""
    service.metrics.watch(metrics_room.nvml_samples)
    doors = Doors(service)
    return Starlette(routes=[Route("/metrics", doors.metrics)])
