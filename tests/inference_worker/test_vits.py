"""The VITS engine on a tiny random model, through the real VitsModel and tokenizer; no download."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from inference_worker.engines.base import About, Speech, Utterance  # noqa: E402
from inference_worker.engines.vits import VitsEngine, decoder_reach  # noqa: E402
from inference_worker.errors import SpeechError  # noqa: E402

pytestmark = pytest.mark.torch

TEXTS = [
    "Hi.",
    "The quick brown fox jumps over the lazy dog.",
    "It was the best of times.",
    "a",
    "one two three four five six seven eight nine ten",
    "Short one here, and then a little more of it",
]


def build(
    folder, *, stochastic: bool = True, speakers: int = 1, vocab: str = " abcdefghijklmnopqrstuvwxyz'-_"
):
    """A random VITS of some ten thousand weights, saved as MMS saves its own."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {c: i for i, c in enumerate(["<pad>", *vocab, "<unk>"])}
    (folder / "vocab.json").write_text(json.dumps(table))
    tokenizer = transformers.VitsTokenizer(
        str(folder / "vocab.json"), pad_token="<pad>", unk_token="<unk>", language="eng",
        add_blank=True, normalize=True, phonemize=False, is_uroman=False,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.VitsConfig(
        vocab_size=len(table), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=16, flow_size=16,
        spectrogram_bins=9, upsample_initial_channel=32, upsample_rates=[8, 8, 2, 2],
        upsample_kernel_sizes=[16, 16, 4, 4], resblock_kernel_sizes=[3, 7], resblock_dilation_sizes=[[1, 3], [1, 3]],
        duration_predictor_flow_bins=4, duration_predictor_filter_channels=16, prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=1, posterior_encoder_num_wavenet_layers=1, depth_separable_num_layers=1,
        duration_predictor_num_flows=2, use_stochastic_duration_prediction=stochastic, sampling_rate=16_000,
        pad_token_id=0, num_speakers=speakers, speaker_embedding_size=8 if speakers > 1 else 0,
    )  # fmt: skip
    transformers.VitsModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build(tmp_path_factory.mktemp("vits") / "model")


class Loaded(VitsEngine):
    """An engine that remembers what it said of itself."""

    about: About


def loaded(folder, **options) -> Loaded:
    engine = Loaded({"model": str(folder), **options}, None)
    engine.about = engine.load("cpu", 1)
    return engine


def speak(engine, texts, **fields) -> list[np.ndarray]:
    out = engine.speak(
        [Utterance(t, **{"voice": engine.about.voices[0].id, **fields}) for t in texts], lambda: False
    )
    assert all(isinstance(o, Speech) for o in out), out
    return [o.samples for o in out]


@pytest.mark.parametrize("stochastic", [True, False])
def test_without_noise_a_batch_equals_single_runs_at_every_sample(tmp_path, stochastic):
    engine = loaded(build(tmp_path / "m", stochastic=stochastic), noise="0", noise_duration="0")
    assert engine.about.deterministic
    together = speak(engine, TEXTS)
    for text, sound in zip(TEXTS, together, strict=True):
        alone = speak(engine, [text])[0]
        assert len(alone) == len(sound)
        assert np.abs(alone - sound).max() < 1e-3, text  # tail included


def test_with_noise_a_seed_gives_the_same_sound_at_any_batch_size(folder):
    engine = loaded(folder)
    assert not engine.about.deterministic
    together = speak(engine, TEXTS, seed=5)
    alone = speak(engine, TEXTS[1:2], seed=5)[0]
    assert len(alone) == len(together[1])
    assert np.abs(alone - together[1]).max() < 1e-3
    other = speak(engine, TEXTS[1:2], seed=6)[0]
    assert len(other) != len(alone) or np.abs(other - alone).max() > 1e-2


def test_equals_the_plain_model_but_for_the_ends(folder):
    """Against VitsModel itself: same length, same samples where its decoder's zero padding cannot be seen."""
    engine = loaded(folder, noise="0", noise_duration="0")
    model = transformers.VitsModel.from_pretrained(folder).eval()
    model.noise_scale = model.noise_scale_duration = 0.0
    tokenizer = transformers.VitsTokenizer.from_pretrained(folder)
    edge = decoder_reach(model.config) * 256
    compared = 0
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt")
        assert ids["input_ids"][0].tolist() == engine._ids(text)
        with torch.inference_mode():
            plain = model(**ids).waveform[0].numpy()
        ours = speak(engine, [text])[0]
        assert len(plain) == len(ours)
        if len(plain) > 2 * edge:
            compared += 1
            assert np.abs(plain - ours)[edge:-edge].max() < 1e-3
    assert compared >= 2


def test_speed_changes_the_length_per_item(folder):
    engine = loaded(folder, noise="0", noise_duration="0")
    slow, fast = engine.speak(
        [Utterance(TEXTS[4], "default", speed=0.5), Utterance(TEXTS[4], "default", speed=2.0)], lambda: False
    )
    assert len(slow.samples) > 1.5 * len(fast.samples)


def test_speakers_are_voices(tmp_path):
    engine = loaded(build(tmp_path / "m", speakers=3), noise="0", noise_duration="0")
    assert [v.id for v in engine.about.voices] == ["speaker-0", "speaker-1", "speaker-2"]
    batch = [Utterance(TEXTS[1], f"speaker-{i}") for i in (0, 2, 0)]
    a, b, c = (s.samples for s in engine.speak(batch, lambda: False))
    assert np.abs(a - c).max() < 1e-3
    assert len(a) != len(b) or np.abs(a - b).max() > 1e-4
    alone = engine.speak([batch[1]], lambda: False)[0].samples
    assert np.abs(alone - b).max() < 1e-3


def test_nothing_is_dropped_silently(folder):
    engine = loaded(folder)
    out = engine.speak(
        [Utterance(t, "default") for t in ("Chapter 7", "Fine here.", "Привет", "…", "café")], lambda: False
    )
    assert [o.code if isinstance(o, SpeechError) else "ok" for o in out] == [
        "text_not_speakable", "ok", "text_not_speakable", "text_not_speakable", "text_not_speakable",
    ]  # fmt: skip
    assert "7" in out[0].message


def test_long_text_is_split_and_joined(folder):
    engine = loaded(folder, noise="0", noise_duration="0", max_chars="40")
    whole = speak(engine, ["one two three, four five six seven, eight nine ten eleven twelve. " * 3])[0]
    piece = speak(engine, ["one two three, four five six seven, "])[0]
    assert len(whole) > 4 * len(piece)


def test_engine_in_the_server_from_the_store(serve, tmp_path, store_folder, folder):
    import asyncio

    from inference_worker.store import Store

    entry = Store(store_folder).add("mms-eng", folder, engine="vits", licence="CC-BY-NC-4.0", revision="r1")
    assert entry.revision == "r1"

    async def run() -> None:
        async with serve(engine="none", model_store=store_folder, warmup_budget_s=3.0) as server:
            answer = await server.admin.post("/models?url=mms-eng&initial_workers=1&synchronous=true")
            assert answer.status_code == 200, answer.text
            answers = await asyncio.gather(
                *(server.say(t, model="mms-eng@r1", language="en-GB") for t in TEXTS)
            )
            assert [a.status_code for a in answers] == [200] * len(TEXTS)
            assert answers[0].headers["x-sample-rate"] == "16000"
            assert answers[0].headers["x-seed-exact"] == "true"
            refused = await server.say("Hallo.", model="mms-eng", language="de")
            assert refused.json()["error"]["code"] == "language_not_supported"

    asyncio.run(run())
