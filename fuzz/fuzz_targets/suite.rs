//! Any text is a suite of cases, or faults that can be shown.
#![no_main]

use forkhestra::eval::Suite;
use forkhestra::report::{Paint, render};
use forkhestra::source::{Files, Kind};
use std::hint::black_box;
use std::io::{Error, ErrorKind};
use std::path::Path;

struct One<'a>(&'a str);

impl Files for One<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == Path::new("/suite.json") { Ok(self.0.into()) } else { Err(Error::from(ErrorKind::NotFound)) }
    }

    fn head(&self, path: &Path, _: usize) -> std::io::Result<Vec<u8>> {
        self.read(path)
    }

    fn kind(&self, path: &Path) -> std::io::Result<Kind> {
        self.read(path).map(|all| Kind::File { executable: false, bytes: all.len() as u64 })
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(faults) = Suite::read(Path::new("/suite.json"), "suite.json", &One(text)) {
        black_box(render(&faults, Paint::plain()));
    }
});
