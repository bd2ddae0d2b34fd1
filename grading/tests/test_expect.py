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


def test_a_change_is_more_than_its_bound_somewhere():
    expect.differ(ONE, torch.tensor([1.0, 1.2]), 0.1, "nothing changes", "Why?")
    for other in (ONE, ONE + 0.05, ONE * torch.nan):
        with pytest.raises(AssertionError):
            expect.differ(ONE, other, 0.1, "nothing changes", "Why?")


def test_expected_and_got_never_read_the_same():
    with pytest.raises(expect.Mistake) as raised:
        expect.close(ONE.double(), ONE.double() + 1e-7, 1e-9, "the results differ", "Why?")
    assert (raised.value.expected, raised.value.got) == ("1.0000001", "1")
