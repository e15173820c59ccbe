#!/usr/bin/env python3
"""Fails when objects refer to a clock, a socket, a file, a thread, randomness or the environment.

usage: purity_test.py NM LIBRARY     the undefined symbols of every object in it are held against a list
       purity_test.py NM OBJECT --must-fail     the proof that this test can fail
"""

import re
import subprocess
import sys

# Names in C, whole. What a pure computation needs of libc (memory, strings, numbers) is not here.
C_NAMES = """
clock clock_gettime clock_getres clock_nanosleep gettimeofday time times ftime localtime localtime_r gmtime gmtime_r
mktime strftime timer_create timerfd_create nanosleep usleep sleep alarm setitimer
socket socketpair connect bind listen accept accept4 send sendto sendmsg recv recvfrom recvmsg getaddrinfo
epoll_create epoll_create1 epoll_wait poll ppoll select pselect eventfd
open open64 openat openat64 creat creat64 fopen fopen64 fdopen freopen read pread pread64 readv write pwrite pwrite64
writev close unlink rename stat stat64 lstat fstat mmap mmap64 opendir readdir mkdir ioctl fcntl fcntl64 pipe pipe2 dup
dup2 fsync fdatasync fread fwrite fputs puts printf fprintf vfprintf __printf_chk __fprintf_chk putchar fputc
fork vfork clone clone3 execve execvp posix_spawn posix_spawnp system popen kill waitpid waitid signal sigaction
syscall dlopen dlsym getpid gettid getuid gethostname
getenv secure_getenv setenv putenv
rand srand random srandom rand_r drand48 getrandom getentropy arc4random
""".split()

PATTERNS = [
    r"^pthread_",
    r"^thrd_|^mtx_|^cnd_",
    r"^sem_(init|open|wait|post)",
    r"^std::chrono::.*::now\(",
    r"^std::(this_thread|thread|jthread|mutex|recursive_mutex|condition_variable|timed_mutex|shared_mutex)\b",
    r"^std::(__cxx11::)?(basic_)?(i|o)?fstream|^std::basic_filebuf|^std::__basic_file",
    r"^std::filesystem|^std::experimental::filesystem",
    r"^std::random_device",
    r"^std::(cout|cerr|clog|cin)\b|^std::ios_base::Init",
    r"^boost::",
    r"^std::__throw_system_error|^std::_V2::system_category",
]


def undefined_symbols(nm, library):
    out = subprocess.run([nm, "-C", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
    member = library
    for line in out.splitlines():
        if line.endswith(":"):
            member = line[:-1]
        match = re.match(r"^\s*[Uvw] (.+)$", line)
        if match:
            yield member, match.group(1)


def forbidden(symbol):
    plain = symbol.split("@")[0]
    return plain in C_NAMES or any(re.search(pattern, symbol) for pattern in PATTERNS)


def main():
    nm, library = sys.argv[1], sys.argv[2]
    must_fail = "--must-fail" in sys.argv[3:]
    symbols = list(undefined_symbols(nm, library))
    if not symbols:
        print(f"{library}: no undefined symbols at all; nothing was looked at")
        return 1
    bad = [(member, symbol) for member, symbol in symbols if forbidden(symbol)]
    for member, symbol in bad:
        print(f"{member}: refers to {symbol}")
    if must_fail:
        # Every kind of impurity of impure.cpp must be seen, not just one of them.
        seen = " ".join(symbol for _, symbol in bad)
        missing = [kind for kind in ("::now(", "socket", "fopen", "pthread_create", "getenv") if kind not in seen]
        if missing:
            print(f"not seen: {', '.join(missing)}")
        return 1 if missing else 0
    return 1 if bad else 0


sys.exit(main())
