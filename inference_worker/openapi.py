"""The speech port described as OpenAPI 3.1; tests fuzz the server with it."""

from __future__ import annotations

from typing import Any

from inference_worker import __version__
from inference_worker.encode import FORMATS
from inference_worker.errors import STATUS

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code", "param"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": "string", "enum": sorted(STATUS)},
                "param": {"type": ["string", "null"]},
            },
        }
    },
}
_TORCHSERVE_ERROR = {
    "type": "object",
    "required": ["code", "type", "message"],
    "properties": {"code": {"type": "integer"}, "type": {"type": "string"}, "message": {"type": "string"}},
}
_SPEECH = {
    "type": "object",
    "required": ["input"],
    "properties": {
        "model": {"type": "string", "maxLength": 200, "description": "“name” or “name@revision”"},
        "input": {"type": "string", "minLength": 1, "maxLength": 100000},
        "voice": {"type": "string", "maxLength": 200},
        "instructions": {"type": "string", "maxLength": 4096},
        "speed": {"type": "number", "minimum": 0.25, "maximum": 4.0, "default": 1.0},
        "response_format": {"type": "string", "enum": list(FORMATS), "default": "mp3"},
        "stream_format": {"type": "string", "enum": ["audio", "sse"]},
        "language": {"type": "string", "maxLength": 35, "description": "BCP 47"},
        "seed": {"type": "integer", "minimum": 0, "maximum": 2147483647},
        "context_before": {"type": "string", "maxLength": 4096},
        "context_after": {"type": "string", "maxLength": 4096},
    },
}
_HEADERS = [
    {
        "name": "X-Priority",
        "in": "header",
        "schema": {"type": "string", "enum": ["interactive", "bulk"]},
        "description": "interactive: a person waits",
    },
    {"name": "X-Job", "in": "header", "schema": {"type": "string", "pattern": "^[a-z0-9-]{1,40}$"}},
    {
        "name": "X-Deadline-Ms",
        "in": "header",
        "schema": {"type": "integer", "minimum": 0, "maximum": 3600000},
        "description": "milliseconds that remain",
    },
]


def _errors(schema: dict[str, Any], *codes: int) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {str(c): {"description": "refused", "content": content} for c in codes}


def _sound() -> dict[str, Any]:
    mimes = sorted({f.mime for f in FORMATS.values()} | {"text/event-stream"})
    return {
        "description": "sound",
        "content": {m: {"schema": {"type": "string", "format": "binary"}} for m in mimes},
    }


def _json(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": {"type": "object"}}}}


def speech_document() -> dict[str, Any]:
    """The whole document."""
    refusals = _errors(_ERROR, 400, 401, 404, 405, 409, 422, 500, 503, 504, 507)
    torch_refusals = _errors(_TORCHSERVE_ERROR, 400, 404, 422, 500, 503, 504, 507)
    name = {"in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 100}}
    prediction = {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object", "properties": {"text": {"type": "string"}}}
                },
                "text/plain": {"schema": {"type": "string"}},
            },
        },
        "responses": {"200": _sound(), **torch_refusals, **_errors(_ERROR, 401, 405)},
    }
    health = {"200": _json("yes"), "503": _json("not now"), **_errors(_ERROR, 405)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Inference worker", "version": __version__},
        "paths": {
            "/v1/audio/speech": {
                "post": {
                    "parameters": _HEADERS,
                    "requestBody": {"required": True, "content": {"application/json": {"schema": _SPEECH}}},
                    "responses": {"200": _sound(), **refusals},
                }
            },
            "/v1/models": {"get": {"responses": {"200": _json("models"), **_errors(_ERROR, 401, 405)}}},
            "/v1/voices": {
                "get": {
                    "parameters": [{"name": "model", "in": "query", "schema": {"type": "string"}}],
                    "responses": {"200": _json("voices"), **_errors(_ERROR, 401, 404, 405, 409, 503)},
                }
            },
            "/predictions/{model}": {"post": {"parameters": [{"name": "model", **name}], **prediction}},
            "/predictions/{model}/{version}": {
                "post": {"parameters": [{"name": "model", **name}, {"name": "version", **name}], **prediction}
            },
            "/ping": {"get": {"responses": health}},
            "/live": {"get": {"responses": health}},
            "/ready": {"get": {"responses": health}},
        },
    }
