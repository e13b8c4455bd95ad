//! Any text is a chain that shows back to itself, or faults with places inside it.
#![no_main]

use forkhestra::chain::{parse, show};
use forkhestra::source::Source;
use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let source = Source::new("fuzz", text, Path::new("/"));
    match parse(&source) {
        Ok(chain) => {
            let shown = show(&chain.items);
            let again = parse(&Source::new("fuzz", shown.as_str(), Path::new("/")));
            assert_eq!(again.map(|chain| show(&chain.items)), Ok(shown));
        }
        Err(faults) => assert!(
            faults.iter().all(|fault| { fault.places.iter().all(|(place, _)| text.get(place.span.clone()).is_some()) })
        ),
    }
});
