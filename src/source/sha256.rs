//! SHA-256 in hexadecimal, by which plans, configs and tokens are known.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The digest of some bytes (FIPS 180-4), as 64 hexadecimal digits.
#[must_use]
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    let mut hexadecimal = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(hexadecimal, "{byte:02x}");
    }
    hexadecimal
}
