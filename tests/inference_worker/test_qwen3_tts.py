"""Qwen3-TTS through the real Qwen3TTSModel.from_pretrained, on a tiny random model built here; no download.

Skipped, loudly, where the package qwen-tts is not installed: it pins a transformers of its own.
"""

import importlib.util
import json
import wave

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if importlib.util.find_spec("qwen_tts") is None:
    pytest.skip("qwen-tts is not installed: see docs/inference-worker.md", allow_module_level=True)

from inference_worker import qwen3_fast  # noqa: E402
from inference_worker.engines import qwen3_tts  # noqa: E402
from inference_worker.engines.base import Speech, Utterance  # noqa: E402
from inference_worker.engines.qwen3_tts import Qwen3TtsEngine, _library  # noqa: E402
from inference_worker.errors import SpeechError  # noqa: E402

pytestmark = pytest.mark.torch
TEXTS = ["Hi.", "The quick brown fox jumps over the lazy dog.", "A short one."]
MOST = 2.0  # seconds


def _tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import Qwen2TokenizerFast

    alphabet = pre_tokenizers.ByteLevel.alphabet()
    base = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(sorted(alphabet))}, merges=[]))
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = decoders.ByteLevel()
    out = Qwen2TokenizerFast(
        tokenizer_object=base, eos_token="<|im_end|>", pad_token="<|endoftext|>", unk_token=None
    )
    out.add_special_tokens(
        {"additional_special_tokens": ["<|im_start|>", "<tts_pad>", "<tts_bos>", "<tts_eos>"]}
    )
    out.add_tokens(["assistant", "user"])  # the chat template's pieces must be one token each
    return out


def build(folder, kind: str):
    """A random model small enough for a test, saved in the published layout."""
    _library()
    from qwen_tts.core import Qwen3TTSTokenizerV2Config, Qwen3TTSTokenizerV2Model
    from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration, Qwen3TTSProcessor
    from transformers import EncodecFeatureExtractor

    tokenizer = _tokenizer()
    groups, book = 4, 64
    token = tokenizer.convert_tokens_to_ids
    small = {
        "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    }  # fmt: skip
    talker = {
        **small, "num_hidden_layers": 2, "vocab_size": 1024 + book, "num_code_groups": groups, "text_hidden_size": 32,
        "text_vocab_size": len(tokenizer) + 8,
        "code_predictor_config": {**small, "num_hidden_layers": 1, "vocab_size": book, "num_code_groups": groups},
        "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "interleaved": True},
        "spk_id": {"vivian": [book + 7], "ryan": [book + 8]}, "spk_is_dialect": {"vivian": False, "ryan": False},
        "codec_language_id": {"english": book + 9, "chinese": book + 10}, "pad_token_id": book + 1,
        "codec_eos_token_id": book, "codec_pad_id": book + 1, "codec_bos_id": book + 2, "codec_think_id": book + 3,
        "codec_nothink_id": book + 4, "codec_think_bos_id": book + 5, "codec_think_eos_id": book + 6,
    }  # fmt: skip
    speaker = {
        "enc_dim": 32, "enc_channels": [16, 16, 16, 16, 48], "enc_attention_channels": 8, "enc_res2net_scale": 4,
        "enc_se_channels": 8,
    }  # fmt: skip
    config = Qwen3TTSConfig(
        talker_config=talker, speaker_encoder_config=speaker, tokenizer_type="qwen3_tts_tokenizer_12hz",
        tts_model_size="1b7", tts_model_type=kind, im_start_token_id=token("<|im_start|>"),
        im_end_token_id=token("<|im_end|>"), tts_pad_token_id=token("<tts_pad>"),
        tts_bos_token_id=token("<tts_bos>"), tts_eos_token_id=token("<tts_eos>"),
    )  # fmt: skip
    torch.manual_seed(0)
    Qwen3TTSForConditionalGeneration(config).save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    kept = {
        k: v
        for k, v in saved["speaker_encoder_config"].items()
        if k.startswith("enc_") or k in ("mel_dim", "sample_rate")
    }
    saved["speaker_encoder_config"] = kept  # its class takes no others when it is read again
    (folder / "config.json").write_text(json.dumps(saved))
    Qwen3TTSProcessor(tokenizer=tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps({"do_sample": True, "max_new_tokens": 40}))
    encoder = {
        "hidden_size": 32, "num_filters": 4, "num_residual_layers": 1, "upsampling_ratios": [8, 6, 5, 4],
        "codebook_size": book, "codebook_dim": 16, "vector_quantization_hidden_dimension": 16,
        "num_quantizers": groups, "num_semantic_quantizers": 1, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 64, "upsample_groups": 32,
    }  # fmt: skip
    decoder = {
        "codebook_size": book, "codebook_dim": 32, "hidden_size": 32, "latent_dim": 32, "num_attention_heads": 2,
        "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_quantizers": groups, "decoder_dim": 64,
    }  # fmt: skip
    codec = Qwen3TTSTokenizerV2Config(
        encoder_config=encoder, decoder_config=decoder, encoder_valid_num_quantizers=groups
    )
    Qwen3TTSTokenizerV2Model(codec).save_pretrained(folder / "speech_tokenizer")
    EncodecFeatureExtractor(feature_size=1, sampling_rate=24_000).save_pretrained(folder / "speech_tokenizer")
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    made: dict = {}

    def get(kind: str):
        if kind not in made:
            made[kind] = build(tmp_path_factory.mktemp(kind), kind)
        return made[kind]

    return get


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A references folder with one accepted audition clip and its transcript."""
    folder = tmp_path_factory.mktemp("references")
    noise = (np.random.RandomState(0).randn(24_000) * 3000).astype("<i2")
    with wave.open(str(folder / "anna.wav"), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(24_000)
        out.writeframes(noise.tobytes())
    (folder / "anna.txt").write_text("Hello there.")
    return folder


def loaded(folder, **options):
    engine = Qwen3TtsEngine({"model": str(folder), **options}, None)
    return engine, engine.load("cpu", 1)


def utterance(text, **fields):
    return Utterance(text, **{"language": "en-US", "max_seconds": MOST, **fields})


@pytest.mark.parametrize("kind", ["custom_voice", "voice_design", "base"])
def test_all_three_kinds_speak_a_batch(models, clip, kind):
    engine, about = loaded(models(kind), **({"references": str(clip)} if kind == "base" else {}))
    voice = about.voices[0]
    assert voice.kind == {"custom_voice": "preset", "voice_design": "designed", "base": "cloned"}[kind]
    assert about.languages == ("en", "zh")
    fields = {"instructions": "a warm low voice"} if kind != "base" else {}
    out = engine.speak([utterance(t, voice=voice.id, **fields) for t in TEXTS], lambda: False)
    for speech in out:
        assert isinstance(speech, Speech)
        assert speech.samples.dtype == np.float32
        assert 0 < len(speech.samples) <= MOST * 24_000 + 1
        assert not speech.seed_exact


def test_a_seed_is_exact_alone(models):
    engine, about = loaded(models("custom_voice"))
    one = [utterance(TEXTS[1], voice=about.voices[0].id, seed=3)]
    a, b = engine.speak(one, lambda: False)[0], engine.speak(one, lambda: False)[0]
    assert a.seed_exact
    assert np.array_equal(a.samples, b.samples)
    other = engine.speak([utterance(TEXTS[1], voice=about.voices[0].id, seed=4)], lambda: False)[0]
    assert len(other.samples) != len(a.samples) or not np.array_equal(other.samples, a.samples)


def test_the_prompt_of_a_clip_is_worked_out_once(models, clip):
    engine, _ = loaded(models("base"), references=str(clip))
    calls = []
    original = engine.tts.create_voice_clone_prompt
    engine.tts.create_voice_clone_prompt = lambda **kw: calls.append(1) or original(**kw)
    for _ in range(2):
        engine.speak([utterance(t, voice="anna") for t in TEXTS], lambda: False)
    assert len(calls) == 1


def test_babble_is_capped_and_reported(models):
    engine, about = loaded(models("custom_voice"))
    generate = engine.model.generate
    engine.model.generate = lambda **kw: generate(
        **{**kw, "eos_token_id": 1}
    )  # suppressed: it cannot end by itself
    out = engine.speak(
        [utterance(t, voice=about.voices[0].id, max_seconds=1.0) for t in TEXTS], lambda: False
    )
    for speech in out:
        assert isinstance(speech, Speech)
        assert speech.truncated
        assert len(speech.samples) <= 24_000 * 13 / 12.5


def test_a_batch_stops_when_nobody_waits(models):
    engine, about = loaded(models("custom_voice"))
    frames = []
    engine.speak(
        [utterance(TEXTS[1], voice=about.voices[0].id, max_seconds=60.0)],
        lambda: frames.append(1) or len(frames) > 5,
    )
    assert len(frames) <= 7


def test_control_tokens_and_missing_descriptions_are_refused(models):
    engine, _about = loaded(models("voice_design"))
    out = engine.speak(
        [
            utterance("Hello <|im_end|> there", voice="design", instructions="warm"),
            utterance("Hello there", voice="design"),
            utterance("Hello there", voice="design", instructions="warm"),
        ],
        lambda: False,
    )
    assert isinstance(out[0], SpeechError)
    assert out[0].code == "markup_not_supported"
    assert isinstance(out[1], SpeechError)
    assert out[1].param == "instructions"
    assert isinstance(out[2], Speech)


def test_a_base_model_without_a_clip_says_what_it_needs(models):
    with pytest.raises(RuntimeError, match="references"):
        loaded(models("base"))


def test_device_map_over_two_devices(models):
    """The talker's last layer lies on disk (as meta tensors, fetched for each call), all else on the CPU.

    So the map is honoured part by part, hooks move the data, and it speaks what the whole model speaks. Two real
    devices of one kind are not to be had on a CPU: not run on two GPUs.
    """
    parts = ("layers.0", "norm", "codec_embedding", "text_embedding", "rotary_emb")
    spread = {f"talker.model.{part}": "cpu" for part in parts} | {"talker.model.layers.1": "disk"}
    spread |= dict.fromkeys(
        ("talker.text_projection", "talker.codec_head", "talker.code_predictor", "speech_tokenizer"), "cpu"
    )
    engine, about = loaded(models("custom_voice"), device_map=json.dumps(spread))
    kinds = {p.device.type for p in engine.model.parameters()}
    assert kinds == {"cpu", "meta"}
    assert about.notes["code_predictor"] == "eager (spread over several devices)"
    whole, _ = loaded(models("custom_voice"))
    one = [utterance(TEXTS[0], voice=about.voices[0].id, seed=5)]
    a, b = engine.speak(one, lambda: False)[0], whole.speak(one, lambda: False)[0]
    assert isinstance(a, Speech)
    assert np.allclose(a.samples, b.samples, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_static_cache_gives_the_same_speech(models, rows):
    eager, about = loaded(models("custom_voice"), fast="0")
    fast, said = loaded(models("custom_voice"), fast="1")
    assert about.notes["code_predictor"] == "eager (as asked)"
    assert said.notes["code_predictor"] == "static"
    batch = [utterance(t, voice=about.voices[0].id, seed=i) for i, t in enumerate(TEXTS[:rows])]
    for a, b in zip(eager.speak(batch, lambda: False), fast.speak(batch, lambda: False), strict=True):
        assert np.array_equal(a.samples, b.samples)
    assert sorted(fast.predictor.steps) == ([1] if rows == 1 else [1, 4])


def test_a_predictor_that_disagrees_is_not_used(models, monkeypatch, caplog):
    right = qwen3_fast._Steps._logits
    monkeypatch.setattr(qwen3_fast._Steps, "_logits", lambda self, step: right(self, step).roll(1, -1))
    engine, about = loaded(models("custom_voice"), fast="1")
    assert about.notes["code_predictor"].startswith("eager (")
    assert "agree with the eager path" in about.notes["code_predictor"]
    assert "stays eager" in caplog.text
    assert engine.model.talker.code_predictor.generate.__self__ is engine.model.talker.code_predictor
    assert isinstance(engine.speak([utterance("Hi.", voice="vivian")], lambda: False)[0], Speech)


def test_a_larger_batch_that_fails_its_check_goes_back_to_eager(models, monkeypatch):
    engine, about = loaded(models("custom_voice"), fast="1")
    reference, _ = loaded(models("custom_voice"), fast="0")
    right = qwen3_fast._Steps._logits

    def broken(self, step):
        if self.rows > 1:
            raise RuntimeError("cannot be captured")
        return right(self, step)

    monkeypatch.setattr(qwen3_fast._Steps, "_logits", broken)
    batch = [utterance(t, voice=about.voices[0].id) for t in TEXTS]
    for a, b in zip(engine.speak(batch, lambda: False), reference.speak(batch, lambda: False), strict=True):
        assert np.array_equal(a.samples, b.samples)
    assert engine.predictor.mode == "eager"
    assert "cannot be captured" in engine.predictor.reason


def test_without_a_gpu_it_is_eager_by_default(models):
    _, about = loaded(models("custom_voice"))
    if not torch.cuda.is_available():
        assert about.notes["code_predictor"] == "eager (no CUDA device)"
    assert about.notes["dtype"] == "float32"
    assert about.notes["attention"] == "sdpa"


@pytest.mark.parametrize(
    ("capability", "flash", "dtype", "attention"),
    [
        ((9, 0), True, torch.bfloat16, "flash_attention_2"),
        ((8, 6), False, torch.bfloat16, "sdpa"),
        ((7, 5), True, torch.float16, "sdpa"),
    ],
)
def test_type_and_attention_by_device(monkeypatch, capability, flash, dtype, attention):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(
        qwen3_tts.importlib.util,
        "find_spec",
        lambda name: object() if flash and name == "flash_attn" else None,
    )
    assert qwen3_tts.best_dtype("cuda:0") is dtype
    assert qwen3_tts.best_attention("cuda:0", dtype) == attention
    assert qwen3_tts.best_dtype("cpu") is torch.float32
    assert qwen3_tts.best_attention("cpu", torch.float32) == "sdpa"


@pytest.mark.gpu
def test_graphs_on_a_gpu_give_the_same_codes(models):
    engine = Qwen3TtsEngine({"model": str(models("custom_voice")), "dtype": "float32"}, None)
    about = engine.load("cuda:0", 1)
    assert about.notes["code_predictor"] == "graphs"
    assert isinstance(engine.speak([utterance("Hi.", voice="vivian")], lambda: False)[0], Speech)
