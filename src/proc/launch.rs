//! What a program is started with. It is passed to the lifeline as a file, because a socket accepts only a limited
//! amount at once.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Everything that a program is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch<'a> {
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment, as names and values.
    pub environment: Vec<(Cow<'a, OsStr>, Cow<'a, OsStr>)>,
    /// Its working directory.
    pub folder: &'a Path,
    /// The file on its standard input; `None` for an empty input.
    pub stdin: Option<&'a Path>,
}

impl Launch<'_> {
    /// Returns it as strings that each end with a NUL. No string can contain one (execve(2)).
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        // Most of it is the environment, of a few KiB.
        let mut bytes = Vec::with_capacity(8 << 10);
        let mut word = |parts: [&OsStr; 3]| {
            let parts = parts.map(OsStr::as_bytes);
            if parts.iter().any(|part| part.contains(&0)) {
                return Err(io::Error::new(ErrorKind::InvalidInput, "an argument or a variable contains a NUL"));
            }
            for part in parts {
                bytes.extend_from_slice(part);
            }
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
}

/// A program to start, as the lifeline has received it: words that end with a NUL, as execve(2) takes them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReceivedLaunch<'a> {
    pub(super) program: &'a CStr,
    pub(super) arguments: Vec<&'a CStr>,
    /// `NAME=value`, one for each name.
    pub(super) environment: Vec<&'a CStr>,
    pub(super) folder: &'a CStr,
    /// `None` for an empty input.
    pub(super) stdin: Option<&'a CStr>,
}

impl<'a> ReceivedLaunch<'a> {
    /// Parses the bytes of a [`Launch`]; `None` if they are malformed.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let words = bytes.split_inclusive(|byte| *byte == 0).map(|word| CStr::from_bytes_with_nul(word).ok());
        let mut words = words.collect::<Option<Vec<_>>>()?.into_iter();
        let (program, folder, stdin) = (words.next()?, words.next()?, words.next()?);
        let count: usize = words.next()?.to_str().ok()?.parse().ok()?;
        let arguments: Vec<&CStr> = words.by_ref().take(count).collect();
        if arguments.len() != count {
            return None;
        }
        // The last of several values is the one that counts.
        let (mut names, mut environment) = (HashSet::new(), Vec::new());
        for entry in words.rev() {
            if names.insert(variable(entry)?.0) {
                environment.push(entry);
            }
        }
        environment.reverse();
        let stdin = Some(stdin).filter(|path| !path.is_empty());
        Some(Self { program, arguments, environment, folder, stdin })
    }

    /// Returns a variable of the environment as `NAME=value`.
    pub(super) fn variable(&self, wanted: &str) -> Option<Vec<u8>> {
        let is_wanted = |entry: &&&CStr| variable(entry).is_some_and(|(name, _)| name == wanted);
        self.environment.iter().find(is_wanted).map(|entry| entry.to_bytes().to_vec())
    }
}

/// Splits an entry of an environment into its name and its value. As in the standard library, a name may begin with
/// `=`.
pub(super) fn variable(entry: &CStr) -> Option<(&OsStr, &OsStr)> {
    let entry = entry.to_bytes();
    let sign = memchr::memchr(b'=', entry.get(1..)?)? + 1;
    Some((OsStr::from_bytes(&entry[..sign]), OsStr::from_bytes(&entry[sign + 1..])))
}

/// Returns the bytes of a file that holds a launch.
pub(super) fn read_launch(file: &File) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    // By position: we share the offset of the host, which is at the end.
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cow(text: &str) -> Cow<'_, OsStr> {
        OsStr::new(text).into()
    }

    #[test]
    fn a_launch_arrives_as_it_was_sent() {
        let (program, folder) = (Path::new("/bin/a b"), Path::new("/tmp"));
        let bare = Launch { program, arguments: Vec::new(), environment: Vec::new(), folder, stdin: None };
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let full = Launch {
            arguments: words(&["", "two\nlines", "="]),
            environment: vec![(cow("A"), cow("")), (cow("B"), cow("c=d"))],
            stdin: Some(Path::new("/tmp/in")),
            ..bare.clone()
        };
        let bytes = bare.bytes().unwrap();
        let (arguments, environment) = (Vec::new(), Vec::new());
        let received = ReceivedLaunch { program: c"/bin/a b", arguments, environment, folder: c"/tmp", stdin: None };
        assert_eq!(ReceivedLaunch::parse(&bytes).as_ref(), Some(&received));
        let bytes = full.bytes().unwrap();
        let arguments = vec![c"", c"two\nlines", c"="];
        let environment = vec![c"A=", c"B=c=d"];
        let received = ReceivedLaunch { arguments, environment, stdin: Some(c"/tmp/in"), ..received };
        assert_eq!(ReceivedLaunch::parse(&bytes).as_ref(), Some(&received));
        assert_eq!(received.variable("B"), Some(b"B=c=d".to_vec()));
        assert_eq!(ReceivedLaunch::parse(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn of_several_values_of_a_variable_the_last_one_counts() {
        let (program, folder) = (Path::new("/a"), Path::new("/"));
        let environment = [("A", "1"), ("B", "2"), ("A", "3")].map(|(name, value)| (cow(name), cow(value))).to_vec();
        let bytes = Launch { program, arguments: Vec::new(), environment, folder, stdin: None }.bytes().unwrap();
        assert_eq!(ReceivedLaunch::parse(&bytes).unwrap().environment, [c"B=2", c"A=3"]);
    }

    #[test]
    fn a_nul_in_an_argument_is_an_error() {
        let path = Path::new("/");
        let arguments = vec![OsString::from("a\0b")];
        let launch = Launch { program: path, arguments, environment: Vec::new(), folder: path, stdin: None };
        assert_eq!(launch.bytes().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
