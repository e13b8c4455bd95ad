//! Any cut of any stream gives the scanner the same answer as the whole.
#![no_main]

use forkhestra::marker::{DEFAULT, Scanner, Sighting};

fn markers(chunks: &[&[u8]]) -> Vec<u64> {
    let (mut scanner, mut offsets) = (Scanner::new(DEFAULT), Vec::new());
    let mut saw = |sighting: Sighting<'_>| match sighting {
        Sighting::Marker(offset) | Sighting::Alone(offset) => offsets.push(offset),
        Sighting::Withdrawn(count) => offsets.truncate(offsets.len() - count),
        Sighting::NearMiss(_) | Sighting::Fenced(_) => {}
    };
    for chunk in chunks {
        scanner.feed(chunk, &mut saw);
    }
    scanner.finish(&mut saw);
    offsets
}

libfuzzer_sys::fuzz_target!(|input: (usize, Vec<u8>)| {
    let (cut, stream) = input;
    let (head, tail) = stream.split_at(cut % (stream.len() + 1));
    assert_eq!(markers(&[head, tail]), markers(&[&stream]));
});
