"""What the tests count as equal, where the expected value comes from the code that is tested."""

import pytest
import torch

from machinery import expect
from nanolm.answers import plain
from nanolm.source import taken_from_torch

NAN, ONE = torch.full((2,), torch.nan), torch.ones(2)


@pytest.mark.parametrize(("got", "expected"), [(ONE, NAN), (NAN, ONE), (NAN, NAN), (ONE, ONE * torch.inf)])
def test_nothing_is_near_what_is_not_finite(got, expected):
    with pytest.raises(AssertionError):
        expect.close(got, expected, 1e9, "the results differ", "Why?")


OTHER_NUMBERS = (ONE.bool(), ONE.int(), *map(plain, (ONE + 0j, ONE.to_sparse(), ONE.to(torch.float8_e5m2))))


@pytest.mark.parametrize("got", OTHER_NUMBERS, ids=str)
def test_a_real_number_is_asked_and_nothing_that_equals_one(got):
    asks = (
        lambda: expect.close(got, ONE, 9.0, "the results differ", "Why?"),
        lambda: expect.close(got, 1.0, 9.0, "the results differ", "Why?"),
        lambda: expect.identical(got, ONE, "the results differ", "Why?"),
        lambda: expect.differ(got, ONE * 5, 0.1, "nothing changes", "Why?"),
    )
    for ask in asks:
        with pytest.raises(expect.Mistake):
            ask()


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
    assert (raised.value.expected, raised.value.got) == ("1.0000001  1.0000001", "1*         1*")


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (torch.tensor([1.0, 2.5]), torch.tensor([1.0, 3.0]), ("1  2.5", "1  3*")),
        (torch.eye(2), torch.ones(2, 2), ("1  0   |  0   1", "1  1*  |  1*  1")),
        (torch.zeros(9), torch.arange(9.0), ("0", "8")),
    ],
)
def test_a_small_tensor_is_shown_whole_and_what_differs_is_marked(expected, got, said):
    for check, bound in ((expect.close, (0.1,)), (expect.identical, ())):
        with pytest.raises(expect.Mistake) as raised:
            check(got, expected, *bound, "s", "c")
        assert (raised.value.expected, raised.value.got) == said
    if expected.numel() < 9:
        with pytest.raises(expect.Mistake) as raised:
            expect.same(got.flatten().tolist(), expected.flatten().tolist(), "s", "c")
        assert raised.value.got.count("*") == said[1].count("*")


def test_a_near_miss_knows_its_digits():
    for got, digits in ((1.0003, 3), (1.004, 2), (1.1, None)):
        with pytest.raises(expect.Mistake) as raised:
            expect.close(torch.full((2,), got), ONE, 1e-5, "s", "c")
        assert raised.value.digits == digits


@pytest.mark.parametrize(
    ("got", "expected", "word"),
    [((2,), (2, 3), "lost"), ((2, 3, 1), (2, 3), "too many"), ((3, 2), (2, 3), "order"), ((2, 6), (2, 3), "2 times")],
)
def test_a_wrong_shape_is_asked_about_as_it_is(got, expected, word):
    with pytest.raises(expect.Mistake) as raised:
        expect.tensor(torch.ones(got), expected)
    assert word in raised.value.cause


def test_a_mask_of_numbers_is_not_asked_for_the_dtype_of_an_input():
    with pytest.raises(expect.Mistake) as raised:
        expect.tensor(torch.ones(2), (2,), dtype=torch.bool)
    assert "True and False" in raised.value.cause and "input" not in raised.value.cause


READY_MADE = {
    "import torch\ny = torch.nn.functional.rms_norm(x)": True,
    "import torch.nn.functional as F\ny = F.rms_norm(x)": True,
    "from torch import nn\nclass RMSNorm(nn.RMSNorm): pass": True,
    "from torch.nn.functional import rms_norm as norm": True,
    "class RMSNorm:\n    def forward(self, x):\n        return self.rms_norm(x)": False,
    "from . import modules\nnorm = modules.RMSNorm(8)": False,
    "from .modules import RMSNorm": False,
    "import torch\nimport exercises_en.modules as this\nnorm = this.RMSNorm(8)": False,
}


@pytest.mark.parametrize("source", READY_MADE)
def test_only_what_comes_from_torch_is_ready_made(source):
    taken = {"modules.py": taken_from_torch(source, {"rms_norm", "RMSNorm"})}
    if READY_MADE[source]:
        with pytest.raises(expect.Mistake, match="ready-made"):
            expect.avoids(taken, "why")
    else:
        expect.avoids(taken, "why")
