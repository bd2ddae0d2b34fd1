"""What the tests count as equal, where the expected value comes from the code that is tested."""

import pytest
import torch

import expect

NAN, ONE = torch.full((2,), torch.nan), torch.ones(2)


@pytest.mark.parametrize(("got", "expected"), [(ONE, NAN), (NAN, ONE), (NAN, NAN), (ONE, ONE * torch.inf)])
def test_nothing_is_near_what_is_not_finite(got, expected):
    with pytest.raises(AssertionError):
        expect.close(got, expected, 1e9, "the results differ", "Why?")


def test_what_is_near_is_near():
    expect.close(ONE, ONE + 1e-3, 1e-2, "the results differ", "Why?")
