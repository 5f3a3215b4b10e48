"""The child's own parts: its messages, the batch size it chooses, its samples."""

import io

import numpy as np
import pytest

from inference_worker import frames
from inference_worker.child import is_device_fault, is_out_of_memory, knee_of, to_pcm, warm_up
from inference_worker.engines import engine_class, engine_names
from inference_worker.engines.base import About, VoiceInfo
from inference_worker.errors import DeviceFault, OutOfMemory


def test_messages_survive_the_pipe():
    data = frames.pack({"op": "x", "text": "größer"}, b"tail") + frames.pack({"op": "y"})
    stream = io.BytesIO(data)
    assert frames.read(stream) == ({"op": "x", "text": "größer"}, b"tail")
    assert frames.read(stream) == ({"op": "y"}, b"")
    assert frames.read(stream) is None
    assert frames.read(io.BytesIO(data[:-1][:20])) is None  # cut inside a message


@pytest.mark.parametrize(
    ("table", "knee"),
    [
        ([(1, 0.2)], 1),
        ([(1, 0.213), (2, 0.19), (4, 0.160), (8, 0.175)], 4),
        ([(1, 0.100), (2, 0.098), (4, 0.097)], 1),  # nothing gained: small batches keep previews short
        ([(1, 1.0), (8, 0.13), (16, 0.07), (32, 0.04), (64, 0.039)], 32),
    ],
)
def test_knee(table, knee):
    assert knee_of(table) == knee


def test_warm_up_stops_where_memory_ends():
    engine = engine_class("fake")({"oom_above": "400", "delay_ms_per_char": "0.01"}, None)
    measured = warm_up(engine, engine.load("cpu", 1), 5.0)
    assert max(n for n, _ in measured["table"]) == 4  # 4 × 89 characters fit, 8 do not
    assert measured["seconds_per_char"] == pytest.approx(0.0566, abs=0.01)


def test_faults_are_told_by_kind():
    assert is_out_of_memory(OutOfMemory())
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(type("OutOfMemoryError", (RuntimeError,), {})())
    assert not is_out_of_memory(RuntimeError("x"))
    assert is_device_fault(DeviceFault())
    assert is_device_fault(RuntimeError("CUDA error: an illegal memory access was encountered"))
    assert not is_device_fault(ValueError("x"))


def test_samples_are_clipped_not_wrapped():
    pcm = np.frombuffer(to_pcm(np.array([0.0, 1.0, -1.0, 3.0, -3.0], np.float32)), "<i2")
    assert pcm.tolist() == [0, 32767, -32767, 32767, -32767]


def test_every_engine_file_is_found_and_unknown_names_are_not_imported():
    assert {"fake", "kokoro", "onnx_vits", "qwen3_tts", "vits"} <= set(engine_names())
    for name in ("base", "os", "../fake", "fake.x", ""):
        with pytest.raises(LookupError):
            engine_class(name)


def test_about_survives_the_pipe_and_a_newer_child():
    about = About("e", "r", 16_000, ("en",), (VoiceInfo("v", "V", ("en",)),), batch_by=("speed",))
    assert About.from_wire({**about.to_wire(), "unknown": 1}) == about
