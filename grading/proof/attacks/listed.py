"""Which attacks there must be: every row of the list, and who plays it where table.py does not."""

FLOOD = "30 GB tensor; fork bomb; setsid daemon; 100 MB print; 600k lines; open sockets; fill the disk"

# Every row of the list of attacks, by its first column.
LISTED = (
    "torch.py or ipykernel_launcher.py beside the notebook",
    "conftest.py, sitecustomize.py, pytest.ini, nbgrader_config.py beside the code",
    "rebind or patch assert_close, pytest, builtins, TestReport",
    "input or AST transformer, patched `do_execute`",
    "object that equals everything; tensor subclass with its own comparison",
    "a test cell made to return points",
    "read the hidden tests, the inputs' seed, the reference, other students' work",
    "hard-coded answers to the public tests",
    "one SQL line against the gradebook",
    "write into the source folder; symlink to the source notebook",
    "kill the parent",
    "os._exit(0) at import or in forward; SIGKILL itself; segmentation fault",
    "infinite loop; with except BaseException; with SIGINT ignored; at import",
    FLOOD,
    "warning on stderr in a right answer",
    "delete, duplicate, split, reorder test cells; edit points; cell to markdown; extra grade id; metadata gone",
    "0 bytes, truncated, not JSON, BOM, merge-conflict tail, renamed `week06 (1).ipynb`",
    "`exercises_en/` missing, renamed, nested, Windows line ends, UTF-16, syntax error, tab mix, NUL byte",
    "`<script>` in output, names, exceptions; terminal escapes",
    "hidden tests printed in feedback",
    "time stamp `2026-11-29 10:00:00 +0900`, `JST`, empty, in the future",
    "grading stopped half-way (power, kill -9)",
    "the grader itself fails",
)

# Rows that other tests play: row -> file, test.
OF_OTHER_TESTS = {
    "input or AST transformer, patched `do_execute`":
        ("week/test_course_autograde.py", "test_no_student_code_runs_in_nbgraders_process"),
    "a test cell made to return points":
        ("week/test_course_autograde.py", "test_no_student_code_runs_in_nbgraders_process"),
    "delete, duplicate, split, reorder test cells; edit points; cell to markdown; extra grade id; metadata gone":
        ("week/test_course_answers.py", "test_a_damaged_notebook_gives_its_answers_and_names_the_damage"),
    "time stamp `2026-11-29 10:00:00 +0900`, `JST`, empty, in the future":
        ("week/test_times.py", "test_what_is_no_time_is_one_sentence"),
    "hard-coded answers to the public tests":
        ("grader/test_grader_secret.py", "test_hard_coded_answers_to_the_public_tests_earn_nothing"),
    "hidden tests printed in feedback":
        ("grader/test_grader_attacks.py", "test_what_students_read_is_plain_text_without_private_numbers"),
    "grading stopped half-way (power, kill -9)":
        ("grader/test_grader_batch.py", "test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing"),
    "the grader itself fails":
        ("grader/test_grader_batch.py", "test_a_grader_error_is_tried_twice_and_blocks_the_table"),
}  # fmt: skip
