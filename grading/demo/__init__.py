"""The week tried out: a made-up class of 30 through all of it, and samples of what a submission is told.

    command.py        `make demo`: the whole week of an instructor
    forked.py         its commands, from one process
    made_up_class/    the class: people, programs, notebooks, as Canvas gives them
    picture.py        the class page's first screen, for README
    samples.py, check_samples.py   `make samples`: a right, a wrong and a half-finished submission

It may import every other room; none imports it.
"""
