//! SHA-256 in hexadecimal, which identifies plans, configs and tokens.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::io;

/// Returns the SHA-256 digest of some bytes (FIPS 180-4), as 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns the digest of a value as JSON without whitespace. That JSON is never held in memory as a whole.
#[must_use]
pub fn sha256_json(value: &impl Serialize) -> String {
    let mut digest = ToDigest(Sha256::new());
    {
        // JSON is written in pieces of a few bytes.
        let mut buffered = io::BufWriter::new(&mut digest);
        // Neither the digest nor our own values can cause an error.
        let _ = serde_json::to_writer(&mut buffered, value);
        let _ = io::Write::flush(&mut buffered);
    }
    hexadecimal(&digest.0.finalize())
}

/// Returns bytes as hexadecimal digits in lower case.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(nibble + if nibble < 10 { b'0' } else { b'a' - 10 });
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

struct ToDigest(Sha256);

impl io::Write for ToDigest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hexadecimal(&[0, 0x9a, 0xff, 7]), "009aff07");
    }

    #[test]
    fn the_digest_of_a_value_is_that_of_its_json() {
        let value = serde_json::json!({ "a": [1, null, "é\n"], "b": {} });
        assert_eq!(sha256_json(&value), sha256(value.to_string()));
    }
}
