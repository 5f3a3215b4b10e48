"""The inner loop of Qwen3-TTS without Python in its way: static cache, CUDA graphs, and a check before either is used.

Each 80 ms frame of audio takes one step of the talker and then one short generation of the code predictor: as many
steps as there are further code groups (15), always the same shapes. Eager transformers spends most of a frame there,
on launches and bookkeeping. `FastPredictor` runs those steps over a cache of fixed size, on a CUDA device as captured
graphs. Draws stay outside the graphs and use the same generator in the same order, so a seed gives the same codes.
That is checked, not believed: every batch size must give the eager path's codes for fixed seeds, else eager it stays.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

log = logging.getLogger("inference_worker.qwen3")

SEEDS = (1, 20_250_121, 77)
SAMPLED = {"do_sample": True, "top_k": 50, "top_p": 1.0, "temperature": 0.9}
GREEDY = {"do_sample": False, "top_k": 50, "top_p": 1.0, "temperature": 0.9}


def bucket(rows: int) -> int:
    """Rows that a batch is padded to: the next power of two, so that few shapes are captured."""
    return 1 << max(0, rows - 1).bit_length()


def agreement(reference: torch.Tensor, candidate: torch.Tensor) -> float:
    """Share of equal codes in two tables (rows, groups); 0 where the shapes differ."""
    if reference.shape != candidate.shape:
        return 0.0
    return float((reference == candidate.to(reference.device)).float().mean())


def guarded(
    eager: Callable[..., torch.Tensor],
    candidate: Callable[..., torch.Tensor],
    inputs: torch.Tensor,
    least: float = 1.0,
) -> str:
    """Why the candidate must not be used, or "" when it may.

    Both are called as f(inputs, **sampling) and give codes (rows, groups); each time from the same seed, sampled and
    greedy. `least`: share of equal codes that is asked for. The random state is left as it was.
    """
    devices = [inputs.device] if inputs.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.no_grad():
        for sampling in (SAMPLED, GREEDY):
            for seed in SEEDS:
                torch.manual_seed(seed)
                reference = eager(inputs, **sampling)
                torch.manual_seed(seed)
                try:
                    codes = candidate(inputs, **sampling)
                except Exception as exc:  # whatever it is, eager still works
                    return f"{type(exc).__name__}: {exc}"[:300]
                share = agreement(reference, codes)
                if share < least:
                    return f"{share:.1%} of the codes agree with the eager path (seed {seed})"
                if not sampling["do_sample"]:
                    break
    return ""


class _Steps:
    """One batch size: cache, masks and positions of fixed size, and the graphs over them."""

    def __init__(self, predictor: Any, rows: int, graphs: bool) -> None:
        from transformers.cache_utils import StaticCache

        self.predictor = predictor
        self.rows = rows
        weight = predictor.lm_head[0].weight
        self.groups = len(predictor.lm_head)
        length = self.groups + 1  # two to begin with, then one per further code but the last
        self.cache = StaticCache(config=predictor.config, max_cache_len=length)
        lowest = torch.finfo(weight.dtype).min
        positions = torch.arange(length, device=weight.device)
        future = positions[None, :] > positions[:, None]
        self.mask = torch.zeros(1, 1, length, length, dtype=weight.dtype, device=weight.device)
        self.mask.masked_fill_(future[None, None], lowest)
        self.positions = positions
        width = predictor.model.codec_embedding[0].weight.shape[1]
        self.first = torch.zeros(rows, 2, width, dtype=weight.dtype, device=weight.device)
        self.codes = torch.zeros(rows, 1, dtype=torch.long, device=weight.device)
        self.graphs: list[tuple[Any, torch.Tensor]] = []
        if graphs:
            self._capture()

    def _logits(self, step: int) -> torch.Tensor:
        """Scores (rows, codes) of a step from what lies in `first` or `codes`."""
        model = self.predictor.model
        if step == 0:
            embeds, positions = self.first, self.positions[:2]
        else:
            embeds, positions = (
                model.codec_embedding[step - 1](self.codes),
                self.positions[step + 1 : step + 2],
            )
        last = positions.shape[0] + (0 if step == 0 else step + 1)
        mask = self.mask[:, :, last - positions.shape[0] : last]
        hidden = model(
            inputs_embeds=self.predictor.small_to_mtp_projection(embeds),
            attention_mask={"full_attention": mask},
            position_ids=positions[None],
            past_key_values=self.cache,
            use_cache=True,
            cache_position=positions,
        ).last_hidden_state
        return self.predictor.lm_head[step](hidden[:, -1])

    def _capture(self) -> None:
        """Record every step. The runs before it bring kernels and workspaces into being outside the graphs."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                for step in range(self.groups):
                    self._logits(step)
        torch.cuda.current_stream().wait_stream(stream)
        pool = torch.cuda.graph_pool_handle()
        for step in range(self.groups):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                out = self._logits(step)
            self.graphs.append((graph, out))

    def logits(self, step: int) -> torch.Tensor:
        """Scores of a step, replayed or computed."""
        if not self.graphs:
            return self._logits(step)
        graph, out = self.graphs[step]
        graph.replay()
        return out


class FastPredictor:
    """Stands in for `code_predictor.generate`. Every batch size proves itself before it is used.

    `mode`: what is in use ("graphs", "static" or "eager"); `reason`: why it is eager.
    """

    def __init__(self, predictor: Any, *, graphs: bool, least: float = 1.0) -> None:
        self.predictor = predictor
        self.eager: Callable[..., Any] = predictor.generate
        self.least = least
        self.mode = "graphs" if graphs else "static"
        self.reason = ""
        self.steps: dict[int, _Steps] = {}
        if getattr(predictor.model, "has_sliding_layers", False):
            self._give_up("the code predictor has sliding-window layers")

    def _give_up(self, reason: str) -> None:
        self.mode, self.reason = "eager", reason
        self.steps.clear()
        log.warning("code predictor stays eager: %s", reason)

    def ready(self, rows: int) -> bool:
        """Say whether the fast path may be used for so many rows; builds and checks its bucket at the first call."""
        if self.mode == "eager":
            return False
        size = bucket(rows)
        if size in self.steps:
            return True
        try:
            device = self.predictor.lm_head[0].weight.device
            here = torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()
            with torch.no_grad(), here:
                steps = _Steps(self.predictor, size, self.mode == "graphs")
        except Exception as exc:  # no memory for it, or an operation that cannot be captured
            self._give_up(f"{type(exc).__name__}: {exc}"[:300])
            return False
        if reason := guarded(
            self._eager_codes, lambda x, **s: self._run(steps, x, **s), self._probe(steps), self.least
        ):
            self._give_up(reason)
            return False
        self.steps[size] = steps
        log.info("code predictor: %s, batches up to %d agree with the eager path", self.mode, size)
        return True

    def _probe(self, steps: _Steps) -> torch.Tensor:
        """Inputs for the check, of the size that embeddings have, the same every time."""
        generator = torch.Generator().manual_seed(0)
        noise = torch.randn(steps.first.shape, generator=generator)
        scale = float(self.predictor.model.codec_embedding[0].weight.detach().float().std())
        return (noise * scale).to(steps.first)

    def _eager_codes(self, inputs: torch.Tensor, **sampling: Any) -> torch.Tensor:
        return self.eager(
            inputs_embeds=inputs,
            max_new_tokens=len(self.predictor.lm_head),
            output_hidden_states=True,
            return_dict_in_generate=True,
            **sampling,
        ).sequences

    def _run(self, steps: _Steps, inputs: torch.Tensor, **sampling: Any) -> torch.Tensor:
        """Codes (rows, groups) for inputs (rows, 2, width); rows may be fewer than the bucket's."""
        rows = inputs.shape[0]
        warp = _warpers(sampling)
        steps.first.zero_()
        steps.first[:rows] = inputs
        steps.codes.zero_()
        out = []
        for step in range(steps.groups):
            scores = steps.logits(step)[:rows].to(copy=True, dtype=torch.float32)
            if sampling["do_sample"]:
                for change in warp:
                    scores = change(None, scores)
                chosen = torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1)
            else:
                chosen = torch.argmax(scores, dim=-1, keepdim=True)
            steps.codes[:rows] = chosen
            out.append(chosen)
        return torch.cat(out, dim=1)

    def generate(self, **kwargs: Any) -> Any:
        """As the talker calls it: a result with `.sequences` (rows, groups)."""
        inputs = kwargs["inputs_embeds"]
        usual = {"inputs_embeds", "max_new_tokens", "do_sample", "top_k", "top_p", "temperature",
                 "output_hidden_states", "return_dict_in_generate"}  # fmt: skip
        fits = set(kwargs) <= usual and kwargs.get("max_new_tokens") == len(self.predictor.lm_head)
        if not fits or inputs.shape[1] != 2 or not self.ready(inputs.shape[0]):
            return self.eager(**kwargs)
        sampling = {k: kwargs.get(k) for k in ("do_sample", "top_k", "top_p", "temperature")}
        return SimpleNamespace(sequences=self._run(self.steps[bucket(inputs.shape[0])], inputs, **sampling))


def _warpers(sampling: dict[str, Any]) -> list[Any]:
    """The library's own steps from scores to a distribution, in its own order."""
    from transformers.generation.logits_process import (
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    out: list[Any] = []
    if not sampling.get("do_sample"):
        return out
    if (temperature := sampling.get("temperature")) not in (None, 1.0):
        out.append(TemperatureLogitsWarper(float(temperature)))
    if top_k := sampling.get("top_k"):
        out.append(TopKLogitsWarper(int(top_k)))
    if (top_p := sampling.get("top_p")) is not None and top_p < 1.0:
        out.append(TopPLogitsWarper(float(top_p)))
    return out
