"""What a student calls: `python -m nanolm COMMAND`, and the self-check of the week's notebook.

    check.py      how far you are, and what to do next: one screen
    hint.py       help with a red test or a known mistake
    generate.py   SmolLM2-135M speaks through the implementation under test
    budget.py     what a configuration costs
    selfcheck.py  one part's public tests in a notebook's cell
    run_tests.py  the tests, run for these two
"""
