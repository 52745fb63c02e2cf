"""Runs a program under a seccomp filter: sandbox.py ERRNO NAME[,NAME...] PROGRAM [ARGUMENT...]. Exits with 77 if it can't."""

import ctypes
import os
import platform
import struct
import sys

NUMBERS = {
    "x86_64": {"prlimit64": 302, "uname": 63, "sched_getaffinity": 204, "statx": 332, "openat2": 437,
               "io_uring_setup": 425, "membarrier": 324, "getrandom": 318, "prctl": 157, "inotify_init1": 294,
               "timerfd_create": 283, "sysinfo": 99, "rt_sigprocmask": 14, "preadv2": 327, "fchmod": 91,
               "mremap": 25, "fstatfs": 138, "close_range": 436, "getsockopt": 55, "sigaltstack": 131},
}
LOAD_NUMBER, EQUALS, RETURN = 0x20, 0x15, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def main():
    numbers = NUMBERS.get(platform.machine())
    if numbers is None or sys.platform != "linux":
        sys.exit(77)
    steps = [(LOAD_NUMBER, 0, 0, 0)]
    for name in sys.argv[2].split(","):
        steps += [(EQUALS, 0, 1, numbers[name]), (RETURN, 0, 0, ERROR | int(sys.argv[1]))]
    steps.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program)) != 0:
        sys.exit(77)
    os.execv(sys.argv[3], sys.argv[3:])


main()
