"""Who is in the demo class, and what each hands in. The names are made up."""

from dataclasses import dataclass
from datetime import datetime

from grading.demo.made_up_class.programs import NOT_STARTED, Program

DUE = "2026-10-30T23:59:00+01:00"
IN_TIME, LATE = "2026-10-30T18:12:45+01:00", "2026-11-01T08:30:00+01:00"
HALF = ("causal_mask", "GroupedQueryAttention.forward", "Block.forward", "count_parameters")
TWINS = Program(style=31, mistakes=("attn-scale-by-model-dim",))


@dataclass(frozen=True)
class Student:
    """One row of the class. Names are first and last, as on the roster."""

    id: str
    name: tuple
    program: Program | None  # None: no code files
    answers: str = "good"
    harm: str = ""  # what happened to the notebook, see notebooks.py
    packing: str = "zip"  # see lms.py
    time: str = IN_TIME

    @property
    def core(self):
        """Points of the core where they are known without grading, else None."""
        program = self.program
        if program in (None, NOT_STARTED) or self.packing == "cut off":
            return 0
        right = not (program.mistakes or program.attack or program.broken or program.open)
        return 100 if right else None

    @property
    def late(self):
        """Whether it came after the due date, however its time is written."""
        return datetime.fromisoformat(self.time.replace(" ", "T", 1).replace(" ", "")) > datetime.fromisoformat(DUE)


def wrong(style, *mistakes, **more):
    """A program in its own style with these mistakes of the bank."""
    return Program(style, mistakes=mistakes, **more)


CLASS = (
    Student("aada", ("Aada", "Virtanen"), Program(style=1)),
    Student("bao", ("Bảo", "Nguyễn"), Program(variants=("core-in-metas-style",)), "good", packing="loose"),
    Student("chloe", ("Chloé", "Lefèvre-Petit"), Program(style=3), "short", packing="crlf"),
    Student("daniil", ("Даниил", "Орлов"), Program(style=4), "off", time="2026-10-31T00:05:00+01:00"),
    Student("emeka", ("Emeka", "Okafor"), Program(style=45), "good", "unmarked", time="2026-10-30T21:40:00Z"),
    Student("fatima", ("فاطمة", "الزهراء"), Program(variants=("core-by-loops",)), "good", "bom"),
    Student("gisela", ("Gisela", "Groß"), TWINS, "short", time="2026-10-30T22:01:10+01:00"),
    Student("hugo", ("Hugo", "Ibáñez"), Program(TWINS.style, mistakes=TWINS.mistakes, copied=True), "short", time=LATE),
    Student("ines", ("Inês", "d'Ávila"), wrong(8, "rmsnorm-centers", "gqa-repeat-instead-of-interleave")),
    Student("jin", ("進", "佐藤"), wrong(9, "gqa-repeat-instead-of-interleave"), "good", packing="no top folder"),
    Student("kasper", ("Kasper", "Sørensen"), wrong(10, "rope-layout-mismatch"), "off", "conflict", time=LATE),
    Student("lale", ("Lâle", "Yıldız"), wrong(11, "rope-layout-mismatch", "ffn-dim-round-nearest"), packing="deep"),
    Student("mihai", ("Mihai", "Stan"), wrong(12, "swiglu-gate-up-swapped", "kvcache-forgets-layers"), harm="to text"),
    Student("noor", ("Noor", "de Vries"), wrong(15, "block-post-norm", "rmsnorm-missing-gamma"), "short", "missing"),
    Student("oskar", ("Oskar", "Lindqvist"), wrong(14, "gqa-repeat-instead-of-interleave", "loss-no-shift"), "none"),
    Student("priya", ("Priya", "R."), wrong(46, "rmsnorm-centers", open=("Block.forward",)), packing="again"),
    Student("quang", ("Quang", "Lê"), Program(16, open=("Block.forward", "count_parameters")), "off", "empty"),
    Student("rosa", ("Rosa", "Ó Briain"), Program(17, open=HALF), "none", time="2026-11-07T10:00:00+01:00"),
    Student("sven", ("Sven", "Åkesson"), NOT_STARTED, "short", packing="cut off"),
    Student("tala", ("Tala", "Haddad"), NOT_STARTED, "none", "scripted"),
    Student("umut", ("<b>Umut</b>", "=HYPERLINK(A1)"), Program(20, attack="patched_checkers"), "hostile"),
    Student("vera", ("Vera", "+1+1"), Program(21, attack="one_sql_line"), "hostile", "points"),
    Student("wei", ("伟", "李"), Program(47, attack="exits_in_forward"), "none", "reordered"),
    Student("xenia", ("Xenia", "@SUM(A1:A9)"), Program(23, attack="shadow_modules"), "off", packing="climbing"),
    Student("yusuf", ("Yusuf", "Çelik"), Program(24, attack="script_in_exceptions"), "hostile", "duplicated"),
    Student("zofia", ("Zofia", "Żak"), Program(style=25), "good", "not json"),
    Student("anders", ("Anders", "Müller"), wrong(26, "attn-no-causal-mask"), "good", "truncated", time=LATE),
    Student("ciaran", ("Ciarán", "O'Neill"), wrong(28, "kvcache-uses-query-heads"), "good", "renamed"),
    Student("dorota", ("Dorota", "Wójcik"), Program(29, broken="attention.py"), "good", "deleted"),
    Student("elif", ("Elif", "Şahin"), None, "good", packing="zip", time="2026-10-30 23:10:00 +0900"),
)
# On the roster, but nothing came in.
ABSENT = (Student("farid", ("Farid", "Rahimi"), None),)
