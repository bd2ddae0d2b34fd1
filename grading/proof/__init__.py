"""How the tests and the project's claims are proved.

    bank.py           mistakes/ and variants/: the known mistakes and the right programs, as edits of reference/
    matrix.py         every mistake and every right program against every test
    planted.py        styles/: right programs in other hands, and the bank's mistakes planted in each
    mutants.py        generated mutants of reference/ against the same tests
    fingerprints.py   what the mistakes answer, stored for naming
    grid.py           which kind of question each part is asked, and by which test
    right_programs.py layouts, imports and encodings that must be graded like any other
    fuzz.py           made-up bytes against all that the trusted side reads
    bank_page.py      a page to browse the mistakes
    attacks/          hostile and unlucky submissions, each with the state that it must end in
    runs.py, marks.py the week's tests on implementations, and their points added up
    hf_twins.py       Hugging Face's models with our configuration and weights, the outside judge
    facts.toml        which test proves which statement of the lessons
    soak.py           a grader that is killed at random moments
    bench/            ratios, each against a peer in the same run

It may import the grader and authoring. Nothing that runs in a grade imports it; demo/ takes its mistakes from the bank.
"""
