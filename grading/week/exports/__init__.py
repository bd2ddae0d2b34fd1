"""Grades for other systems: nbgrader's own CSV, Canvas, Moodle, Gradescope.

    rows.py       who has a final mark, who has not, and why
    plugins.py    the export plugins: `nbgrader export --exporter=exporters.CanvasExporter`
    gradescope.py one student as Gradescope's results.json
    command.py    `python -m grading export --course COURSE`: all of them
"""
