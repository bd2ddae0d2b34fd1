"""From what a learning platform gives to submitted/STUDENT/week06/: every student's files under fixed names."""

ASSIGNMENT = "week06"
CODE = "exercises_en"  # the folder of the code files in a submission
