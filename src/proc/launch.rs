//! What a program is started with. It is passed to the lifeline as a file, because a socket accepts only a limited
//! amount at once.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Everything that a program is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch<'a> {
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment, as names and values.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub folder: &'a Path,
    /// The file on its standard input; `None` for an empty input.
    pub stdin: Option<&'a Path>,
}

impl<'a> Launch<'a> {
    /// Returns it as strings that each end with a NUL. No string can contain one (execve(2)).
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut word = |parts: [&OsStr; 3]| {
            let parts = parts.map(OsStr::as_bytes);
            if parts.iter().any(|part| part.contains(&0)) {
                return Err(io::Error::new(ErrorKind::InvalidInput, "an argument or a variable contains a NUL"));
            }
            bytes.extend_from_slice(&parts.concat());
            bytes.push(0);
            Ok(())
        };
        let none = OsStr::new("");
        word([self.program.as_os_str(), none, none])?;
        word([self.folder.as_os_str(), none, none])?;
        word([self.stdin.map_or(none, Path::as_os_str), none, none])?;
        word([self.arguments.len().to_string().as_ref(), none, none])?;
        for argument in &self.arguments {
            word([argument, none, none])?;
        }
        for (name, value) in &self.environment {
            word([name, OsStr::new("="), value])?;
        }
        Ok(bytes)
    }

    /// Returns a variable of the environment as `NAME=value`.
    pub(super) fn variable(&self, wanted: &str) -> Option<Vec<u8>> {
        let (name, value) = self.environment.iter().find(|(name, _)| name == wanted)?;
        Some([name.as_bytes(), b"=", value.as_bytes()].concat())
    }

    /// Returns the bytes of a file that contains them.
    pub(super) fn read(mut file: File) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Parses such bytes; `None` if they are malformed.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut words = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0).map(OsStr::from_bytes);
        let (program, folder, stdin) = (Path::new(words.next()?), Path::new(words.next()?), words.next()?);
        let count: usize = words.next()?.to_str()?.parse().ok()?;
        let arguments: Vec<OsString> = words.by_ref().take(count).map(OsStr::to_os_string).collect();
        // As in the standard library: a name may begin with `=`.
        let variable = |entry: &OsStr| {
            let (entry, sign) = (entry.as_bytes(), entry.as_bytes().iter().skip(1).position(|byte| *byte == b'=')? + 1);
            let part = |bytes| OsStr::from_bytes(bytes).to_os_string();
            Some((part(&entry[..sign]), part(&entry[sign + 1..])))
        };
        let environment = words.map(variable).collect::<Option<_>>()?;
        let stdin = Some(Path::new(stdin)).filter(|path| !path.as_os_str().is_empty());
        (arguments.len() == count).then_some(Self { program, arguments, environment, folder, stdin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_arrives_as_it_was_sent() {
        let (program, folder) = (Path::new("/bin/a b"), Path::new("/tmp"));
        let bare = Launch { program, arguments: Vec::new(), environment: Vec::new(), folder, stdin: None };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let full = Launch {
            arguments: words(&["", "two\nlines", "="]),
            environment: vec![("A".into(), "".into()), ("B".into(), "c=d".into())],
            stdin: Some(Path::new("/tmp/in")),
            ..bare.clone()
        };
        for launch in [bare, full] {
            let bytes = launch.bytes().unwrap();
            assert_eq!(Launch::parse(&bytes).as_ref(), Some(&launch));
            assert_eq!(Launch::parse(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn a_nul_in_an_argument_is_an_error() {
        let path = Path::new("/");
        let arguments = vec![OsString::from("a\0b")];
        let launch = Launch { program: path, arguments, environment: Vec::new(), folder: path, stdin: None };
        assert_eq!(launch.bytes().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
