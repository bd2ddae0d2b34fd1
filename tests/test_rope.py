"""Questions to rope.py: frequencies, angles, and the turn itself.

B batch, T query length, N query heads, H head size. Positions here never start at 0 and never
follow each other by 1 where that would hide a mistake.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.draw import Draw
from machinery.kinds import asked_elsewhere, leaves_torch_as_it_was, on_meta, same_in_any_layout, same_with_gradients
from machinery.stored import stored

STEPS = torch.tensor([1.0, 0.5, 0.25, 0.125])  # frequencies that fp32 holds exactly, H = 8


def cos_sin(positions, frequencies=STEPS):
    """cos and sin (..., T, H/2) from fp64 angles, so that apply_rope is asked alone."""
    angles = positions.double().unsqueeze(-1) * frequencies.double()
    return angles.cos().float(), angles.sin().float()


def turned(student, x, positions):
    return student.apply_rope(x, *cos_sin(positions))


def score(student, q, k, m, n):
    """The score of one query at position m and one key at position n, through all of rope.py."""

    def at(x, position):
        return student.apply_rope(x[None], *student.rope_cos_sin(torch.tensor([position]), STEPS))

    return (at(q, m).double() * at(k, n).double()).sum()


# rope_frequencies -------------------------------------------------------------------------------


@pytest.mark.points(1)
def test_rope_frequencies_has_one_for_each_pair(student):
    for H in (2, 6, 8):
        expect.tensor(student.rope_frequencies(H), (H // 2,), f"rope_frequencies({H})")
    got = student.rope_frequencies(8)
    wide = got.dtype in (torch.float32, torch.float64)
    expect.that(wide, "the frequencies are too coarse", "Are they at least fp32?", "torch.float32", got.dtype)


@pytest.mark.points(2)
def test_rope_frequencies_follow_the_formula(student):
    H = 2 * Draw(44).whole(4, 5, 12)
    got = student.rope_frequencies(H, 10_000.0)
    expected = 10.0 ** (-torch.arange(H // 2) * (8 / H))  # H = 8: 1, 0.1, 0.01, 0.001
    expect.tensor(got, (H // 2,))
    cause = "Is it theta^(-2i/H) for i = 0, 1, ...: for H = 8 the first 1, each a tenth of the one before?"
    expect.close(got / expected, 1.0, 1e-4, f"a frequency for H = {H}, theta 10,000 is wrong by a factor", cause)
    default = student.rope_frequencies(H)
    cause = "Is the default of theta still 10,000, as it was given?"
    expect.close(default / expected, 1.0, 1e-5, "without a theta the frequencies are not those of 10,000", cause)


@pytest.mark.points(1)
def test_rope_frequencies_use_the_configured_theta(student):
    theta = Draw(45).whole(500_000, 20_000, 900_000)
    got = student.rope_frequencies(8, float(theta))
    expected = float(theta) ** (-torch.arange(4) / 4)  # theta 500,000: 1, 0.0376060, 0.00141421, 5.31830e-5
    expect.tensor(got, (4,))
    cause = "Is theta the argument, and not 10,000 written into the function?"
    expect.close(got / expected, 1.0, 1e-4, f"a frequency for theta {theta:,} is wrong by a factor", cause)


# rope_cos_sin -----------------------------------------------------------------------------------


@pytest.mark.points(0)
def test_rope_cos_sin_is_a_pair_of_tables(student):
    got = student.rope_cos_sin(torch.tensor([3, 7, 0, 9, 2]), STEPS)
    expect.that(
        isinstance(got, (tuple, list)) and len(got) == 2,
        "rope_cos_sin does not return two tensors",
        "Does it return cos, sin, in this order?",
        "cos, sin",
        type(got).__name__,
    )
    for name, table in zip(("cos", "sin"), got, strict=True):
        expect.tensor(table, (5, 4), name)


@pytest.mark.points(1)
def test_rope_cos_sin_uses_the_positions_it_is_given(student):
    draw = Draw(46)
    positions = torch.tensor([draw.whole(position, 0, 40) for position in (3, 7, 0, 9, 2)])
    cause = "Is each angle position * frequency, with the positions of the argument (not 0, 1, 2, ...)?"
    for got, right in zip(student.rope_cos_sin(positions, STEPS), cos_sin(positions), strict=True):
        where = ", ".join(map(str, positions.tolist()))
        expect.close(got, right, 1e-5, f"cos or sin at positions {where} is wrong", cause)


@pytest.mark.points(1)
def test_rope_cos_sin_uses_the_frequencies_it_is_given(student):
    draw = Draw(47)
    scaled = [draw.whole(12, 5, 15) / 16, draw.whole(1, 1, 3) / 16]  # exact in any dtype: angles are asked below
    frequencies = torch.tensor(scaled)  # none that a formula gives: scaled, as NTK or YaRN does
    positions = torch.tensor([4, 1, 8])
    cause = "Are the frequencies those of the argument? Long-context scaling comes in through them."
    for got, right in zip(student.rope_cos_sin(positions, frequencies), cos_sin(positions, frequencies), strict=True):
        expect.close(got, right, 1e-5, "cos or sin with scaled frequencies is wrong", cause)


@pytest.mark.points(0)
def test_rope_cos_sin_second_call_uses_its_own_positions(student):
    student.rope_cos_sin(torch.arange(4), STEPS)
    later = torch.arange(4, 8)
    cause = "Is a table kept from the first call, under a key that leaves the positions out?"
    for got, right in zip(student.rope_cos_sin(later, STEPS), cos_sin(later), strict=True):
        expect.close(got, right, 1e-5, "the second call gives the angles of the first", cause)


@pytest.mark.points(0)
def test_rope_cos_sin_second_call_uses_its_own_frequencies(student):
    positions = torch.arange(6)
    student.rope_cos_sin(positions, STEPS)
    cause = "Is a table kept from the first call, under a key that leaves the frequencies out?"
    for got, right in zip(student.rope_cos_sin(positions, 3 * STEPS), cos_sin(positions, 3 * STEPS), strict=True):
        expect.close(got, right, 1e-5, "the second call gives the angles of the first frequencies", cause)


@pytest.mark.points(1)
def test_rope_cos_sin_accepts_fractional_positions(student):
    draw = Draw(75)
    positions = torch.tensor([draw.whole(quarters, 1, 31) / 4 for quarters in (2, 5, 31)])  # exact in any dtype
    cause = "Are positions used as numbers, not as row numbers of a table?"
    for got, right in zip(student.rope_cos_sin(positions, STEPS), cos_sin(positions), strict=True):
        expect.close(got, right, 1e-5, "interpolated positions come out wrong", cause)


@pytest.mark.points(1)
def test_rope_cos_sin_accepts_positions_by_row(student):
    draw = Draw(76)
    positions = torch.tensor([[draw.whole(position, 0, 40) for position in row] for row in ([0, 1, 2], [5, 6, 9])])
    cause = "Does the code keep all leading axes: (B, T) -> (B, T, H/2)?"
    for got, right in zip(student.rope_cos_sin(positions, STEPS), cos_sin(positions), strict=True):
        expect.tensor(got, (2, 3, 4), "the table of rows with their own positions")
        expect.close(got, right, 1e-5, "rows with their own positions come out wrong", cause)


@pytest.mark.points(1)
def test_rope_cos_sin_has_no_last_position(student):
    draw = Draw(77)
    positions = torch.tensor([draw.whole(100_000, 90_000, 120_000), draw.whole(131_071, 120_000, 200_000)])
    cause = "Is there a table that ends, or a clamp? A far position is just a larger angle."
    for got, right in zip(student.rope_cos_sin(positions, STEPS), cos_sin(positions), strict=True):
        expect.close(got, right, 1e-3, "position 100,000 comes out wrong", cause)


@pytest.mark.points(1)
def test_rope_angles_are_fp32(student):
    draw = Draw(78)
    positions = torch.tensor([draw.whole(position, 1_500, 4_095) for position in (2000, 2001, 4095)])
    frequencies = torch.tensor([draw.real(0.37, 0.3, 0.5), draw.real(0.93, 0.8, 1.0)])
    cause = "Are the angles in bf16 or fp16 somewhere? They need fp32; only the finished table may be rounded."
    for got, right in zip(student.rope_cos_sin(positions, frequencies), cos_sin(positions, frequencies), strict=True):
        expect.close(got, right, 1e-2, "angles at position 2000 are off", cause)


@pytest.mark.points(0)
def test_rope_distinguishes_positions_above_256(student):
    cos, sin = student.rope_cos_sin(torch.arange(256, 261), torch.tensor([1.0]))
    steps = (torch.atan2(sin.double(), cos.double()).diff(dim=0) + math.pi).remainder(2 * math.pi) - math.pi
    cause = "Are positions kept in bf16? It has 8 bits: 256 and 257 are one number there."
    expect.close(steps, 1.0, 1e-2, "neighbouring positions above 256 do not turn by one step", cause)


@pytest.mark.points(0)
def test_rope_tables_lie_on_the_positions_device(student):
    positions = torch.empty(5, dtype=torch.int64, device="meta")
    for index in (0, 1):
        expect.stays_on_meta(lambda index=index: student.rope_cos_sin(positions, STEPS)[index], (5, 4))


@pytest.mark.points(0)
def test_rope_cos_sin_does_not_modify_its_inputs(student):
    positions = torch.tensor([3.0, 7.0, 1.5])
    inputs = student.rope_cos_sin.run(positions, STEPS).inputs
    cause = "Is there an operation in place?"
    expect.identical(inputs[0], positions, "the caller's positions were changed", cause)
    expect.identical(inputs[1], STEPS, "the caller's frequencies were changed", cause)


# apply_rope -------------------------------------------------------------------------------------


@pytest.mark.points(0)
def test_rope_returns_the_shape_of_its_input(student):
    x = Draw(31).normal(2, 3, 5, 8)
    expect.tensor(turned(student, x, torch.tensor([3, 7, 0, 9, 2])), x.shape, "apply_rope's output", torch.float32)


@pytest.mark.points(1)
def test_rope_leaves_position_zero_as_it_is(student):
    x = Draw(32).normal(2, 3, 1, 8)
    cause = "With cos 1 and sin 0, does every number come out where it went in?"
    expect.close(turned(student, x, torch.tensor([0])), x, 1e-6, "position 0 is not left as it is", cause)


@pytest.mark.points(1)
def test_rope_preserves_norm(student):
    x = Draw(33).normal(2, 3, 5, 8)
    y = turned(student, x, torch.tensor([3, 7, 1, 9, 2]))
    expect.tensor(y, x.shape)
    cause = "Is one sine negative, and are both new numbers made from the old pair (not one from the other)?"
    expect.close(y.norm(dim=-1), x.norm(dim=-1), 1e-4, "a turn changed a vector's length", cause)


@pytest.mark.points(1)
def test_rope_pairs_neighbours(student):
    draw = Draw(79)
    for i in range(8):
        y = turned(student, torch.eye(8)[i : i + 1], torch.tensor([draw.real(1.0, 0.2, 3.0)]))
        expect.tensor(y, (1, 8))
        partner = i + 1 if i % 2 == 0 else i - 1
        moved = [j for j in range(8) if j != i and abs(float(y[0, j])) > 1e-3]
        cause = "Is pair i made of entries 2i and 2i + 1 (not i and i + H/2), in the output too?"
        expect.same(moved, [partner], f"entry {i} turns into the wrong partner", cause)


@pytest.mark.points(1)
def test_rope_turns_counter_clockwise(student):
    angle = Draw(80).real(1.0, 0.3, 1.5)
    y = turned(student, torch.eye(8)[:1], torch.tensor([angle]))  # e0 turns by +1: some partner gets +sin 1
    expect.tensor(y, (1, 8))
    cause = "Is the new first number a cos - b sin, and the second a sin + b cos?"
    partner = y[0, 1:][y[0, 1:].abs().argmax()]
    back = abs(float(partner) + math.sin(angle)) < 1e-4
    symptom = "the pair turns the wrong way round" if back else "(1, 0) does not turn to (cos, sin)"
    expect.close(partner, math.sin(angle), 1e-4, symptom, cause)


@pytest.mark.points(1)
def test_rope_turns_every_pair_at_its_own_frequency(student):
    basis = torch.eye(8)[:, None]  # (8, T = 1, 8), one unit vector a row
    position = Draw(96).real(3.0, 1.0, 3.1)
    still, moved = turned(student, basis, torch.tensor([0])), turned(student, basis, torch.tensor([position]))
    got = (still.double() * moved.double()).sum(dim=-1).flatten().sort().values
    expected = (position * STEPS.double()).cos().repeat(2).sort().values  # in any layout each angle shows twice
    cause = "Does pair i use column i of cos and sin, for both of its numbers?"
    expect.close(got, expected, 1e-4, "a pair does not turn by its own angle", cause)


@pytest.mark.points(1)
def test_rope_score_depends_on_relative_position(student):
    draw = Draw(34)
    q, k = draw.normal(8), draw.normal(8)
    near = score(student, q, k, 5, 3)
    others = torch.stack([score(student, q, k, m, 3) for m in (6, 9, 14)])
    symptom = "the score is the same at every distance"
    expect.differ(others, near.expand(3), 1e-2, symptom, "Is the turned x what you return?")
    cause = "Are both sides turned the same way, by position * frequency?"
    for shift in (11, 98, 6_000 - 5):
        far = score(student, q, k, 5 + shift, 3 + shift)
        expect.close(far, near, 1e-3, f"shifting both positions by {shift} changes the score", cause)


@pytest.mark.points(0)
def test_rope_score_changes_with_distance(student):
    draw = Draw(35)
    size = draw.real(1.0, 8.0, 10.0)  # of other numbers than the public ones: large, so that chance hides nothing
    q, k = draw.normal(8, std=size), draw.normal(8, std=size)
    near, far = score(student, q, k, 5, 3), score(student, q, k, 9, 3)
    expect.differ(near, far, 1e-2, "the score ignores the distance", "Is the turned x what you return?")


@pytest.mark.points(1)
def test_rope_rotates_along_time_not_heads(student):
    T = 4  # as many heads as tokens, so that a wrong axis raises nothing
    x = Draw(36).normal(1, 1, T, 8).expand(2, T, T, 8)
    y = turned(student, x, torch.tensor([3, 7, 1, 9]))
    expect.tensor(y, x.shape)
    cause = "Does row t of cos meet token t (the axis before the last), whatever the head?"
    expect.close(y, y[:1, :1].expand_as(y), 1e-6, "equal heads are turned differently", cause)
    expect.differ(y, turned(student, x, torch.tensor([9, 1, 7, 3])), 1e-2, "other positions change nothing", cause)


@pytest.mark.points(1)
def test_rope_broadcasts_tables_by_row(student):
    x = Draw(37).normal(2, 3, 4, 8)
    positions = torch.tensor([[0, 1, 2, 3], [5, 6, 9, 20]])
    cos, sin = cos_sin(positions)
    y = student.apply_rope(x, cos.unsqueeze(1), sin.unsqueeze(1))  # (B, 1, T, H/2)
    expect.tensor(y, x.shape)
    cause = "Can cos and sin of (B, 1, T, H/2) broadcast over the heads?"
    for row in (0, 1):
        right = turned(student, x[row : row + 1], positions[row])
        expect.close(y[row : row + 1], right, 1e-5, f"row {row} is not turned by its own positions", cause)
    expect.differ(y[1], turned(student, x[1], positions[0]), 1e-2, "other positions turn a row no further", cause)


@pytest.mark.points(1)
def test_rope_preserves_dtype(student):
    x = Draw(38).normal(2, 3, 4, 8)
    exact = turned(student, x, torch.tensor([3, 7, 1, 9]))
    expect.differ(exact, 0.0, 0.1, "nothing comes out", "Is the turned x what you return?")
    for dtype, within in ((torch.bfloat16, 0.2), (torch.float16, 0.2)):
        y = turned(student, x.to(dtype), torch.tensor([3, 7, 1, 9]))
        expect.tensor(y, x.shape, f"the output for a {dtype} input", dtype)
        cause = "Is the turn made in fp32 and cast back once?"
        expect.close(y, exact, within, f"the output for a {dtype} input is far off", cause)


@pytest.mark.points(0)
def test_rope_does_not_modify_its_input(student):
    x = Draw(39).normal(2, 3, 4, 8)
    cos, sin = cos_sin(torch.tensor([3, 7, 1, 9]))
    inputs = student.apply_rope.run(x, cos, sin).inputs
    cause = "Do you write into x, or into a view of it?"
    for got, given in zip(inputs, (x, cos, sin), strict=True):
        expect.identical(got, given, "the caller's tensor was changed", cause)


@pytest.mark.points(0)
def test_rope_accepts_any_rank(student):
    x, positions = Draw(40).normal(2, 3, 4, 8), torch.tensor([3, 7, 1, 9])
    whole = turned(student, x, positions)
    expect.tensor(whole, x.shape)
    cause = "Does the code count axes from the end, and name no rank?"
    for part, same in ((x[0], whole[0]), (x[0, 0], whole[0, 0]), (x[:1], whole[:1])):
        y = turned(student, part, positions)
        expect.tensor(y, part.shape, f"the output for an input of shape {tuple(part.shape)}")
        expect.close(y, same, 1e-5, f"an input of shape {tuple(part.shape)} gives another result", cause)


@pytest.mark.points(0)
def test_rope_accepts_axes_of_one(student):
    cause = "Does a squeeze drop an axis of length 1?"
    for B, N, T, H in ((1, 1, 1, 8), (2, 1, 1, 8), (1, 3, 4, 2)):
        x, frequencies = Draw(41).normal(B, N, T, H), STEPS[: H // 2]
        cos, sin = cos_sin(torch.arange(2, 2 + T), frequencies)
        y = student.apply_rope(x, cos, sin)
        expect.tensor(y, x.shape, f"the output for an input of shape {(B, N, T, H)}")
        expect.close(y.norm(dim=-1), x.norm(dim=-1), 1e-4, f"shape {(B, N, T, H)} is not turned", cause)


@pytest.mark.points(0)
def test_rope_accepts_strided_input(student):
    x = Draw(42).normal(1, 3, 4, 8).repeat(2, 1, 1, 1)  # (B, N, T, H), as the attention has it after a transpose
    tables = cos_sin(torch.tensor([3, 7, 1, 9]))
    same_in_any_layout(student.apply_rope, x, *tables, layouts=("transposed", "expanded"))


@pytest.mark.points(0)
def test_rope_is_the_same_with_gradients(student):
    draw, tables = Draw(321), cos_sin(torch.tensor([3, 7, 1, 9]))
    x, upstream = draw.normal(2, 3, 4, 8), draw.normal(2, 3, 4, 8)
    outcome = same_with_gradients(student.apply_rope, (x, *tables), upstream)
    expect.differ(outcome.output, x, 0.1, "where gradients are on x is not turned", "Is the turned x what you return?")
    cause = "Is something detached? The way back turns by the same angle, the other way round."
    expect.that(outcome.grad is not None, "no gradient reaches x", cause)
    back = student.apply_rope(upstream, tables[0], -tables[1])
    expect.close(outcome.grad, back, 1e-4, "the gradient is not turned back", cause)


@pytest.mark.points(0)
def test_rope_has_no_longest_text(student):
    x, tables = Draw(322).normal(1, 1, 1_100, 8), cos_sin(torch.arange(1_100))
    y, cause = student.apply_rope(x, *tables), "Is there a table or a loop of a fixed length?"
    expect.tensor(y, x.shape)
    end = student.apply_rope(x[:, :, -3:], *(table[-3:] for table in tables))
    expect.close(y[:, :, -3:], end, 1e-5, "the last of 1,100 tokens come out wrong", cause)
    for got, right in zip(student.rope_cos_sin(torch.arange(1_100), STEPS), tables, strict=True):
        expect.close(got, right, 1e-3, "cos or sin of 1,100 positions is wrong", cause)


@pytest.mark.points(0)
def test_rope_tells_axes_of_equal_size_apart(student):
    draw = Draw(323)
    x, positions = draw.normal(4, 4, 4, 8), torch.tensor([3, 7, 1, 9])  # B = N = T = H/2
    cause = "Is every axis named by its place, and none found by its size?"
    for got, right in zip(student.rope_cos_sin(positions, STEPS), cos_sin(positions), strict=True):
        expect.close(got, right, 1e-5, "with as many positions as pairs cos or sin is wrong", cause)
    y, longer = turned(student, x, positions), torch.cat((x, x[:, :, :1]), dim=2)
    expected = turned(student, longer, torch.tensor([3, 7, 1, 9, 2]))[:, :, :4]
    expect.close(y, expected, 1e-5, "with B = N = T = H/2 the values are others", cause)


@pytest.mark.points(0)
def test_rope_takes_tables_of_another_dtype(student):
    x, tables = Draw(324).normal(2, 3, 4, 8), cos_sin(torch.tensor([3, 7, 1, 9]))
    exact = student.apply_rope(x, *tables)
    expect.differ(exact, x, 0.1, "x is not turned", "Is the turned x what you return?")
    cause = "Is the result cast to the dtype of x, whatever the tables have?"
    for dtype, table, within in (
        (torch.float32, torch.float64, 5e-5),
        (torch.bfloat16, torch.float32, 0.3),
        (torch.float64, torch.float32, 1e-4),
    ):
        y = student.apply_rope(x.to(dtype), *(each.to(table) for each in tables))
        expect.tensor(y, x.shape, f"the output for a {dtype} input and {table} tables", dtype)
        expect.close(y, exact, within, f"the output for a {dtype} input and {table} tables is far off", cause)


@pytest.mark.points(0)
def test_rope_cos_sin_takes_positions_of_any_dtype(student):
    positions = torch.tensor([3, 1_001, 7, 517])
    cause = "Is everything brought to fp32 before the product, whatever comes in?"
    for dtype, frequencies in ((torch.int32, STEPS), (torch.float64, STEPS), (torch.int64, STEPS.double())):
        for got, right in zip(student.rope_cos_sin(positions.to(dtype), frequencies), cos_sin(positions), strict=True):
            expect.close(got, right, 1e-4, f"cos or sin of {dtype} positions is wrong", cause)


@pytest.mark.points(0)
def test_rope_keeps_no_table_of_another_dtype_or_device(student):
    positions, x = torch.arange(1, 5), Draw(325).normal(1, 2, 4, 8)
    asked_elsewhere(
        lambda: student.rope_cos_sin(torch.empty(4, dtype=torch.int64, device="meta"), STEPS),
        lambda: student.apply_rope(on_meta(1, 2, 4, 8), on_meta(4, 4), on_meta(4, 4)),
        lambda: student.rope_cos_sin(positions.bfloat16(), STEPS),
    )
    cause = "Is a table kept from another call, under a key without dtype and device?"
    for got, right in zip(student.rope_cos_sin(positions, STEPS), cos_sin(positions), strict=True):
        expect.tensor(got, right.shape)
        expect.same(got.device.type, "cpu", "after a call on another device the table lies there", cause)
        expect.close(got, right, 1e-4, "after a call in another dtype or device cos or sin is wrong", cause)
    y = turned(student, x, positions)
    expect.tensor(y, x.shape, "apply_rope's output after a call on another device", torch.float32)
    expect.same(y.device.type, "cpu", "after a call on another device the result lies there", cause)


@pytest.mark.points(0)
def test_rope_takes_values_of_any_size(student):
    x, positions = Draw(326).normal(1, 2, 4, 8), torch.tensor([3, 7, 1, 9])
    plain = turned(student, x, positions)
    cause = "Is something clamped or rounded on the way? A turn of ten times x is ten times the turn."
    for size in (1e-10, 1e10):
        y = turned(student, x * size, positions)
        expect.close(y / size, plain, 1e-4, f"an input of size {size:g} is not turned like others", cause)


@pytest.mark.points(0)
def test_rope_leaves_torch_as_it_was(student):
    tables = student.rope_cos_sin(torch.arange(4), student.rope_frequencies(8))
    student.apply_rope.run(torch.ones(1, 4, 8), *tables, upstream=torch.ones(1, 4, 8))
    leaves_torch_as_it_was(student, "rope")


@pytest.mark.points(0)
def test_rope_lets_the_gradient_through(student):
    draw = Draw(43)
    x, upstream = draw.normal(2, 3, 4, 8), draw.normal(2, 3, 4, 8)
    outcome = student.apply_rope.run(x, *cos_sin(torch.tensor([3, 7, 1, 9])), upstream=upstream)
    cause = "Is there a detach, a no_grad or a .data? A turn passes gradients on at full length."
    expect.that(outcome.grad is not None, "no gradient reaches x", cause)
    expect.close(outcome.grad.norm(dim=-1), upstream.norm(dim=-1), 1e-4, "the gradient's length changed", cause)


@pytest.mark.points(0)
def test_rope_follows_its_device(student):
    x = torch.empty(2, 3, 5, 8, device="meta")
    table = torch.empty(5, 4, device="meta")
    expect.stays_on_meta(lambda: student.apply_rope(x, table, table), x.shape)


@pytest.mark.points(1)
def test_rope_matches_stored_answers(student):
    answer = stored("rope")
    tables = student.rope_cos_sin(answer["positions"], student.rope_frequencies(8, 500.0))
    y = student.apply_rope(answer["x"], *tables)
    cause = f"Your code {layout(student)}. Which of the tests above is red?"
    expect.close(y, answer["y"], 1e-4, "the turned x differs from the stored answer", cause)


def layout(student):
    """What a student's turn of e0 by +1 looks like, in words."""
    y = turned(student, torch.eye(8)[:1], torch.tensor([1]))[0]
    partner = 1 + int(y[1:].abs().argmax())
    known = {1: "pairs neighbours (2i, 2i + 1)", 4: "pairs halves (i, i + H/2), Hugging Face's layout"}
    way = "counter-clockwise" if y[partner] > 0 else "clockwise"
    return f"{known.get(partner, f'pairs entry 0 with entry {partner}')} and turns {way}"
