//! Any output of a build or a test has failures, or none; the same output has the same ones.
#![no_main]

use forkhestra::checks::{OutputErrors, Scope, failures, tests_run};
use std::hint::black_box;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let found = OutputErrors::of(text);
    assert_eq!(found.signature(), OutputErrors::of(text).signature());
    black_box(found.summary(5));
    black_box(failures(text));
    black_box(tests_run(text));
    let _ = Scope::of(text);
});
