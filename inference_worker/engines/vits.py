"""VITS through transformers: MMS and fine-tuned voices, batched so that every item sounds as it would alone.

Three things make that so, and fast. Durations and noise are drawn per item from its own seed, so a seed gives the
same samples at any batch size. The decoder, which knows no mask, gets all items of a batch one after another on one
time axis, parted by as many empty frames as it can see; nothing leaks and nothing is padded. On a CPU its
convolutions run in channels-last layout, checked against the original when the model is loaded.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrize

from inference_worker.engines.base import About, Speech, Utterance, VoiceInfo
from inference_worker.errors import SpeechError
from inference_worker.split import pieces_join, text_split

NEEDS = ("torch", "transformers")
BUCKET = 64
"""Lengths are rounded up to this many tokens or frames: a convolution's first run of each shape costs a plan."""
TILE_CPU, TILE_GPU = 512, 8192
"""Frames decoded at once: on a CPU small enough to stay near the caches, on a GPU large enough to fill it."""
MAX_PIECE_CHARS = 400  # attention grows with the square of the length
AGREEMENT = 1e-3  # largest difference allowed between the fast decoder and the original, full scale = 1

_TWO_LETTER = {
    "ara": "ar", "ben": "bn", "bul": "bg", "cat": "ca", "ces": "cs", "cmn": "zh", "cym": "cy", "dan": "da",
    "deu": "de", "ell": "el", "eng": "en", "est": "et", "eus": "eu", "fas": "fa", "fin": "fi", "fra": "fr",
    "glg": "gl", "guj": "gu", "heb": "he", "hin": "hi", "hrv": "hr", "hun": "hu", "ind": "id", "isl": "is",
    "ita": "it", "jpn": "ja", "kan": "kn", "kaz": "kk", "kor": "ko", "lav": "lv", "lit": "lt", "mal": "ml",
    "mar": "mr", "mkd": "mk", "mon": "mn", "nld": "nl", "nob": "nb", "pan": "pa", "pol": "pl", "por": "pt",
    "ron": "ro", "rus": "ru", "slk": "sk", "slv": "sl", "spa": "es", "sqi": "sq", "srp": "sr", "swa": "sw",
    "swe": "sv", "tam": "ta", "tel": "te", "tgl": "tl", "tha": "th", "tur": "tr", "ukr": "uk", "urd": "ur",
    "uzb": "uz", "vie": "vi", "yor": "yo",
}  # fmt: skip


class VitsEngine:
    """Options: `model` (local folder or hub id, where there is no store entry), `revision` (of the hub id),

    `language` (BCP 47, over the tokenizer's), `noise` and `noise_duration` (0 = the same sound every time),
    `decoder_dtype` (float32, bfloat16, float16; half only where the check at load agrees), `licence`,
    `max_batch`, `max_chars` (of a piece).
    """

    name = "vits"

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        self.options = dict(options)
        self.folder = folder
        self.model: Any = None
        self.vocab: dict[str, int] = {}
        self.piece_chars = int(self.options.get("max_chars", MAX_PIECE_CHARS))

    def load(self, device: str, threads: int) -> About:
        """Load weights (safetensors only) and tokenizer; build and check the fast decoder."""
        from transformers import VitsModel, VitsTokenizer

        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        source = str(self.folder) if self.folder else self.options.get("model", "")
        if not source:
            raise RuntimeError("the engine vits needs --option model=FOLDER or a model store entry")
        local = Path(source).is_dir()
        where: dict[str, Any] = {"local_files_only": local, "revision": self.options.get("revision", "main")}
        model = VitsModel.from_pretrained(source, use_safetensors=True, **where).eval()
        self.tokenizer: Any = VitsTokenizer.from_pretrained(source, **where)
        if self.tokenizer.phonemize:
            raise RuntimeError("this model wants phonemes from espeak, which is not among our parts")
        self.vocab = dict(self.tokenizer.encoder)
        if "noise" in self.options:
            model.noise_scale = float(self.options["noise"])
        if "noise_duration" in self.options:
            model.noise_scale_duration = float(self.options["noise_duration"])
        fold_weight_norm(model)
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.config = model.config
        self.hop = math.prod(model.config.upsample_rates)
        self.gap = decoder_reach(model.config)
        self.tile = TILE_CPU if self.device.type == "cpu" else TILE_GPU
        self.decode: Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor] = model.decoder
        if self.device.type == "cpu":
            self._use_if_equal(ChannelsLastDecoder(model.decoder), torch.float32)
        elif (half := self.options.get("decoder_dtype", "float32")) != "float32":
            self._use_if_equal(HalfDecoder(model.decoder, getattr(torch, half)), getattr(torch, half))
        language = self.options.get("language") or _bcp47(self.tokenizer.language or "")
        speakers = model.config.num_speakers
        names = ["default"] if speakers <= 1 else [f"speaker-{i}" for i in range(speakers)]
        revision = self.options.get("revision", "") or _digest(source, local)
        random = model.noise_scale > 0 or (
            model.config.use_stochastic_duration_prediction and model.noise_scale_duration > 0
        )
        return About(
            engine=self.name,
            revision=revision,
            sample_rate=model.config.sampling_rate,
            languages=(language,),
            voices=tuple(VoiceInfo(n, n.capitalize(), (language,)) for n in names),
            licence=self.options.get("licence", ""),
            pool_hint="gpu" if self.device.type == "cuda" else "cpu",
            max_batch=int(self.options.get("max_batch", 64 if self.device.type == "cuda" else 16)),
            max_chars=20_000,
            features=("speed", "seed"),
            deterministic=not random,
            warmup_text=self._warmup_text(),
        )

    def _use_if_equal(self, candidate: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
        """Take the candidate decoder when it agrees with the original on noise; else keep the original."""
        generator = torch.Generator().manual_seed(0)
        z = torch.randn(1, self.config.flow_size, 40, generator=generator).to(self.device)
        g = (
            torch.zeros(1, self.config.speaker_embedding_size, 1, device=self.device)
            if self._speakers
            else None
        )
        with torch.inference_mode():
            difference = float((candidate(z, g).float() - self.model.decoder(z, g).float()).abs().max())
        if difference <= (AGREEMENT if dtype == torch.float32 else 2e-2):
            self.decode = candidate

    @property
    def _speakers(self) -> bool:
        return self.config.num_speakers > 1 and self.config.speaker_embedding_size > 0

    def _warmup_text(self) -> str:
        """About ninety characters that this vocabulary knows."""
        text = str(About.__dataclass_fields__["warmup_text"].default)
        try:
            self._ids(text)
            return text
        except SpeechError:
            letters = [c for c in self.vocab if len(c) == 1 and c.isalpha()][:24] or list("a")
            words = ["".join(letters[i : i + 5]) for i in range(0, len(letters), 5)]
            return " ".join((words * 20)[:18])

    def _ids(self, text: str) -> list[int]:
        """Token ids. Raises SpeechError naming letters and digits outside the vocabulary: they would be dropped."""
        text = unicodedata.normalize("NFC", text)
        if "'" in self.vocab:
            text = text.replace("’", "'")
        if self.tokenizer.normalize:
            text = "".join(c if c in self.vocab else c.lower() for c in text)
        text = self.tokenizer._preprocess_char(text)
        if self.tokenizer.is_uroman and not text.isascii():
            text = _romanised(text)
        lost = [c for c in text if c not in self.vocab and (c.isalnum() or c.isnumeric())]
        if lost:
            raise SpeechError(
                "text_not_speakable", f"This voice cannot read: {' '.join(dict.fromkeys(lost[:8]))}", "input"
            )
        chars = "".join(c for c in text if c in self.vocab).strip()
        if not any(c.isalnum() for c in chars):
            raise SpeechError("text_not_speakable", "There is no word in this text.", "input")
        ids = [self.vocab[c] for c in chars]
        if not self.tokenizer.add_blank:
            return ids
        spaced = [0] * (2 * len(ids) + 1)
        spaced[1::2] = ids
        return spaced

    def speak(self, batch: Sequence[Utterance], stop: Callable[[], bool]) -> list[Speech | SpeechError]:
        """All utterances in one pass; long ones enter as several pieces."""
        rows: list[tuple[int, list[int]]] = []  # (utterance, ids)
        out: list[Speech | SpeechError | None] = [None] * len(batch)
        for index, u in enumerate(batch):
            try:
                pieces = text_split(u.text, lambda t: len(t) <= self.piece_chars)
                rows += [(index, ids) for ids in [self._ids(p) for p in pieces]]
            except SpeechError as exc:
                out[index] = exc
            except ValueError:
                out[index] = SpeechError("text_not_speakable", "A word is too long to be spoken.", "input")
        rows = [r for r in rows if out[r[0]] is None]
        sounds = self._waves(rows, batch) if rows else []
        for index in range(len(batch)):
            if out[index] is None:
                mine = [s for (i, _), s in zip(rows, sounds, strict=True) if i == index]
                out[index] = Speech(pieces_join(mine, self.config.sampling_rate))
        return [o for o in out if o is not None]

    @torch.inference_mode()
    def _waves(self, rows: list[tuple[int, list[int]]], batch: Sequence[Utterance]) -> list[np.ndarray]:
        """Waveforms, float32 (samples,), one per row. VitsModel.forward with per-item randomness and packing."""
        model, device = self.model, self.device
        lengths = [len(ids) for _, ids in rows]
        longest = _bucket(max(lengths))
        ids = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), longest, dtype=torch.long)
        for i, (_, row) in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
            mask[i, : len(row)] = 1
        ids, mask = ids.to(device), mask.to(device)
        speakers = None
        if self._speakers:
            numbers = [int(batch[i].voice.rpartition("-")[2]) for i, _ in rows]
            speakers = model.embed_speaker(torch.tensor(numbers, device=device)).unsqueeze(-1)
        encoded = model.text_encoder(
            input_ids=ids, padding_mask=mask.unsqueeze(-1).float(), attention_mask=mask, return_dict=True
        )
        hidden = encoded.last_hidden_state.transpose(1, 2)

        frames: list[int] = []
        priors: list[torch.Tensor] = []
        for i, (index, _) in enumerate(rows):
            n, u = lengths[i], batch[index]
            torch.manual_seed(u.seed + 7919 * i if self._repeats(rows, i) else u.seed)
            g = None if speakers is None else speakers[i : i + 1]
            log_duration = self._log_duration(hidden[i : i + 1, :, :n], g)
            scale = 1.0 / (model.speaking_rate * u.speed)
            duration = torch.ceil(torch.exp(log_duration) * scale).reshape(-1).long().clamp_min(0)
            if int(duration.sum()) < 1:
                duration[-1] = 1
            means = encoded.prior_means[i, :n].repeat_interleave(duration, 0)
            spread = torch.exp(encoded.prior_log_variances[i, :n]).repeat_interleave(duration, 0)
            noise = torch.randn(means.shape).to(device)  # drawn on the CPU: the same on every device
            priors.append(means + noise * spread * model.noise_scale)
            frames.append(means.shape[0])
        top = _bucket(max(frames))
        latents = torch.zeros(len(rows), priors[0].shape[1], top, device=device)
        there = torch.zeros(len(rows), 1, top, device=device)
        for i, prior in enumerate(priors):
            latents[i, :, : frames[i]] = prior.T
            there[i, :, : frames[i]] = 1
        latents = model.flow(latents, there, speakers, reverse=True) * there
        return self._decoded(latents, frames, speakers)

    @staticmethod
    def _repeats(rows: list[tuple[int, list[int]]], i: int) -> bool:
        """Whether this row is a later piece of its utterance: it must not repeat the first piece's noise."""
        return i > 0 and rows[i - 1][0] == rows[i][0]

    def _log_duration(self, hidden: torch.Tensor, speaker: torch.Tensor | None) -> torch.Tensor:
        ones = torch.ones(1, 1, hidden.shape[2], device=hidden.device)
        predictor = self.model.duration_predictor
        if self.config.use_stochastic_duration_prediction:
            return predictor(hidden, ones, speaker, reverse=True, noise_scale=self.model.noise_scale_duration)
        return predictor(hidden, ones, speaker)

    def _decoded(
        self, latents: torch.Tensor, frames: list[int], speakers: torch.Tensor | None
    ) -> list[np.ndarray]:
        """Decode (rows, channels, frames): items of one speaker share a time axis, parted by empty frames."""
        groups: dict[bytes, list[int]] = {}
        for i in range(len(frames)):
            groups.setdefault(b"" if speakers is None else speakers[i].cpu().numpy().tobytes(), []).append(i)
        out: list[np.ndarray] = [np.empty(0, np.float32)] * len(frames)
        for members in groups.values():
            total = sum(frames[i] for i in members) + self.gap * (len(members) + 1)
            packed = torch.zeros(1, latents.shape[1], total + self.gap + self.tile, device=latents.device)
            at, starts = self.gap, []
            for i in members:
                packed[0, :, at : at + frames[i]] = latents[i, :, : frames[i]]
                starts.append(at)
                at += frames[i] + self.gap
            speaker = None if speakers is None else speakers[members[0] : members[0] + 1]
            wave = self._tiles(packed, total, speaker)
            for i, start in zip(members, starts, strict=True):
                out[i] = wave[start * self.hop : (start + frames[i]) * self.hop].copy()
        return out

    def _tiles(self, packed: torch.Tensor, total: int, speaker: torch.Tensor | None) -> np.ndarray:
        """Decode a time axis of `total` frames tile by tile: few shapes for the convolutions, flat memory.

        Neighbouring tiles overlap by what the decoder can see, so the seams are exact. The axis begins with
        `gap` empty frames and is long enough behind `total` to fill the last tile.
        """
        gap, tile, hop = self.gap, self.tile, self.hop
        wave = np.zeros(total * hop, np.float32)
        at = gap  # the first frame that is wanted
        while at < total:
            want = min(tile, -(-(total - at) // BUCKET) * BUCKET)
            part = packed[:, :, at - gap : at + want + gap]
            sound = self.decode(part, speaker).reshape(-1)[gap * hop : (gap + want) * hop]
            end = min(at + want, total)
            wave[at * hop : end * hop] = sound[: (end - at) * hop].float().cpu().numpy()
            at += want
        return wave

    def free(self) -> None:
        """Give the CUDA cache back."""
        if self.model is not None and self.device.type == "cuda":
            torch.cuda.empty_cache()

    def memory_bytes(self) -> int:
        """What torch holds on the device; 0 on a CPU."""
        return (
            torch.cuda.memory_reserved(self.device)
            if self.model is not None and self.device.type == "cuda"
            else 0
        )


def _bucket(length: int) -> int:
    return -(-length // BUCKET) * BUCKET


def fold_weight_norm(model: nn.Module) -> None:
    """Replace normalised weights by their values: they would be worked out again in every pass."""
    for module in model.modules():
        if parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def decoder_reach(config: Any) -> int:
    """Frames to either side that the decoder's output can depend on, rounded up (16 for the published models)."""
    reach, per_frame = 3.0, 1
    for rate, kernel in zip(config.upsample_rates, config.upsample_kernel_sizes, strict=True):
        reach += (kernel / rate) / per_frame
        per_frame *= rate
        widest = max(
            (k - 1) / 2 * (sum(dilations) + len(dilations))
            for k, dilations in zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes, strict=True)
        )
        reach += widest / per_frame
    return math.ceil(reach + 3 / per_frame)


class ChannelsLastDecoder:
    """HiFi-GAN as two-dimensional convolutions in channels-last layout, in place where it may: about 1.5 × faster

    on a CPU than the one-dimensional original with the same weights.
    """

    def __init__(self, decoder: Any) -> None:
        self.slope = decoder.config.leaky_relu_slope
        self.kernels = decoder.num_kernels
        self.pre = _flat(decoder.conv_pre)
        self.up = [_flat(m) for m in decoder.upsampler]
        self.blocks = [
            [(_flat(a), _flat(b)) for a, b in zip(block.convs1, block.convs2, strict=True)]
            for block in decoder.resblocks
        ]
        self.block_slopes = [block.leaky_relu_slope for block in decoder.resblocks]
        self.post = _flat(decoder.conv_post)
        self.cond = getattr(decoder, "cond", None)

    def __call__(self, z: torch.Tensor, speaker: torch.Tensor | None = None) -> torch.Tensor:
        """(batch, channels, frames) → (batch, 1, samples)."""
        relu, relu_ = nn.functional.leaky_relu, nn.functional.leaky_relu_
        x = self.pre(z.unsqueeze(2).contiguous(memory_format=torch.channels_last))
        if speaker is not None and self.cond is not None:
            x = x + self.cond(speaker).unsqueeze(2)
        for i, up in enumerate(self.up):
            x = up(relu_(x, self.slope))
            total: torch.Tensor | None = None
            for j in range(self.kernels):
                slope = self.block_slopes[i * self.kernels + j]
                y = x
                for first, second in self.blocks[i * self.kernels + j]:
                    inner = second(relu_(first(relu(y, slope)), slope))
                    y = inner.add_(y)
                total = y if total is None else total.add_(y)
            assert total is not None
            x = total.div_(self.kernels)
        return torch.tanh_(self.post(relu_(x, 0.01))).squeeze(2)


def _flat(conv: nn.Conv1d | nn.ConvTranspose1d) -> nn.Module:
    """The same convolution over (1, time) with channels-last weights."""
    settings: dict[str, Any] = {
        "stride": (1, conv.stride[0]),
        "padding": (0, conv.padding[0]),
        "dilation": (1, conv.dilation[0]),
        "groups": conv.groups,
        "bias": conv.bias is not None,
    }
    kind: Any = nn.Conv2d
    if isinstance(conv, nn.ConvTranspose1d):
        kind = nn.ConvTranspose2d
        settings["output_padding"] = (0, conv.output_padding[0])
    flat: Any = kind(conv.in_channels, conv.out_channels, (1, conv.kernel_size[0]), **settings)
    with torch.no_grad():
        flat.weight.copy_(conv.weight.unsqueeze(2))
        if conv.bias is not None:
            flat.bias.copy_(conv.bias)
    return flat.to(memory_format=torch.channels_last).eval().requires_grad_(False)


class HalfDecoder:
    """The decoder in half precision; everything before it stays in float32 (durations and flow do not bear it)."""

    def __init__(self, decoder: Any, dtype: torch.dtype) -> None:
        import copy

        self.decoder = copy.deepcopy(decoder).to(dtype)
        self.dtype = dtype

    def __call__(self, z: torch.Tensor, speaker: torch.Tensor | None = None) -> torch.Tensor:
        """(batch, channels, frames) → (batch, 1, samples)."""
        return self.decoder(z.to(self.dtype), None if speaker is None else speaker.to(self.dtype))


def _romanised(text: str) -> str:
    try:
        import uroman
    except ImportError:
        raise SpeechError(
            "text_not_speakable",
            "This voice reads romanised text; the server lacks the package uroman.",
            "input",
        ) from None
    global _uroman
    if _uroman is None:
        _uroman = uroman.Uroman()
    return str(_uroman.romanize_string(text)).lower()


_uroman: Any = None


def _bcp47(code: str) -> str:
    """ISO 639-3, as MMS names languages, into the shortest BCP 47 tag; "*" when the model names none."""
    primary = code.replace("_", "-").partition("-")[0].lower()
    return _TWO_LETTER.get(primary, primary) or "*"


def _digest(source: str, local: bool) -> str:
    """First 12 hex digits of the weights' sha256; the hub id's branch for a model from the hub."""
    if not local:
        return "main"
    from inference_worker.store import sha256_of

    files = sorted(Path(source).glob("*.safetensors"))
    return sha256_of(files[0])[:12] if files else "unknown"


ENGINE = VitsEngine
