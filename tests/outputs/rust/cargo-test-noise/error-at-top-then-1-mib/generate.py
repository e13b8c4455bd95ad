#!/usr/bin/env python3
"""Prints a recording exactly. `generate.py stdout` or `generate.py stderr` prints that stream
on its own stdout; with no argument both go where they belong (fd 1, fd 2)."""
import sys

# stream: (head, line format, number of lines counted from 1, tail)
PARTS = {
    'stdout': (
        "\nrunning 0 tests\n\nsuccesses:\n\nsuccesses:\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\nrunning 2 tests\ntest empty_is_zero ... ok\ntest two_items ... FAILED\n\nsuccesses:\n\nsuccesses:\n    empty_is_zero\n\nfailures:\n\n---- two_items stdout ----\n\nthread 'two_items' (27256) panicked at tests/a_cart.rs:13:5:\nassertion `left == right` failed\n  left: 750\n right: 800\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\nfailures:\n    two_items\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\nrunning 1 test\ntest talks_a_lot ... ok\n\nsuccesses:\n\n---- talks_a_lot stdout ----\n",
        'worker %06d: error: cannot connect to the queue, trying again',
        22000,
        '\n\nsuccesses:\n    talks_a_lot\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\nrunning 1 test\ntest src/lib.rs - add (line 6) ... ok\n\nsuccesses:\n\nsuccesses:\n    src/lib.rs - add (line 6)\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.11s\n\n',
    ),
    'stderr': (
        '   Compiling shop v0.1.0 (/home/me/project)\n    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.37s\n     Running unittests src/lib.rs (target/debug/deps/shop-d2503d320876bb89)\n     Running tests/a_cart.rs (target/debug/deps/a_cart-3ad94dcd6441cc68)\nerror: test failed, to rerun pass `--test a_cart`\n     Running tests/b_noise.rs (target/debug/deps/b_noise-4da1dfe60c54003d)\n   Doc-tests shop\nerror: 1 target failed:\n    `--test a_cart`\n',
        '',
        0,
        '',
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
