//! Any text is a template in either dialect that can be rendered, or faults with places inside it.
#![no_main]

use forkhestra::prompt::{Syntax, Value, template_of};
use forkhestra::report::{Paint, render};
use forkhestra::source::Source;
use std::hint::black_box;
use std::path::Path;

libfuzzer_sys::fuzz_target!(|input: (bool, &str)| {
    let (braces, text) = input;
    let syntax = if braces { Syntax::Braces } else { Syntax::Mustache };
    match template_of("fuzz", Source::new("fuzz", text, Path::new("/")), syntax) {
        Ok(template) => {
            let names = template.variables();
            let value = |name: &str| names.contains(name).then(|| Value::new("{{value}} ```"));
            let _ = template.render(&value);
            black_box(template.unread_tags());
        }
        Err(faults) => {
            for fault in &faults {
                assert!(fault.places.iter().all(|(place, _)| text.get(place.span.clone()).is_some()));
            }
            black_box(render(&faults, Paint::plain()));
        }
    }
});
