//! Whatever bytes an agent prints, what reaches a terminal holds no control but tabs, ends of lines and colours, in any cut.
#![no_main]

use forkhestra::agent::ForeignWords;

fn shown(chunks: &[&[u8]]) -> Vec<u8> {
    let mut words = ForeignWords::marking();
    let mut shown: Vec<u8> = chunks.iter().flat_map(|chunk| words.pass(chunk)).collect();
    shown.extend(words.finish());
    shown
}

libfuzzer_sys::fuzz_target!(|input: (usize, Vec<u8>)| {
    let (cut, stream) = input;
    let (head, tail) = stream.split_at(cut % (stream.len() + 1));
    let whole = shown(&[&stream]);
    assert_eq!(shown(&[head, tail]), whole);
    let mut rest = whole.as_slice();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == 0x1b {
            // Only colours: ESC [ digits and separators m.
            let end = rest.iter().position(|byte| *byte == b'm').expect("a colour ends");
            assert!(rest[0] == b'[' && rest[1..end].iter().all(|byte| byte.is_ascii_digit() || b";:".contains(byte)));
            rest = &rest[end + 1..];
        } else {
            assert!(!byte.is_ascii_control() || b"\t\n\r".contains(byte), "{byte:#x}");
        }
    }
});
