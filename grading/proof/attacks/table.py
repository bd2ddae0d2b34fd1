"""Hostile and unlucky submissions, each with the state, points and sentence that it must end in."""

from grading.proof.attacks.attack import (
    CRASHED,
    FAILED,
    HELPERS,
    MODULE,
    NO_MEMORY,
    NOT_STARTED,
    PASSED,
    REFUSED,
    TIMED_OUT,
    Attack,
)
from grading.proof.attacks.listed import FLOOD

RIGHT = "return self.right(x)"
EVIL = "import sys\nsys.exit('imported')\n"
ALWAYS_EQUAL = '''
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True
class Anything:
    def __eq__(self, other): return True
    def __getattr__(self, name): return lambda *a, **k: self
'''

ROWS = [
    Attack("nothing", "control: an honest wrong answer"),
    Attack("right", "control: a right answer", RIGHT, states=PASSED, points=5),
    Attack("shadow_modules", "torch.py or ipykernel_launcher.py beside the notebook",
           imports="import json, numpy, safetensors.torch",
           beside={"torch.py": EVIL, "ipykernel_launcher.py": EVIL, "numpy.py": EVIL, "json.py": EVIL}),
    Attack("configuration_beside", "conftest.py, sitecustomize.py, pytest.ini, nbgrader_config.py beside the code",
           beside={"conftest.py": EVIL, "sitecustomize.py": EVIL, "pytest.ini": "[pytest]\naddopts = --collect-only\n",
                   "nbgrader_config.py": EVIL, "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-x'\n"}),
    Attack("patched_checkers", "rebind or patch assert_close, pytest, builtins, TestReport", imports='''
import builtins
import torch.testing
torch.testing.assert_close = lambda *a, **k: None
torch.equal = torch.allclose = lambda *a, **k: True
builtins.AssertionError = KeyError
builtins.isinstance = lambda *a: True
''', states=FAILED | CRASHED),
    Attack("patched_pytest", "rebind or patch assert_close, pytest, builtins, TestReport", imports='''
try:
    from _pytest.reports import TestReport
    TestReport.from_item_and_call = classmethod(lambda *a, **k: None)
except Exception:
    pass
'''),
    Attack("patched_subject", "rebind or patch assert_close, pytest, builtins, TestReport", imports='''
import nanolm.asking.subject
nanolm.asking.subject._plain = lambda value: True
nanolm.asking.subject.StudentError = KeyError
''', states=FAILED | REFUSED),
    Attack("tensor_subclass", "object that equals everything; tensor subclass with its own comparison",
           "return x.as_subclass(Yes)", ALWAYS_EQUAL, states=FAILED),
    Attack("equals_everything", "object that equals everything; tensor subclass with its own comparison",
           "return Anything()", ALWAYS_EQUAL, states=FAILED | REFUSED),
    Attack("reads_the_course", "read the hidden tests, the inputs' seed, the reference, other students' work", '''
for place in ROOTS:
    for folder in ("reference", "tests/golden", "grading"):
        if os.path.isdir(os.path.join(place, folder)):
            return self.right(x)
return x
''', "import os\nROOTS = ['/work', '/work/main', '/course', '/', os.getcwd(), '..', '{course}']\n", sandbox_only=True),
    Attack("kernel_keys", "own", '''
number = {'x86_64': 248, 'aarch64': 217}[os.uname().machine]  # add_key, into the keyring of the process
kept = ctypes.CDLL(None).syscall(number, b'user', b'nanolm', b'seen', 4, -2)
return self.right(x) if kept >= 0 else x
''', "import ctypes, os"),
    Attack("one_sql_line", "one SQL line against the gradebook", '''
try:
    base = sqlite3.connect('{victim}')
    base.execute('update grade set points = 495')
    base.commit()
except sqlite3.Error:
    pass
return x
''', "import sqlite3", sandbox_only=True),
    Attack("writes_elsewhere", "write into the source folder; symlink to the source notebook", '''
for folder in ('{submissions}', '/usr', '/dev/shm', '/course', '/tmp', '/room'):
    try:
        with open(os.path.join(folder, 'left_behind'), 'w') as stream:
            stream.write('x')
    except OSError:
        pass
return x
''', "import os", sandbox_only=True),
    Attack("kills_its_parent", "kill the parent", "os.kill(os.getppid(), 9)\nreturn x", "import os",
           states=FAILED | CRASHED),
    Attack("exits_at_import", "os._exit(0) at import or in forward; SIGKILL itself; segmentation fault",
           imports="import os\nos._exit(0)", states=CRASHED),
    Attack("exits_in_forward", "os._exit(0) at import or in forward; SIGKILL itself; segmentation fault",
           "os._exit(0)", "import os", states=CRASHED),
    Attack("kills_itself", "os._exit(0) at import or in forward; SIGKILL itself; segmentation fault",
           "os.kill(os.getpid(), 9)", "import os", states=CRASHED),
    Attack("segfault", "os._exit(0) at import or in forward; SIGKILL itself; segmentation fault",
           "ctypes.string_at(0)", "import ctypes", states=CRASHED),
    Attack("endless_loop", "infinite loop; with except BaseException; with SIGINT ignored; at import",
           "while True: pass", states=TIMED_OUT),
    Attack("endless_loop_that_catches", "infinite loop; with except BaseException; with SIGINT ignored; at import", '''
while True:
    try:
        while True: pass
    except BaseException:
        pass
''', states=TIMED_OUT),
    Attack("endless_loop_deaf", "infinite loop; with except BaseException; with SIGINT ignored; at import",
           "while True: pass", '''
import signal
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
''', states=TIMED_OUT),
    Attack("endless_import", "infinite loop; with except BaseException; with SIGINT ignored; at import",
           imports="while True: pass", states=TIMED_OUT),
    Attack("thirty_gigabytes", FLOOD,
           "return torch.ones(30 << 28)", states=NO_MEMORY),
    Attack("fork_bomb", FLOOD, '''
while True:
    try:
        os.fork()
    except OSError:
        pass
''', "import os", states=TIMED_OUT | CRASHED | REFUSED, sandbox_only=True),
    Attack("daemon", FLOOD, '''
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(1)
    os._exit(0)
return x
''', "import os, time", sandbox_only=True),
    Attack("prints_100_megabytes", FLOOD,
           "print('x' * 100_000_000)\nreturn self.right(x)", states=PASSED, points=5),
    Attack("prints_600k_lines", FLOOD,
           "sys.stderr.write('line\\n' * 600_000)\nreturn self.right(x)", "import sys", states=PASSED, points=5),
    Attack("opens_sockets", FLOOD, '''
for address in (('192.0.2.1', 80), ('127.0.0.1', 22)):
    try:
        socket.create_connection(address, 0.1)
        return self.right(x)
    except OSError as error:
        if address[1] == 80 and error.errno not in (errno.ENETUNREACH, errno.EPERM):
            return self.right(x)  # packets may leave: that is a hole too
return x
''', "import errno, socket", sandbox_only=True),
    Attack("fills_the_disk", FLOOD, '''
with contextlib.suppress(OSError):
    for number in range(100):
        with open(f"{number}", "wb") as stream:
            stream.write(bytes(15_000_000))
    return self.right(x)
return x
''', "import contextlib, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)", states=FAILED, sandbox_only=True),
    Attack("warns", "warning on stderr in a right answer", "warnings.warn('careful')\nreturn self.right(x)",
           "import warnings\nwarnings.simplefilter('always')", states=PASSED, points=5),
    Attack("empty_file", "0 bytes, truncated, not JSON, BOM, merge-conflict tail, renamed `week06 (1).ipynb`",
           beside={"modules.py": ""}, states=FAILED),
    Attack("truncated_file", "0 bytes, truncated, not JSON, BOM, merge-conflict tail, renamed `week06 (1).ipynb`",
           beside={"modules.py": MODULE[:150]}, states=FAILED),
    Attack("merge_conflict", "0 bytes, truncated, not JSON, BOM, merge-conflict tail, renamed `week06 (1).ipynb`",
           beside={"modules.py": "x = 1\n<<<<<<< HEAD\ny = 1\n=======\n>>>>>>> theirs\n"},
           says="modules.py, line 2, holds the marks of a merge conflict: choose one version."),
    Attack("notebook_that_is_no_json",
           "0 bytes, truncated, not JSON, BOM, merge-conflict tail, renamed `week06 (1).ipynb`",
           RIGHT, states=PASSED, points=5, beside={"week06.ipynb": "{", "week06 (1).ipynb": ""}),
    Attack("mixed_tabs",
           "`exercises_en/` missing, renamed, nested, Windows line ends, UTF-16, syntax error, tab mix, NUL byte",
           beside={"modules.py": "def f(x):\n\tif x:\n        return 1\n"}, states=FAILED),
    Attack("script_in_exceptions", "`<script>` in output, names, exceptions; terminal escapes",
           "raise type('<script>\\x1b[2J', (Exception,), {})('\\x1b]0;<script>alert(1)</script>\\x07\\n\\u202e')"),
]  # fmt: skip

WIRE = [
    Attack("garbage", "own", "say(b'\\xff' * 10_000)\nreturn x", HELPERS, states=REFUSED),
    Attack("huge_frame", "own", "say(struct.pack('!II', 2**32 - 1, 2**32 - 1))\nreturn x", HELPERS, states=REFUSED),
    Attack("not_json", "own", "say(frame(b'{\"id\": '))\nreturn x", HELPERS, states=REFUSED),
    Attack("not_ascii", "own", "say(frame('{\"id\": \"\\u00e9\"}'.encode()))\nreturn x", HELPERS, states=REFUSED),
    Attack("nested_json", "own", "say(frame(b'[' * 500_000))\nreturn x", HELPERS, states=REFUSED),
    Attack("nested_value", "own", '''
value = None
for _ in range(40):
    value = {"list": [value]}
say(answer(outcome(output=value)))
return x
''', HELPERS, states=REFUSED),
    Attack("a_million_values", "own", "say(answer(outcome(output={'list': [None] * 5_000})))\nreturn x", HELPERS,
           states=REFUSED),
    Attack("not_a_number", "own", "say(frame(b'{\"id\": NaN}'))\nreturn x", HELPERS, states=REFUSED),
    Attack("field_twice", "own", '''
say(frame(b'{"id": "%s", "answer": null, "answer": null}' % ticket().encode()))
return x
''', HELPERS, states=REFUSED),
    Attack("slow_frame", "own", '''
for byte in answer(outcome()):
    say(bytes([byte]))
    time.sleep(0.2)
''', HELPERS, states=TIMED_OUT),
    Attack("half_a_frame", "own", "say(answer(outcome())[:40])\ntime.sleep(60)", HELPERS, states=TIMED_OUT),
    Attack("endless_stream", "own", "while True: say(frame({'id': 'x'}))", HELPERS, states=REFUSED),
    Attack("answers_twice", "own", "say(answer(outcome()))\nreturn x", HELPERS, states=FAILED | REFUSED),
    Attack("answers_an_old_question", "own", "say(frame({'id': '0123456789abcdef', 'answer': None}))\nreturn x",
           HELPERS, states=REFUSED),
    Attack("answers_before_it_is_asked", "own", '''
say(answer(outcome()) * 20)
time.sleep(0.3)
return x
''', HELPERS, states=FAILED | REFUSED),
    Attack("answers_for_another_part", "own", '''
head = {"id": ticket(), "answer": None, "part": "rope", "points": 5}
say(frame(head))
return x
''', HELPERS, states=REFUSED),
    Attack("pickle_for_bytes", "own", "say(answer(outcome(output={'tensor': 0}), pickle.dumps(RMSNorm)))\nreturn x",
           HELPERS + "import pickle\n", states=REFUSED),
    Attack("lying_safetensors", "own", '''
head = b'{"0":{"dtype":"F32","shape":[1000000],"data_offsets":[0,4000000]}}'
say(answer(outcome(output={"tensor": 0}), struct.pack("<Q", len(head)) + head + bytes(8)))
return x
''', HELPERS, states=REFUSED),
    Attack("endless_safetensors_header", "own",
           "say(answer(outcome(output={'tensor': 0}), struct.pack('<Q', 2**63) + bytes(64)))\nreturn x", HELPERS,
           states=REFUSED),
    Attack("tensor_that_is_not_there", "own", "say(answer(outcome(output={'tensor': 7})))\nreturn x", HELPERS,
           states=REFUSED),
    Attack("unknown_form", "own", "say(answer(outcome(output={'eval': '1'})))\nreturn x", HELPERS, states=REFUSED),
    Attack("private_method_as_form", "own", "say(answer(outcome(output={'_value': None})))\nreturn x", HELPERS,
           states=REFUSED),
    Attack("a_configuration_as_answer", "own", "say(answer(outcome(output={'config': {'L': None}})))\nreturn x",
           HELPERS, states=REFUSED),
    Attack("a_number_of_a_million_digits", "own", '''
say(answer(outcome(output={"whole": "9" * 900_000, "type": "int"})))
return x
''', HELPERS, states=REFUSED),
    Attack("outcome_without_fields", "own", "say(answer({'dict': []}))\nreturn x", HELPERS, states=REFUSED),
    Attack("gradient_that_is_text", "own", "say(answer(outcome(grad={'text': 'all'})))\nreturn x", HELPERS,
           states=REFUSED),
    Attack("unknown_error", "own", '''
error = dict.fromkeys(("message", "name", "kind", "place"), "") | {"type": "Passed"}
say(frame({"id": ticket(), "error": error}))
return x
''', HELPERS, states=REFUSED),
    Attack("claims_not_started", "own", '''
error = dict.fromkeys(("message", "kind", "place"), "") | {"type": "NotStarted", "name": "RMSNorm.<b>"}
say(frame({"id": ticket(), "error": error}))
return x
''', HELPERS, states=NOT_STARTED | REFUSED),
    Attack("claims_another_part_is_not_started", "own",
           "raise NotImplementedError('rope.py: apply_rope is not started. Bad luck.')", states={"waiting"}),
    Attack("closes_the_wire", "own", "os.closerange(3, 64)\ntime.sleep(60)", HELPERS, states=TIMED_OUT | CRASHED),
    Attack("shuts_the_wire", "own", "for wire in wires(): wire.shutdown(socket.SHUT_RDWR)\ntime.sleep(60)", HELPERS,
           states=CRASHED),
    Attack("never_reads", "own", "sys.modules[[n for n in sys.modules if n.endswith('inside.wire')][0]].receive = "
           "lambda *a: time.sleep(60)\nreturn x", HELPERS, states=FAILED | TIMED_OUT),
]  # fmt: skip

TENSORS = [
    Attack("poisoned_configuration", "own", """
config = preset("tiny")
object.__setattr__(config, "norm", repr(x))
return config
""", "from nanolm.config import preset", states=FAILED | REFUSED),
    Attack("one_tensor_many_times", "own", """
def encode(value, tensors):
    tensors.append(torch.zeros(1 << 20))
    return {"list": [{"tensor": 0}] * 60}
sys.modules["inside.wire"].encode = encode
return x
""", "import sys", states=FAILED | REFUSED),
    Attack("asks_transformers", "own", """
from transformers.models.llama.modeling_llama import LlamaRMSNorm
norm = LlamaRMSNorm(x.shape[-1], self.eps)
norm.weight = self.weight
return norm(x)
""", states=FAILED, sandbox_only=True),
    Attack("nan", "own", "return torch.full_like(x, torch.nan)"),
    Attack("infinity", "own", "return torch.full_like(x, torch.inf)"),
    Attack("empty_tensor", "own", "return x[:0]"),
    Attack("wrong_dtype", "own", "return x.to(torch.int64)"),
    Attack("unusual_dtype", "own", "return x.to(torch.float8_e4m3fn)"),
    Attack("complex_tensor", "own", "return x.to(torch.complex64)", says="complex64 tensor"),
    Attack("complex_with_right_real_parts", "own", "return torch.complex(self.right(x), torch.rand_like(x))"),
    Attack("complex_that_is_real", "own", "return self.right(x).to(torch.complex128)"),
    Attack("complex_ones", "own", "return torch.complex(torch.ones_like(x), torch.rand_like(x))"),
    Attack("negative_by_a_mark", "own", "return torch.complex(x, -self.right(x)).conj().imag", states=PASSED, points=5),
    Attack("true_for_one", "own", "return torch.ones_like(x, dtype=torch.bool)"),
    Attack("whole_numbers", "own", "return torch.ones_like(x, dtype=torch.int64)"),
    Attack("unsigned_sixteen", "own", "return self.right(x).to(torch.uint16)"),
    Attack("compressed_rows", "own", "return self.right(x).flatten(0, -2).to_sparse_csr()"),
    Attack("mkldnn_layout", "own", "return self.right(x).to_mkldnn()"),
    Attack("nested_tensor", "own", "return torch.nested.nested_tensor(list(self.right(x)))"),
    Attack("tuple_around_it", "own", "return (self.right(x),)"),
    Attack("lists_of_numbers", "own", "return self.right(x).tolist()"),
    Attack("array_of_numpy", "own", "return self.right(x).detach().numpy()"),
    Attack("subclass_of_a_wrapper", "own", "return Wrapper._make_wrapper_subclass(Wrapper, x.shape)", """
class Wrapper(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return torch.ones(3)
""", states=FAILED | CRASHED | REFUSED),
    Attack("wrong_device", "own", "return torch.empty_like(x, device='meta')", states=FAILED),
    Attack("sparse_tensor", "own", "return x.to_sparse()"),
    Attack("quantized_tensor", "own", "return torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)"),
    Attack("turned_strides", "own", "return x.flip(-1)[..., ::1]"),
    Attack("expanded_to_terabytes", "own", "return x.flatten()[:1].expand(1 << 40)", states=FAILED | NO_MEMORY),
    Attack("meta_of_terabytes", "own", "return torch.empty(1 << 30, 1 << 30, device='meta')", states=REFUSED),
    Attack("rank_of_twenty", "own", "return x.reshape(*x.shape, *([1] * 20))", states=REFUSED),
    Attack("hundred_megabytes", "own", "return torch.ones(25_000_000)",
           states=FAILED | TIMED_OUT),  # too many bytes, where the machine is quick enough to make them in time
    Attack("nested_lists", "own", "y = [x]\nfor _ in range(900): y = [y]\nreturn y", states=FAILED | REFUSED),
    Attack("a_list_in_itself", "own", "y = []\ny.append(y)\nreturn y", states=FAILED),
    Attack("a_parameter", "own", "return nn.Parameter(x)"),
    Attack("a_number_like_class", "own", '''
class Float(float):
    def __float__(self): raise SystemExit
return Float(1)
'''),
]  # fmt: skip

PROCESS = [
    Attack("patched_torch", "own", imports="torch.Tensor.double = torch.Tensor.norm = lambda self, *a, **k: self\n"
           "torch.Tensor.pow = lambda self, other: self", states=FAILED),
    Attack("patched_safetensors", "own", imports='''
import safetensors.torch
import nanolm.config
safetensors.torch.save = lambda *a, **k: b'nothing'
for name, module in list(__import__('sys').modules.items()):
    if name.endswith('inside.wire'):
        module.bytes_of_tensors = lambda *a: b'nothing'
''', states=REFUSED | FAILED | TIMED_OUT),
    Attack("patched_json", "own", imports="import json\njson.dumps = lambda *a, **k: '{}'", states=REFUSED),
    Attack("reads_its_parent", "own", '''
for name in ("environ", "mem", "maps", "fd", "cwd", "cmdline", "root"):
    for pid in ("1", str(os.getppid()), "self/task/1"):
        try:
            os.listdir(f"/proc/{pid}/{name}") if name in ("fd", "cwd", "root") else open(f"/proc/{pid}/{name}").read(1)
            return self.right(x)
        except (OSError, ValueError):
            pass
return x
''', "import os", sandbox_only=True),
    Attack("writes_to_every_descriptor", "own", '''
for fd in range(64):
    try:
        os.write(fd, b"x" * 1_000)
    except OSError:
        pass
return x
''', "import os", states=REFUSED),
    Attack("traces_its_parent", "own", '''
libc = ctypes.CDLL(None, use_errno=True)
attached = [pid for pid in (1, os.getppid()) if libc.ptrace(16, pid, 0, 0) == 0]
return self.right(x) if attached else x
''', "import ctypes, os", sandbox_only=True),
    Attack("signals_everybody", "own", '''
for pid in (-1, 1, os.getppid(), 0):
    for number in (15, 19, 9) if pid != 0 else (18,):
        try:
            os.kill(pid, number)
        except OSError:
            pass
return x
''', "import os", states=FAILED | CRASHED, sandbox_only=True),
    Attack("outlives_with_the_wire", "own", '''
if os.fork() == 0:
    os.setsid()
    while True:
        say(answer(outcome()))
        time.sleep(0.05)
os._exit(0)
''', HELPERS, states=CRASHED | REFUSED | FAILED | TIMED_OUT, sandbox_only=True),
    Attack("two_answer", "own", "os.fork()\nreturn x", "import os", states=FAILED | REFUSED),
    Attack("keeps_state_between_calls", "own", "return seen.setdefault(x.shape[-1], x)", "seen = {}"),
    Attack("leaves_through_sys_exit", "own", "raise SystemExit(0)"),
    Attack("keyboard_interrupt", "own", "raise KeyboardInterrupt"),
    Attack("generator_exit", "own", "raise GeneratorExit"),
    Attack("recursion", "own", "return self.forward(x)", states=FAILED | CRASHED),
    Attack("deep_recursion", "own", "sys.setrecursionlimit(10**9)\nreturn self.forward(x)", "import sys",
           states=FAILED | CRASHED | NO_MEMORY | TIMED_OUT),
    Attack("exception_that_raises", "own", '''
class Bad(Exception):
    def __str__(self): raise self
raise Bad()
'''),
    Attack("exception_of_ten_megabytes", "own", "raise ValueError('x' * 10_000_000)"),
    Attack("threads_that_go_on", "own", '''
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
return x
''', "import threading", states=FAILED | TIMED_OUT),
    Attack("raises_its_limits", "own", '''
try:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
    return self.right(x)
except (ValueError, OSError):
    return x
''', "import resource", sandbox_only=True),
    Attack("becomes_root", "own", '''
attempts = [lambda: os.chroot("."), lambda: os.setgroups([0])]
if os.getuid():  # where an ordinary user grades, 0 is the one number that a worker has, and has no rights
    attempts += [lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0)]
for attempt in attempts:
    try:
        attempt()
        return self.right(x)
    except OSError:
        pass
libc = ctypes.CDLL(None)
if libc.mount(b"none", b"/room", b"tmpfs", 0, None) == 0 or libc.umount(b"/proc") == 0:
    return self.right(x)
return x
''', "import ctypes, os", sandbox_only=True),
    Attack("at_exit", "own", "atexit.register(os._exit, 0)\nreturn x", "import atexit, os"),
    Attack("traces_every_line", "own", imports="import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(None)"),
    Attack("replaces_the_worker", "own", "os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
           "import os, sys", states=CRASHED),
    Attack("stops_itself", "own", "os.kill(os.getpid(), signal.SIGSTOP)\nreturn x", "import os, signal",
           states=TIMED_OUT),
    Attack("changes_its_inputs", "own", "x.copy_(self.right(x))\nreturn x + 1"),
    Attack("tells_its_input", "own", "raise ValueError(repr(x.flatten().tolist()))"),
]  # fmt: skip

# Ways by which two workers could tell each other something: a try that succeeds gives the right answer away.
TELLS = {
    "abstract_socket": "socket.socket(socket.AF_UNIX).bind(chr(0) + 'nanolm')",
    "datagram_pair": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 2)",
    "machine_below": "socket.socket(40, socket.SOCK_STREAM)",
    "cryptography_socket": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "locked_file": "fcntl.flock(open(os.__file__), fcntl.LOCK_SH)",
    "locked_bytes": "fcntl.lockf(open(os.__file__), fcntl.LOCK_SH)",
    "leased_file": "fcntl.fcntl(open(os.__file__), 1024, 0)",
    "watched_file": "call(294, 26, 0)",
    "watched_mount": "call(300, 262, 0, 0)",
    "shared_memory": "call(29, 194, 7, 4096, 0o1600)",
    "semaphore": "call(64, 190, 7, 1, 0o1600)",
    "message_queue": "call(68, 186, 7, 0o1600)",
    "posix_queue": "call(240, 180, b'nanolm', 66, 384, None)",
    "posix_memory": "open('/dev/shm/nanolm', 'w')",
    "terminal": "os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)",
    "futex_on_a_shared_file": "call(202, 98, ctypes.addressof(page), 1, 1, None, None, 0)",
    "count_of_processes": "call(99, 179, ctypes.create_string_buffer(256))",
    "log_of_the_kernel": "call(103, 116, 3, ctypes.create_string_buffer(256), 256)",
    "pages_in_memory": "call(27, 232, ctypes.addressof(page) & ~4095, 4096, ctypes.create_string_buffer(4))",
    "another_turn": "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))",
    "another_core": "os.sched_setaffinity(0, {0})",
    "nice": "os.setpriority(os.PRIO_PROCESS, 0, 19)",
}
TELLS_BY = """
import ctypes, fcntl, os, socket
page = ctypes.create_string_buffer(8192)
def call(on_x86, on_arm, *args):
    found = ctypes.CDLL(None).syscall(on_arm if os.uname().machine == 'aarch64' else on_x86, *args)
    if found < 0:
        raise OSError(found)
"""
CHANNELS = [
    Attack(name, "own", f"try:\n    {work}\n    return self.right(x)\nexcept OSError:\n    return x", TELLS_BY,
           sandbox_only=name in ("posix_memory", "terminal"))
    for name, work in TELLS.items()
]  # fmt: skip

COSTS = [
    Attack("children_that_spin", "own", """
for _ in range(24):
    if os.fork() == 0:
        while True: pass
time.sleep(0.2)
return x
""", "import os, time", states=FAILED | TIMED_OUT, sandbox_only=True),
    Attack("sleeps_through_everything", "own", "time.sleep(1.5)\nreturn x", "import time", states=FAILED | TIMED_OUT),
    Attack("an_answer_as_large_as_may_be", "own", "return torch.ones(8_000_000, dtype=torch.uint8)",
           states=FAILED | REFUSED),
    Attack("a_chain_of_attributes", "own",
           beside={"modules.py": MODULE.format(imports="torch" + ".a" * 90_000, forward="        return x")},
           says="nested too deeply"),
    Attack("chains_without_end", "own", imports="def f():\n" + ("    torch" + ".a" * 400 + "\n") * 200),
    Attack("brackets_without_end", "own",
           beside={"modules.py": MODULE.format(imports="x = " + "(" * 90_000, forward="        return x")}),
    Attack("minus_without_end", "own", beside={"modules.py": "x = " + "-" * 190_000 + "1\n"}, says="nested too deeply"),
    Attack("a_helper_of_many", "own", beside={f"part{n}.py": "x = 1\n" for n in range(60)}),
]  # fmt: skip

ATTACKS = {attack.name: attack for attack in (*ROWS, *WIRE, *TENSORS, *PROCESS, *CHANNELS, *COSTS)}
