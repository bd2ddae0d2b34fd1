"""What a test may ask of an implementation: shared by the tests at home and by the grader's worker.

    subject.py   the questions
    crash.py     what is told of an exception in student code: line, tensors, axis
    on_meta.py   the meta device as a stand-in for a GPU
    counting.py  what a call makes torch do, without a clock
    timing.py    what it takes on a device, against a peer
    clock.py     two pieces of work timed in turn
"""
