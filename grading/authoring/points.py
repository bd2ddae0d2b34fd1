"""What each part is worth: the sum of its tests' own marks."""

from functools import cache


@cache
def points_by_part():
    """{part: points}, every part of the week in its order."""
    from machinery import judge, parts

    found = dict.fromkeys(parts.PARTS, 0)
    for name, test in judge.all_tests().items():
        part = parts.part_of_test(name)
        if part in found:
            found[part] += sum(mark.args[0] for mark in test.pytestmark if mark.name == "points")
    return found
