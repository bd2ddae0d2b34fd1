"""What students get: `python -m grading release --out FOLDER`.

release.py     the release: folder, zip and the course's nbgrader release
bundle.py      the files that students get
packages.py    what they install, from the project's own pins
student_readme.md  what they read
leaks.py       nothing of solutions and rubrics is in it
contents.py    what any file says, whatever it is
fragments.py   code in a form that does not depend on names
snippets.py    the code in a text
trial.py       the bundle where nothing else is
command.py, errors.py    the command, and what can go wrong
autograder.py, gradescope/      Gradescope's autograder, for instructors only
github.py, github_templates/    a template repository, and Classroom 50's autograder
"""
