//! Any words of an agent are a verdict of its role, or unclear; and an approval does not survive a rejection behind it.
#![no_main]

use forkhestra::chain::Role;
use forkhestra::verdict::{
    Decision, Ledger, VerdictReading, VerdictSources, answers, findings, proposed_tasks, read, recorded_calls, stated,
    without_echo,
};
use std::hint::black_box;

libfuzzer_sys::fuzz_target!(|input: (bool, String, Option<String>, String)| {
    let (judges, message, file, calls) = input;
    let role = if judges { Role::Judge } else { Role::Worker };
    let recorded = recorded_calls(&calls);
    let heard = VerdictSources { calls: &recorded, file: file.as_deref(), message: &message, ..VerdictSources::default() };
    if let VerdictReading::Clear(verdict) = read(role, heard) {
        assert!(verdict.decision.is_open_to(role));
        let words = &verdict.notes;
        assert!(words.len() <= message.len() + file.map_or(0, |file| file.len()) + calls.len() + 1_000);
    }
    let rejected = format!("{message}\n\n```\n```\nVERDICT: reject\n- a.rs:1: it is wrong\n");
    if let VerdictReading::Clear(verdict) = read(Role::Judge, VerdictSources { message: &rejected, ..VerdictSources::default() }) {
        assert_ne!(verdict.decision, Decision::Approve, "{rejected}");
    }
    let mut ledger = Ledger::default();
    ledger.judged(1, &findings(&message));
    ledger.answered(&answers(&message));
    black_box(ledger.text());
    black_box(proposed_tasks(&message));
    black_box(stated(&message));
    black_box(without_echo(&message, &calls));
});
