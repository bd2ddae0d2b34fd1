"""The recipe: what each swap from the 2019 block to the modern one moves.

    swaps.py       the swaps and their numbers
    show.py        the numbers as text and as a page
    ledger.py      parameters, cache, arithmetic and memory traffic of a configuration
    deep_stack.py  stability at depth, measured
    panel.py       the panel of checkboxes in a notebook
"""
