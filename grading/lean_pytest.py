"""pytest's arguments for a run of the week's tests that nobody reads on a terminal: a proof's, a grade's."""

# What these say belongs to the machine, and they need the code in their own process.
WITHOUT_CLOCK = "--ignore=tests/test_timing_cuda.py"
# pytest's own reporting is not needed: without it a run takes a third less time.
WITHOUT = ("cacheprovider", "terminalreporter", "logging", "unraisableexception", "threadexception", "warnings",
           "faulthandler", "junitxml", "doctest", "capture")
LEAN = (
    *("-q", "--assert=plain", "--disable-plugin-autoload", WITHOUT_CLOCK),
    *(word for name in WITHOUT for word in ("-p", f"no:{name}")),
)
