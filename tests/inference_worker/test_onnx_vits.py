"""The ONNX engine on a tiny graph with Piper's inputs, exported here; no download."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx", reason="the package onnx is not installed (needed to build the test's graph)")

import torch

from inference_worker.engines.base import Speech, Utterance
from inference_worker.engines.onnx_vits import OnnxVitsEngine
from inference_worker.errors import SpeechError

pytestmark = pytest.mark.torch
HOP = 64


class Toy(torch.nn.Module):
    """A tone per letter: as many samples per id as the length scale says."""

    def __init__(self, lengths: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(40, HOP)
        self.lengths = lengths

    def forward(self, input, input_lengths, scales, sid):
        wave = self.table(input).tanh() / (scales[1] * (1 + sid.float().view(-1, 1, 1)))
        wave = wave.reshape(input.shape[0], 1, -1)
        return (wave, input_lengths * HOP) if self.lengths else wave


def build(folder, *, lengths: bool = True, kind: str = "text"):
    folder.mkdir(parents=True, exist_ok=True)
    ids = torch.ones(2, 7, dtype=torch.long)
    example = (ids, torch.tensor([7, 5]), torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0, 1]))
    names = ["input", "input_lengths", "scales", "sid"]
    axes = {"input": {0: "b", 1: "t"}, "input_lengths": {0: "b"}, "sid": {0: "b"}}
    outputs = ["output", "lengths"] if lengths else ["output"]
    torch.onnx.export(
        Toy(lengths).eval(), example, str(folder / "voice.onnx"), input_names=names, output_names=outputs,
        dynamic_axes=axes, dynamo=False,
    )  # fmt: skip
    table = {c: [i] for i, c in enumerate("_^$ abcdefghijklmnopqrstuvwxyz.,'")}
    config = {
        "audio": {"sample_rate": 16_000}, "phoneme_type": kind, "phoneme_id_map": table, "num_speakers": 2,
        "speaker_id_map": {"anna": 0, "ben": 1}, "language": {"code": "en_GB"},
        "inference": {"noise_scale": 0.0, "length_scale": 1.0, "noise_w": 0.0},
    }  # fmt: skip
    (folder / "voice.onnx.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("lengths", [True, False])
def test_batches_equal_single_runs(tmp_path, lengths):
    engine = OnnxVitsEngine({"model": str(build(tmp_path / "m", lengths=lengths))}, None)
    about = engine.load("cpu", 1)
    assert about.languages == ("en-GB",)
    assert [v.id for v in about.voices] == ["anna", "ben"]
    assert (about.max_batch > 1) == lengths
    batch = [
        Utterance(t, v) for t, v in [("Hello there.", "anna"), ("Yes", "ben"), ("A longer one, this", "anna")]
    ]
    together = engine.speak(batch, lambda: False)
    for u, speech in zip(batch, together, strict=True):
        assert isinstance(speech, Speech)
        alone = engine.speak([u], lambda: False)[0]
        assert np.abs(alone.samples - speech.samples).max() < 1e-4
        assert len(speech.samples) == HOP * (2 * len(u.text) + 3)


def test_nothing_is_dropped_silently(tmp_path):
    engine = OnnxVitsEngine({"model": str(build(tmp_path / "m"))}, None)
    engine.load("cpu", 1)
    out = engine.speak([Utterance("Room 7", "anna"), Utterance("Fine!", "anna")], lambda: False)
    assert isinstance(out[0], SpeechError)
    assert "7" in out[0].message
    assert isinstance(out[1], Speech)


def test_espeak_voices_are_refused_with_the_reason(tmp_path):
    engine = OnnxVitsEngine({"model": str(build(tmp_path / "m", kind="espeak"))}, None)
    with pytest.raises(RuntimeError, match="espeak"):
        engine.load("cpu", 1)
