//! The speed of the scanner for the marker, in memory, in pieces of 64 KiB: `benches/run.sh --bench scan`. The baseline
//! is one `memmem` over the same bytes.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a bench, not the program")]

use forkhestra::marker::{DEFAULT, Scanner};
use memchr::memmem::Finder;
use std::hint::black_box;
use std::time::Instant;

const PIECE: usize = 64 << 10;
const PIECES: usize = 16_384;
const ROUNDS: usize = 5;

fn main() {
    let line = b"   Compiling forkhestra v0.1.0 (/home/me/project), and other things that agents say all day\n";
    let code = b"    let mut effects = driver.take(Input::Marker)?; // FORKHESTRA_ is near, but no marker\n";
    for (name, piece) in [
        ("lines of words", filled(line)),
        ("lines of code", filled(code)),
        ("no newline at all", vec![b'x'; PIECE]),
        ("newlines only", vec![b'\n'; PIECE]),
    ] {
        let finder = Finder::new(DEFAULT);
        let floor = rate(|| PIECES - (0..PIECES).filter_map(|_| finder.find(black_box(&piece))).count());
        let scanner = rate(|| {
            let (mut scanner, mut seen) = (Scanner::new(DEFAULT), 0);
            for _ in 0..PIECES {
                scanner.feed(black_box(&piece), |_| seen += 1);
            }
            scanner.finish(|_| seen += 1);
            PIECES - seen
        });
        println!("{name:<20} memmem {floor:>5.1} GB/s   scanner {scanner:>5.1} GB/s  {:.2} x", scanner / floor);
    }
}

fn filled(line: &[u8]) -> Vec<u8> {
    line.iter().copied().cycle().take(PIECE).collect()
}

/// Returns gigabytes per second, the best of several rounds over one gibibyte.
fn rate(mut round: impl FnMut() -> usize) -> f64 {
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        let began = Instant::now();
        assert_eq!(black_box(round()), PIECES);
        #[expect(clippy::cast_precision_loss, reason = "a gibibyte")]
        let bytes = (PIECE * PIECES) as f64;
        best = best.max(bytes / began.elapsed().as_secs_f64() / 1e9);
    }
    best
}
