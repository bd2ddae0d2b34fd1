"""The last question of the week: is it fast for the right reason? It needs a GPU's clock.

Each test measures your code against a peer in the same run; the table stands at the end of pytest's
output. Only where a peer must be at least twice as slow is anything asked of the ratio, and that is
advice too (tests/test_memory.py asks without a clock).
"""

import pytest
import torch

from machinery import expect
from nanolm.asking import timing
from nanolm.errors import StudentError

if not torch.cuda.is_available():
    pytest.skip("the clock needs a CUDA device, and torch finds none here", allow_module_level=True)

DEVICE = torch.device("cuda")
BUSY = "Does something else use this GPU?"


@pytest.fixture
def measured(student, request):
    """Measure one row for the table; the symptom and the cause are for a ratio under its gate."""

    def measure(measurement, symptom="", cause=""):
        row = student.timed(measurement, DEVICE, timing.LARGE)
        request.config.rows.append(row)
        expected = f"{row.b} takes at least {row.gate} times as long as {row.a}"
        expect.that(row.is_fast, symptom, f"{cause} {BUSY}", expected, f"{row.ratio:.2f} times")

    return measure


def test_timing_rmsnorm_against_a_copy(student, measured):
    measured(timing.rmsnorm_against_a_copy)


def test_timing_rmsnorm_against_torch(student, measured):
    measured(timing.rmsnorm_against_torch)


def test_timing_rmsnorm_against_layernorm(student, measured):
    measured(timing.rmsnorm_against_layernorm)


def test_timing_torch_rmsnorm_against_layernorm(student, measured):
    measured(timing.torch_rmsnorm_against_layernorm)


def test_timing_swiglu_against_gelu(student, measured):
    measured(timing.swiglu_against_gelu)


def test_timing_attention_against_fused(student, measured):
    measured(timing.attention_against_fused)


def test_timing_attention_against_written_out(student, measured):
    symptom = "the attention is hardly faster than one with its softmax written out"
    measured(timing.attention_against_written_out, symptom, "Does scaled_dot_product_attention do the softmax?")


@pytest.mark.needs("cache")
def test_timing_decode_flat_in_N(student, measured):
    measured(timing.decode_flat_in_N)


@pytest.mark.needs("cache")
def test_timing_decode_falls_with_G(student, measured):
    symptom = "a step gains little from key/value heads that are shared"
    measured(timing.decode_falls_with_G, symptom, "Are K and V copied to N heads at every step (enable_gqa=True)?")


@pytest.mark.needs("cache")
def test_timing_decode_against_recomputation(student, measured):
    symptom = "a cached step is hardly faster than the whole text again"
    measured(timing.decode_against_recomputation, symptom, "Is only the new token computed?")


def test_timing_block_in_bf16(student, measured):
    symptom = "the block is hardly faster in bf16 than in fp32"
    measured(timing.block_in_bf16, symptom, "Do the matrices stay in bf16 (only norm and softmax need fp32)?")


def test_timing_forward_waits_for_nothing(student):
    cause = "Is there an item(), an if on a tensor's value, or something that is made on the CPU and moved?"
    try:
        student.timed(timing.forward_without_waiting, DEVICE, timing.LARGE)
    except StudentError as error:
        if "synchronizing" not in error.message:  # torch's word for it
            raise
        raise expect.Mistake("a forward waits for the GPU", "no wait", error.place or error.message, cause) from error
