"""From what a learning platform gives to submitted/STUDENT/week06/: every student's files under fixed names."""

ASSIGNMENT = "week06"
LOST, OWNERLESS = "no", "no owner"  # in the table's column "collected", of what is not; anybody's, where it is no one's
CODE = "exercises_en"  # the folder of the code files in a submission
