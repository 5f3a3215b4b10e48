"""VITS exported to ONNX the way Piper does it: `input`, `input_lengths`, `scales`, perhaps `sid`; text voices only."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inference_worker.engines.base import About, Speech, Utterance, VoiceInfo
from inference_worker.errors import OutOfMemory, SpeechError
from inference_worker.split import pieces_join, text_split

NEEDS = ("onnxruntime",)
MAX_PIECE_CHARS = 400


class OnnxVitsEngine:
    """A folder with NAME.onnx and NAME.onnx.json. Options: `model` (the folder, where there is no store entry),

    `noise`, `noise_duration` (over the file's), `licence`, `max_batch`. Batched where the graph has a second output
    with each item's length in samples; a graph without it speaks one text at a time.
    """

    name = "onnx_vits"

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        self.options = dict(options)
        self.folder = folder or (Path(options["model"]) if "model" in options else None)
        self.session: Any = None

    def load(self, device: str, threads: int) -> About:
        """Load the graph and its description. Raises RuntimeError for voices that want espeak's phonemes."""
        import onnxruntime as ort

        if self.folder is None:
            raise RuntimeError("the engine onnx_vits needs --option model=FOLDER or a model store entry")
        graphs = sorted(self.folder.glob("*.onnx"))
        if len(graphs) != 1:
            raise RuntimeError("the folder must hold exactly one .onnx file")
        self.config = json.loads(graphs[0].with_suffix(".onnx.json").read_text(encoding="utf-8"))
        if self.config.get("phoneme_type", "espeak") != "text":
            raise RuntimeError("this voice wants phonemes from espeak, which is not among our parts (GPL)")
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        providers: list[Any] = ["CPUExecutionProvider"]
        if device.startswith("cuda"):
            if "CUDAExecutionProvider" not in ort.get_available_providers():
                raise RuntimeError("this onnxruntime has no CUDA provider (install onnxruntime-gpu)")
            providers = [("CUDAExecutionProvider", {"device_id": device.partition(":")[2] or "0"})]
        self.session = ort.InferenceSession(str(graphs[0]), options, providers=providers)
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.has_lengths = len(self.session.get_outputs()) > 1
        self.rate_hz = int(self.config["audio"]["sample_rate"])
        self.ids: dict[str, list[int]] = self.config["phoneme_id_map"]
        inference = self.config.get("inference", {})
        self.noise = float(self.options.get("noise", inference.get("noise_scale", 0.667)))
        self.noise_w = float(self.options.get("noise_duration", inference.get("noise_w", 0.8)))
        self.length_scale = float(inference.get("length_scale", 1.0))
        language = self.config.get("language", {}).get("code", "*").replace("_", "-")
        speakers: dict[str, int] = self.config.get("speaker_id_map") or {}
        if not speakers and int(self.config.get("num_speakers", 1)) > 1:
            speakers = {f"speaker-{i}": i for i in range(int(self.config["num_speakers"]))}
        self.speakers = speakers or {"default": 0}
        from inference_worker.store import sha256_of

        letters = [c for c in self.ids if len(c) == 1 and c.isalpha()][:24]
        return About(
            engine=self.name,
            revision=sha256_of(graphs[0])[:12],
            sample_rate=self.rate_hz,
            languages=(language,),
            voices=tuple(VoiceInfo(n, n, (language,)) for n in self.speakers),
            licence=self.options.get("licence", ""),
            pool_hint="gpu" if device.startswith("cuda") else "cpu",
            max_batch=int(self.options.get("max_batch", 16)) if self.has_lengths else 1,
            max_chars=20_000,
            batch_by=("speed",),
            features=("speed",),
            deterministic=self.noise == 0 and self.noise_w == 0,
            warmup_text=" ".join(["".join(letters[i : i + 5]) for i in range(0, len(letters), 5)] * 4),
        )

    def _ids(self, text: str) -> list[int]:
        """Ids with the pad between and the marks at the ends. Raises SpeechError for letters the map lacks."""
        text = unicodedata.normalize("NFC", text)
        text = "".join(c if c in self.ids else c.lower() for c in text)
        lost = [c for c in text if c not in self.ids and (c.isalnum() or c.isnumeric())]
        if lost:
            raise SpeechError(
                "text_not_speakable", f"This voice cannot read: {' '.join(dict.fromkeys(lost[:8]))}", "input"
            )
        pad = self.ids.get("_", [0])
        out = list(self.ids.get("^", []))
        for char in text:
            if char in self.ids:
                out += [*pad, *self.ids[char]]
        return [*out, *pad, *self.ids.get("$", [])]

    def speak(self, batch: Sequence[Utterance], stop: Callable[[], bool]) -> list[Speech | SpeechError]:
        """Utterances of one speed, together where the graph tells lengths."""
        out: list[Speech | SpeechError | None] = [None] * len(batch)
        rows: list[tuple[int, list[int]]] = []
        for index, u in enumerate(batch):
            try:
                rows += [
                    (index, self._ids(p)) for p in text_split(u.text, lambda t: len(t) <= MAX_PIECE_CHARS)
                ]
            except SpeechError as exc:
                out[index] = exc
            except ValueError:
                out[index] = SpeechError("text_not_speakable", "A word is too long to be spoken.", "input")
        rows = [r for r in rows if out[r[0]] is None]
        step = len(rows) if self.has_lengths else 1
        sounds: list[np.ndarray] = []
        for at in range(0, len(rows), max(1, step)):
            sounds += self._run(rows[at : at + step], batch)
        for index in range(len(batch)):
            if out[index] is None:
                mine = [s for (i, _), s in zip(rows, sounds, strict=True) if i == index]
                out[index] = Speech(
                    pieces_join(mine, self.rate_hz), seed_exact=self.noise == self.noise_w == 0
                )
        return [o for o in out if o is not None]

    def _run(self, rows: list[tuple[int, list[int]]], batch: Sequence[Utterance]) -> list[np.ndarray]:
        longest = max(len(ids) for _, ids in rows)
        tokens = np.zeros((len(rows), longest), np.int64)
        for i, (_, ids) in enumerate(rows):
            tokens[i, : len(ids)] = ids
        speed = batch[rows[0][0]].speed
        feed: dict[str, np.ndarray] = {
            "input": tokens,
            "input_lengths": np.array([len(ids) for _, ids in rows], np.int64),
            "scales": np.array([self.noise, self.length_scale / speed, self.noise_w], np.float32),
        }
        if "sid" in self.inputs:
            feed["sid"] = np.array([self.speakers[batch[i].voice] for i, _ in rows], np.int64)
        try:
            result = self.session.run(None, {k: v for k, v in feed.items() if k in self.inputs})
        except Exception as exc:
            if "alloc" in str(exc).lower():
                raise OutOfMemory(type(exc).__name__) from exc
            raise
        waves = result[0].reshape(len(rows), -1).astype(np.float32)
        if not self.has_lengths:
            return [waves[0]]
        return [w[: int(n)] for w, n in zip(waves, np.asarray(result[1]).reshape(-1), strict=True)]

    def free(self) -> None:
        """ONNX Runtime keeps its own arena; nothing to give back."""

    def memory_bytes(self) -> int:
        """Unknown."""
        return 0


ENGINE = OnnxVitsEngine
