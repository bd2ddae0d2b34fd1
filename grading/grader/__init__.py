"""The grader of two zones: tests and answers on one side, student code in a sandbox on the other.

inside/      all that the sandbox sees of the course besides nanolm/: wire, worker, zygote
limits.py    seconds and bytes that student code may use
bubblewrap.py    bubblewrap's command line, and what is to be found inside
fork_server.py   starts the process that imports torch and forks a zygote for each slot
own_user.py  another user for student code, where there is no sandbox
sandbox.py   a Zygote forks workers; a Worker is one process of student code
stopwatch.py how long a worker has run, by the processor and by the clock
allowance.py the seconds that one submission has left
remote.py    the Subject that tests ask, answered by a worker
workers.py   the workers of one submission: asked, replaced, kept to their time
student_files.py which files of a submission are taken, and in what state
plugin.py    the week's tests, collected by pytest once, run on one remote Subject after the other
exam.py      one submission graded: its result as plain data
batch.py     many submissions side by side, one writer
results.py   result files, CSV, Gradescope
hosted.py    one submission in Gradescope's container
run.py       `python -m grading run`: a folder of submissions
doctor.py    `python -m grading doctor`: which walls stand on this machine
secret.py    the instructor's secret, and the seed that comes from it
cgroups.py   a control group for each zygote, where the machine has them
lost_worker.py, states.py    a worker that is lost, and the states that a test can end in
untrusted/   reads what students hand in: archives, notebooks, tables, with limits
spreadsheet.py   text made safe for tables that people open in a spreadsheet
"""
