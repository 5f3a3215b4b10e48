"""Qwen3-TTS: voices by description (VoiceDesign), built in (CustomVoice), or after a clip (Base).

A described voice is another speaker at every call. A book is therefore spoken through Base: the accepted audition
clip and its transcript lie in the references folder, and their prompt is computed once per replica.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from inference_worker.engines.base import About, Speech, Utterance, VoiceInfo
from inference_worker.errors import SpeechError
from inference_worker.qwen3_fast import FastPredictor
from inference_worker.split import pieces_join, text_split

NEEDS = ("torch", "transformers", "qwen_tts")
FRAMES_PER_S = 12.5
MAX_PIECE_CHARS = 1200
LEAST_FRAMES = 8
_SPECIAL = re.compile(r"<\|[^|]*\|>|<tts_\w+>")
_NAMES = {
    "chinese": "zh", "english": "en", "german": "de", "italian": "it", "portuguese": "pt", "spanish": "es",
    "japanese": "ja", "korean": "ko", "french": "fr", "russian": "ru",
}  # fmt: skip
_VOICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


def _spare(name: str) -> Callable[[], None]:
    """An empty module in place of one that only an unused part of the library wants."""

    def make() -> None:
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__dict__["__version__"] = "0"
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)

    return make


def _library() -> Any:
    """Import qwen_tts. torchaudio and sox serve only its 25 Hz tokenizer: where they are missing, stand in."""
    for names in (("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi"), ("sox",)):
        try:
            __import__(names[-1])
        except Exception:  # a torchaudio built for another torch fails in many ways
            for name in names:
                _spare(name)()
    from qwen_tts import Qwen3TTSModel

    return Qwen3TTSModel


def best_dtype(device: str) -> torch.dtype:
    """bfloat16 on GPUs that know it, float16 on older ones, float32 on a CPU."""
    if not device.startswith("cuda"):
        return torch.float32
    return torch.bfloat16 if torch.cuda.get_device_capability(device)[0] >= 8 else torch.float16


def best_attention(device: str, dtype: torch.dtype) -> str:
    """Flash attention where its package, the GPU (Ampere and later) and the type allow it; SDPA otherwise."""
    if not device.startswith("cuda") or dtype not in (torch.bfloat16, torch.float16):
        return "sdpa"
    able = torch.cuda.get_device_capability(device)[0] >= 8
    return "flash_attention_2" if able and importlib.util.find_spec("flash_attn") is not None else "sdpa"


@contextlib.contextmanager
def _codec_on(device_map: Any) -> Iterator[None]:
    """While loading with a map of the talker's parts, give the codec one device of its own ("speech_tokenizer").

    The library hands the same map to both models, and the codec has none of those parts. The entry is taken out of
    the map; without one the codec lies where the map's first part does.
    """
    if not isinstance(device_map, dict):
        yield
        return
    from qwen_tts.core.models import modeling_qwen3_tts

    place = device_map.pop("speech_tokenizer", None) or next(d for d in device_map.values() if d != "disk")
    original = modeling_qwen3_tts.Qwen3TTSTokenizer

    class Placed(original):  # type: ignore[misc, valid-type]
        @classmethod
        def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
            return original.from_pretrained(*args, **{**kwargs, "device_map": place})

    modeling_qwen3_tts.Qwen3TTSTokenizer = Placed
    try:
        yield
    finally:
        modeling_qwen3_tts.Qwen3TTSTokenizer = original


class _Stop(StoppingCriteria):
    """Ends the whole batch when nobody waits for it any more; asked once per frame."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self.stop = stop

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        rows = input_ids.shape[0]
        return torch.full((rows,), self.stop(), dtype=torch.bool, device=input_ids.device)


class Qwen3TtsEngine:
    """Options: `model` (folder or hub id, where there is no store entry), `revision`, `references` (folder with

    NAME.wav and NAME.txt pairs, for Base), `dtype` (default bfloat16 on a GPU, float32 on a CPU), `attention`
    (sdpa, flash_attention_2, eager; by default what the device can do), `device_map` (a map over several devices:
    "auto", or JSON; not run on two GPUs), `fast` (auto: static cache and CUDA graphs on a GPU where they prove equal;
    1: static cache on a CPU too; 0: never), `fast_agreement` (share of codes that must be equal, default 1),
    `temperature`, `top_k`, `top_p`, `sample` (0 = greedy), `max_batch`, `licence`.
    """

    name = "qwen3_tts"

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        self.options = dict(options)
        self.folder = folder
        self.prompts: dict[str, Any] = {}
        self.tts: Any = None
        self.predictor: FastPredictor | None = None

    def load(self, device: str, threads: int) -> About:
        """Load through Qwen3TTSModel.from_pretrained, safetensors only."""
        torch.set_num_threads(threads)
        source = str(self.folder) if self.folder else self.options.get("model", "")
        if not source:
            raise RuntimeError("the engine qwen3_tts needs --option model=FOLDER or a model store entry")
        cuda = device.startswith("cuda")
        dtype = getattr(torch, self.options["dtype"]) if "dtype" in self.options else best_dtype(device)
        attention = self.options.get("attention") or best_attention(device, dtype)
        extra: dict[str, Any] = {"use_safetensors": True}
        if not Path(source).is_dir() and "revision" in self.options:
            extra["revision"] = self.options["revision"]
        library, device_map = _library(), self._device_map(device)
        with _codec_on(device_map):
            self.tts = library.from_pretrained(
                source, device_map=device_map, dtype=dtype, attn_implementation=attention, **extra
            )
        self.model = self.tts.model
        self.model.eval()
        self.device = torch.device(device)
        self.kind = self.model.tts_model_type
        self.stop: Callable[[], bool] = lambda: False
        self._watch_frames()
        fast = self._speed_up()
        known = [x.lower() for x in (self.tts.get_supported_languages() or [])]
        self.languages = {_NAMES[x]: x for x in known if x in _NAMES}
        self.references = self._references()
        voices = self._voices()
        if not voices:
            raise RuntimeError("a Base model needs --option references=FOLDER with NAME.wav and NAME.txt")
        sampled = self.options.get("sample", "1") != "0"
        features = ["seed"] if self.kind == "base" else ["seed", "instructions"]
        return About(
            engine=self.name,
            revision=self.options.get("revision", "") or self._digest(source),
            sample_rate=self.rate_hz,
            languages=tuple(sorted(self.languages)) or ("*",),
            voices=voices,
            licence=self.options.get("licence", "Apache-2.0"),
            pool_hint="gpu",
            max_batch=int(self.options.get("max_batch", 64 if cuda else 4)),
            max_chars=20_000,
            features=tuple(features),
            deterministic=not sampled,
            notes={
                "kind": self.kind,
                "devices": self.options.get("device_map", device),
                "dtype": str(dtype).removeprefix("torch."),
                "attention": attention,
                "code_predictor": fast,
            },
        )

    def _speed_up(self) -> str:
        """Put the fast code predictor in place of the eager one where it proves equal; what is in use, and why."""
        predictor = self.model.talker.code_predictor
        wanted = self.options.get("fast", "auto")
        on_gpu = self.device.type == "cuda"
        places = {str(x) for x in (getattr(self.model, "hf_device_map", None) or {}).values()}
        if wanted == "0":
            return "eager (as asked)"
        if len(places) > 1:
            return "eager (spread over several devices)"
        if wanted == "auto" and not on_gpu:
            return "eager (no CUDA device)"
        if predictor.config._attn_implementation == "flash_attention_2":
            predictor.config._attn_implementation = "sdpa"  # the static cache wants a mask of its own
        self.predictor = FastPredictor(
            predictor, graphs=on_gpu, least=float(self.options.get("fast_agreement", 1.0))
        )
        if not self.predictor.ready(1):
            return f"eager ({self.predictor.reason})"
        predictor.generate = self.predictor.generate
        return self.predictor.mode

    def _device_map(self, device: str) -> Any:
        text = self.options.get("device_map", "")
        return json.loads(text) if text.startswith("{") else text or device

    def _watch_frames(self) -> None:
        """Let the talker ask, at every frame, whether anybody still waits."""
        talker, generate = self.model.talker, self.model.talker.generate

        def watched(*args: Any, **kwargs: Any) -> Any:
            criteria = StoppingCriteriaList(
                [*(kwargs.pop("stopping_criteria", None) or []), _Stop(lambda: self.stop())]
            )
            return generate(*args, stopping_criteria=criteria, **kwargs)

        talker.generate = watched

    def _references(self) -> dict[str, tuple[Path, str]]:
        folder = Path(self.options["references"]) if "references" in self.options else None
        if folder is None and self.folder is not None and (self.folder / "references").is_dir():
            folder = self.folder / "references"
        out = {}
        for clip in sorted(folder.glob("*.wav")) if folder else []:
            text = clip.with_suffix(".txt")
            if _VOICE.fullmatch(clip.stem) and text.is_file():
                out[clip.stem] = (clip, text.read_text(encoding="utf-8").strip())
        return out

    def _voices(self) -> tuple[VoiceInfo, ...]:
        languages = tuple(sorted(self.languages))
        if self.kind == "base":
            return tuple(VoiceInfo(n, n, languages, kind="cloned") for n in self.references)
        if self.kind == "voice_design":
            return (VoiceInfo("design", "As described in the instructions", languages, kind="designed"),)
        names = self.tts.get_supported_speakers() or []
        return tuple(VoiceInfo(n.lower(), n.capitalize(), languages) for n in names)

    @staticmethod
    def _digest(source: str) -> str:
        if not Path(source).is_dir():
            return "main"
        from inference_worker.store import sha256_of

        files = sorted(Path(source).glob("*.safetensors"))
        return sha256_of(files[0])[:12] if files else "unknown"

    def speak(self, batch: Sequence[Utterance], stop: Callable[[], bool]) -> list[Speech | SpeechError]:
        """All pieces of all utterances in one generation."""
        self.stop = stop
        out: list[Speech | SpeechError | None] = [None] * len(batch)
        rows: list[tuple[int, str, int]] = []  # (utterance, text, most frames)
        for index, u in enumerate(batch):
            if special := _SPECIAL.search(u.text + u.instructions):
                out[index] = SpeechError(
                    "markup_not_supported", f"{special.group()} is a control token of this model.", "input"
                )
                continue
            if self.kind == "voice_design" and not u.instructions.strip():
                out[index] = SpeechError(
                    "invalid_request", "Describe the voice in “instructions”.", "instructions"
                )
                continue
            try:
                pieces = text_split(u.text, lambda t: len(t) <= MAX_PIECE_CHARS)
            except ValueError:
                out[index] = SpeechError("text_not_speakable", "A word is too long to be spoken.", "input")
                continue
            whole = max(1, len(u.text))
            for piece in pieces:
                seconds = u.max_seconds * len(piece) / whole if u.max_seconds else 120.0
                rows.append((index, piece.strip(), max(LEAST_FRAMES, math.ceil(seconds * FRAMES_PER_S))))
        sounds: list[tuple[np.ndarray, bool]] = self._generate(rows, batch) if rows else []
        for index in range(len(batch)):
            if out[index] is not None:
                continue
            mine = [s for (i, _, _), s in zip(rows, sounds, strict=True) if i == index]
            samples = pieces_join([s for s, _ in mine], self.rate_hz)
            alone = len(rows) == 1 or self.options.get("sample", "1") == "0"
            out[index] = Speech(samples, any(t for _, t in mine), seed_exact=alone)
        return [o for o in out if o is not None]

    def _generate(
        self, rows: list[tuple[int, str, int]], batch: Sequence[Utterance]
    ) -> list[tuple[np.ndarray, bool]]:
        texts = [text for _, text, _ in rows]
        users = [batch[i] for i, _, _ in rows]
        most = max(frames for _, _, frames in rows)
        seed = users[0].seed
        for u in users[1:]:
            seed = (seed * 1_000_003 + u.seed) % 2**31
        torch.manual_seed(seed)
        kwargs: dict[str, Any] = {
            "language": [self.languages.get(u.language.partition("-")[0].lower(), "Auto") for u in users],
            "max_new_tokens": most + 1,  # the last token brings no frame
        }
        if self.options.get("sample", "1") == "0":
            kwargs |= {"do_sample": False, "subtalker_dosample": False}
        for name, kind in (("temperature", float), ("top_k", int), ("top_p", float)):
            if name in self.options:
                kwargs[name] = kind(self.options[name])
        if self.kind == "custom_voice":
            speakers = [u.voice for u in users]
            instruct = [u.instructions for u in users]
            waves, rate = self.tts.generate_custom_voice(texts, speaker=speakers, instruct=instruct, **kwargs)
        elif self.kind == "voice_design":
            waves, rate = self.tts.generate_voice_design(
                texts, instruct=[u.instructions for u in users], **kwargs
            )
        else:
            prompts = [self._prompt(u.voice) for u in users]
            waves, rate = self.tts.generate_voice_clone(texts, voice_clone_prompt=prompts, **kwargs)
        self.rate_hz = int(rate)
        per_frame = self.rate_hz / FRAMES_PER_S
        out = []
        for wave, (_, _, limit) in zip(waves, rows, strict=True):
            samples = np.asarray(wave, np.float32).reshape(-1)
            frames = round(len(samples) / per_frame)
            truncated = frames >= limit  # it never came to its end by itself
            out.append((self._cut(samples, int(limit * per_frame)), truncated))
        return out

    def _cut(self, samples: np.ndarray, most: int) -> np.ndarray:
        """At most so many samples, with a short fade where something was cut off."""
        if len(samples) <= most:
            return samples
        out = samples[:most].copy()
        fade = min(len(out), self.rate_hz // 100)
        out[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
        return out

    def _prompt(self, voice: str) -> Any:
        """The clip's prompt, worked out once per replica and voice."""
        if voice not in self.prompts:
            import soundfile

            clip, text = self.references[voice]
            samples, rate = soundfile.read(clip, dtype="float32", always_2d=True)
            self.prompts[voice] = self.tts.create_voice_clone_prompt(
                ref_audio=(samples.mean(axis=1), int(rate)), ref_text=text
            )[0]
        return self.prompts[voice]

    rate_hz = 24_000

    def free(self) -> None:
        """Give the CUDA cache back."""
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def memory_bytes(self) -> int:
        """What torch holds on the device; 0 on a CPU."""
        return (
            torch.cuda.memory_reserved(self.device)
            if self.tts is not None and self.device.type == "cuda"
            else 0
        )


ENGINE = Qwen3TtsEngine
