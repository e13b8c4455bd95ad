//! Finds programs: by name on PATH, or by the path of a command.

use super::errors;
use crate::source::{Diagnostic, Env, Files, Kind, Place};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Returns every executable with this name on PATH, in order. Relative and empty elements of PATH are skipped, because
/// they depend on the working directory.
#[must_use]
pub fn find_all_on_path(name: &str, files: &dyn Files, env: &dyn Env) -> Vec<PathBuf> {
    candidates(name, env).filter(|path| is_executable(path, files)).collect()
}

/// Returns the first executable with this name on PATH.
#[must_use]
pub fn find_on_path(name: &str, files: &dyn Files, env: &dyn Env) -> Option<PathBuf> {
    candidates(name, env).find(|path| is_executable(path, files))
}

fn is_executable(path: &Path, files: &dyn Files) -> bool {
    matches!(files.kind(path), Ok(Kind::File { executable: true, .. }))
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

/// Checks that the kernel can start a program. The interpreter of a script must exist.
///
/// # Errors
/// One diagnostic for a script without an interpreter, or with one that cannot be run.
pub fn check_startable(program: &Path, at: &Place, files: &dyn Files) -> Result<(), Diagnostic> {
    // A program that may be run but not read cannot be checked here.
    let Ok(head) = files.head(program, FIRST_LINE) else { return Ok(()) };
    let Some(line) = head.strip_prefix(b"#!") else {
        // Whether a binary can start is up to the kernel; text without an interpreter line never starts.
        let is_text = std::str::from_utf8(&head).is_ok_and(|text| !text.contains('\0'));
        return if is_text { Err(errors::no_interpreter(at, program)) } else { Ok(()) };
    };
    // Parsed as the kernel does (execve(2)): a carriage return is part of the interpreter's name.
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let interpreter = line.split(|byte| b" \t".contains(byte)).find(|word| !word.is_empty()).unwrap_or_default();
    let interpreter = Path::new(OsStr::from_bytes(interpreter));
    match files.kind(interpreter) {
        Ok(Kind::File { executable: true, .. }) => Ok(()),
        _ => Err(errors::bad_interpreter(at, program, interpreter)),
    }
}

/// Returns a file with this name on PATH, executable or not, for the diagnostic about a name that was not found.
#[must_use]
pub(super) fn find_not_executable(name: &str, files: &dyn Files, env: &dyn Env) -> Option<PathBuf> {
    candidates(name, env).find(|path| matches!(files.kind(path), Ok(Kind::File { .. })))
}

/// Returns the program of a command: a path relative to `base` if it contains a `/`, otherwise a name on PATH.
///
/// # Errors
/// One diagnostic for a program that is missing, not executable, or a directory.
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
    if let Some(path) = find_on_path(program, files, env) {
        return Ok(path);
    }
    Err(match find_not_executable(program, files, env) {
        Some(path) => errors::not_executable(at, &path),
        None => errors::not_on_path(at, program, &env.var("PATH").unwrap_or_default()),
    })
}
