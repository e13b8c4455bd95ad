#!/usr/bin/env python3
"""Prints a recording exactly. `generate.py stdout` or `generate.py stderr` prints that stream
on its own stdout; with no argument both go where they belong (fd 1, fd 2)."""
import sys

# stream: (head, line format, number of lines counted from 1, tail)
PARTS = {
    'stdout': (
        'gcc -Wall -c cart.c\n',
        'index: page %06d: retrying after a timeout',
        2000,
        '',
    ),
    'stderr': (
        'cart.c: In function ‘total’:\ncart.c:3:16: error: ‘c’ undeclared (first use in this function)\n    3 |     return a + c;\n      |                ^\ncart.c:3:16: note: each undeclared identifier is reported only once for each function it appears in\ncart.c:4:1: warning: control reaches end of non-void function [-Wreturn-type]\n    4 | }\n      | ^\nmake: *** [Makefile:4: cart.o] Error 1\n',
        'page %06d: warning: title is missing, using the file name',
        27000,
        "make: Target 'all' not remade because of errors.\n",
    ),
}


def stream(name):
    head, fmt, n, tail = PARTS[name]
    return (head + "".join(fmt % i + "\n" for i in range(1, n + 1)) + tail).encode()


if len(sys.argv) > 1:
    sys.stdout.buffer.write(stream(sys.argv[1]))
else:
    sys.stdout.buffer.write(stream("stdout"))
    sys.stdout.buffer.flush()
    sys.stderr.buffer.write(stream("stderr"))
