"""The grader of two zones: tests and answers on one side, student code in a sandbox on the other.

inside/      all that the sandbox sees of the course besides nanolm/: wire, worker, zygote
limits.py    seconds and bytes that student code may use
walls.py     bubblewrap's command line, and what is to be found inside
fork_server.py   starts the process that imports torch and forks a zygote for each slot
own_user.py  another user for student code, where there is no sandbox
sandbox.py   a Zygote forks workers; a Worker is one process of student code
stopwatch.py how long a worker has run, by the processor and by the clock
allowance.py the seconds that one submission has left
remote.py    the Subject that tests ask, answered by a worker
intake.py    which files of a submission are taken, and in what state
plugin.py    the week's tests, collected by pytest once, run on one remote Subject after the other
session.py   one submission graded: its result as plain data
batch.py     many submissions side by side, one writer
results.py   result files, CSV, Gradescope
hosted.py    one submission in Gradescope's container
"""
