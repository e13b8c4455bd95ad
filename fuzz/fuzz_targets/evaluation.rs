//! Any text is an evaluation with a score from 0 to 1, or says what is wrong with it.
#![no_main]

use forkhestra::verdict::{ScoreMode, evaluation, read_evaluation, without_quoted};
use std::hint::black_box;

libfuzzer_sys::fuzz_target!(|input: (bool, String, String)| {
    let (clamps, text, prompt) = input;
    let mode = if clamps { ScoreMode::Clamp } else { ScoreMode::Strict };
    match evaluation(&text, mode) {
        Ok(read) => assert!((0.0..=1.0).contains(&read.score)),
        Err(bad) => assert!(!bad.issue().is_empty()),
    }
    black_box(read_evaluation(&text, Some(0.5)));
    black_box(without_quoted(&text, &prompt));
});
