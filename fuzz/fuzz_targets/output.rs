//! Any bytes are the output of an agent CLI, in any format and any cut: a report, and no more text than was there.
#![no_main]

use forkhestra::agent::{Format, Reader};
use std::hint::black_box;

fn shown(format: Format, chunks: &[&[u8]]) -> (String, Option<String>) {
    let Some(mut reader) = Reader::new(format, None) else { return Default::default() };
    let mut text = String::new();
    for chunk in chunks {
        reader.feed(chunk, &mut |words| text.push_str(words));
    }
    let last = reader.final_message().map(str::to_string);
    black_box(reader.finish(&mut |words| text.push_str(words)));
    (text, last)
}

libfuzzer_sys::fuzz_target!(|input: (u8, usize, Vec<u8>)| {
    let (format, cut, stream) = input;
    let (_, format) = Format::NAMES[usize::from(format) % Format::NAMES.len()];
    let (head, tail) = stream.split_at(cut % (stream.len() + 1));
    assert_eq!(shown(format, &[head, tail]), shown(format, &[&stream]));
});
