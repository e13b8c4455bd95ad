//! Any text is a config, or faults with places inside it, and all of them can be shown.
#![no_main]

use forkhestra::chain::{LayerKind, LayerSource, load};
use forkhestra::report::{Paint, render};
use forkhestra::source::Source;
use std::hint::black_box;
use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text, Path::new("/"));
    let config = load(&[LayerSource { kind: LayerKind::Project, source }]);
    let mut faults = config.faults.clone();
    faults.extend(config.chains.values().flat_map(|entry| entry.faults.clone()));
    faults.extend(config.agents.values().flat_map(|entry| entry.faults.clone()));
    for fault in &faults {
        assert!(fault.places.iter().all(|(place, _)| text.get(place.span.clone()).is_some()));
    }
    black_box(render(&faults, Paint::plain()));
});
