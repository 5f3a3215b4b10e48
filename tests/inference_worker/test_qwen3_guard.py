"""The guard before the fast code predictor, on plain functions: agree and be used, disagree and not be."""

import pytest

torch = pytest.importorskip("torch")

from inference_worker.qwen3_fast import agreement, bucket, guarded  # noqa: E402

pytestmark = pytest.mark.torch


def eager(inputs, *, do_sample, **_):
    scores = inputs.sum(1)
    return torch.multinomial(scores.softmax(-1), 4) if do_sample else scores.topk(4).indices


INPUTS = torch.linspace(-1, 1, 2 * 2 * 16).reshape(2, 2, 16)


def test_the_same_codes_pass_and_the_random_state_is_kept():
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    assert guarded(eager, lambda x, **s: eager(x, **s), INPUTS) == ""
    assert torch.equal(torch.rand(3), expected)


def test_other_codes_are_refused_with_the_share():
    def other(inputs, **sampling):
        codes = eager(inputs, **sampling).clone()
        codes[0, 0] += 1
        return codes

    assert guarded(eager, other, INPUTS) == "87.5% of the codes agree with the eager path (seed 1)"
    assert guarded(eager, other, INPUTS, least=0.8) == ""  # where the operator allows for rounding


def test_other_draws_are_refused():
    def greedy_agrees_only(inputs, *, do_sample, **rest):
        if do_sample:
            torch.rand(1)
        return eager(inputs, do_sample=do_sample, **rest)

    assert "agree with the eager path" in guarded(eager, greedy_agrees_only, INPUTS)


def test_other_greedy_choices_are_refused():
    def sampled_agrees_only(inputs, *, do_sample, **rest):
        codes = eager(inputs, do_sample=do_sample, **rest)
        return codes if do_sample else codes.flip(1)

    assert "0.0% of the codes" in guarded(eager, sampled_agrees_only, INPUTS)


def test_a_candidate_that_fails_is_refused_with_its_words():
    def broken(inputs, **sampling):
        raise RuntimeError("operation not permitted when stream is capturing")

    assert guarded(eager, broken, INPUTS) == "RuntimeError: operation not permitted when stream is capturing"


def test_shapes_and_buckets():
    assert agreement(torch.zeros(2, 3), torch.zeros(2, 4)) == 0
    assert [bucket(n) for n in (1, 2, 3, 8, 9, 33)] == [1, 2, 4, 8, 16, 64]
