"""What the week's tests are made with: inputs, assertions, verdicts and names. The questions stand in tests/test_*.py.

draw.py     random inputs and weights         expect.py  assertions that speak to a student
judge.py    whose mistake a red test is       naming.py  which known mistake it is
parts.py    the parts of the week             stored.py  stored right answers
kinds.py    what every part is asked          attending.py  what several files ask of attention
telling.py  how a red test is printed         hints.toml  what is said of each known mistake
"""
