//! Programs: a name on PATH, or a command's path.

use super::errors;
use crate::source::{Diagnostic, Env, Files, Kind, Place};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Every executable of this name on PATH, in order. Relative and empty elements of PATH are passed over: what they name
/// depends on who looks.
#[must_use]
pub fn find_all_on_path(name: &str, files: &dyn Files, env: &dyn Env) -> Vec<PathBuf> {
    candidates(name, env).filter(|path| matches!(files.kind(path), Ok(Kind::File { executable: true, .. }))).collect()
}

fn candidates(name: &str, env: &dyn Env) -> impl Iterator<Item = PathBuf> {
    let path = env.var("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = path
        .as_bytes()
        .split(|&byte| byte == b':')
        .map(|folder| Path::new(OsStr::from_bytes(folder)).join(name))
        .filter(|candidate| candidate.is_absolute())
        .collect();
    folders.into_iter()
}

/// The longest first line of a script that Linux reads (`BINPRM_BUF_SIZE`, execve(2)).
const FIRST_LINE: usize = 256;

/// Whether the kernel can start a program: a script needs an interpreter that is there.
///
/// # Errors
/// One diagnostic.
pub fn check_startable(program: &Path, at: &Place, files: &dyn Files) -> Result<(), Diagnostic> {
    // What we may run but not read is somebody else's business.
    let Ok(head) = files.head(program, FIRST_LINE) else { return Ok(()) };
    let Some(line) = head.strip_prefix(b"#!") else {
        // Binaries of any kind are the kernel's to judge; a text without a first line never starts.
        let is_text = std::str::from_utf8(&head).is_ok_and(|text| !text.contains('\0'));
        return if is_text { Err(errors::no_interpreter(at, program)) } else { Ok(()) };
    };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let interpreter = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let interpreter = Path::new(OsStr::from_bytes(interpreter));
    match files.kind(interpreter) {
        Ok(Kind::File { executable: true, .. }) => Ok(()),
        _ => Err(errors::bad_interpreter(at, program, interpreter)),
    }
}

/// A file of this name on PATH that is not executable; for the diagnostic of a name that was not found.
#[must_use]
pub(super) fn find_not_executable(name: &str, files: &dyn Files, env: &dyn Env) -> Option<PathBuf> {
    candidates(name, env).find(|path| matches!(files.kind(path), Ok(Kind::File { .. })))
}

/// The program of a command: a path from `base` when it holds a `/`, else a name on PATH.
///
/// # Errors
/// One diagnostic for a program that is missing, not executable, or a folder (V-40).
pub fn find_command(
    program: &str,
    base: &Path,
    at: &Place,
    files: &dyn Files,
    env: &dyn Env,
) -> Result<PathBuf, Diagnostic> {
    if program.contains('/') {
        let path = base.join(program.strip_prefix("./").unwrap_or(program));
        return match files.kind(&path) {
            Ok(Kind::File { executable: true, .. }) => Ok(path),
            Ok(Kind::File { .. }) => Err(errors::not_executable(at, &path)),
            Ok(_) => Err(errors::not_a_program(at, &path)),
            Err(error) => Err(errors::program_missing(at, &path, &error)),
        };
    }
    if let Some(path) = find_all_on_path(program, files, env).into_iter().next() {
        return Ok(path);
    }
    Err(match find_not_executable(program, files, env) {
        Some(path) => errors::not_executable(at, &path),
        None => errors::not_on_path(at, program, &env.var("PATH").unwrap_or_default()),
    })
}
