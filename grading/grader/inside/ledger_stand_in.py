"""Stands in the sandbox where nanolm/recipe/ledger.py stands at home: that one counts parameters, which is an exercise.

A file may go on importing from it. Who calls what it has imported hears why not.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def refused(*args, **kwargs):
        raise RuntimeError(f"{__name__} is not there when code is graded: it counts what you are asked to count")

    return refused
