//! Units as files (git-bundle(1)), for machines that reach no network.

use super::HubError;
use super::commits::HubCommits;
use super::hub_git::HubGit;
use super::units::{HubUnits, UNITS};
use crate::unit::is_unit_name;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Where the units of a file are until they are compared with ours.
const INCOMING: &str = "refs/forkhestra/incoming/";
/// How much of a file is read to find the end of its header, in bytes.
const HEADER: u64 = 64 << 10;

/// What became of a unit that a file has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synced {
    /// The hub has what was done.
    Taken,
    /// The hub had it already, or has more.
    Known,
    /// Another worker has claimed the unit since.
    Superseded,
    /// The hub has no such unit.
    Unknown,
}

/// Units of a hub as files.
#[derive(Debug, Clone, Copy)]
pub struct UnitFiles<'a>(pub(super) &'a HubGit);

impl UnitFiles<'_> {
    /// Writes a unit and all that it refers to into a file. With `known`, the reader of the file must have that commit,
    /// and the file becomes smaller.
    ///
    /// # Errors
    /// When git fails, there is no such unit, or the file cannot be written.
    pub fn write(self, unit: &str, file: &Path, known: Option<&str>) -> Result<(), HubError> {
        if HubUnits(self.0).get(unit)?.is_none() {
            return Err(HubUnits(self.0).unknown(unit));
        }
        let (file, name) = (file.display().to_string(), format!("{UNITS}{unit}"));
        let mut words = vec!["bundle", "create", "--quiet", &file, &name];
        let known = known.map(|commit| format!("^{commit}"));
        words.extend(known.as_deref());
        self.0.ask(&words).map(drop)
    }

    /// Adds the units of a file. If the hub has one in an earlier state, that of the file counts. Returns their names.
    ///
    /// # Errors
    /// When git fails, or the file is not a bundle of git.
    pub fn import(self, file: &Path) -> Result<Vec<String>, HubError> {
        if is_result(file) {
            return Err(HubError::Result { path: file.to_path_buf() });
        }
        let units = self.fetch(file, "`forkhestra task bundle UNIT --out FILE` writes one")?;
        for (unit, commit) in &units {
            let ours = HubUnits(self.0).last_commit(unit);
            // It has what was done here so far, if the file has not changed since.
            if !ours.as_ref().is_some_and(|ours| HubCommits(self.0).is_ancestor(commit, ours)) {
                self.0.swap(&format!("{UNITS}{unit}"), commit, ours.as_deref())?;
            }
        }
        self.forget_incoming(&units)?;
        Ok(units.into_iter().map(|(unit, _)| unit).collect())
    }

    /// Takes what was done on the units of a file. Taking it again changes nothing, and neither does an older file.
    ///
    /// # Errors
    /// When git fails, or the file is not a bundle of git.
    pub fn sync(self, file: &Path) -> Result<Vec<(String, Synced)>, HubError> {
        let units = self.fetch(file, "`forkhestra work --bundle FILE --out RESULT` writes one")?;
        let synced = units.iter().map(|(unit, commit)| Ok((unit.clone(), self.advance_unit(unit, commit)?))).collect();
        self.forget_incoming(&units)?;
        synced
    }

    fn advance_unit(self, unit: &str, commit: &str) -> Result<Synced, HubError> {
        let Some(ours) = HubUnits(self.0).last_commit(unit) else { return Ok(Synced::Unknown) };
        if HubCommits(self.0).is_ancestor(commit, &ours) {
            return Ok(Synced::Known);
        }
        let is_next = HubCommits(self.0).is_ancestor(&ours, commit)
            && self.0.swap(&format!("{UNITS}{unit}"), commit, Some(&ours))?;
        Ok(if is_next { Synced::Taken } else { Synced::Superseded })
    }

    /// Fetches the units of a file. Returns each with its last commit. `writer` says what writes such a file.
    fn fetch(self, file: &Path, writer: &'static str) -> Result<Vec<(String, String)>, HubError> {
        let unreadable = || HubError::File { path: file.to_path_buf(), writer };
        let name = file.display().to_string();
        let heads = self.0.ask(&["bundle", "list-heads", &name]).map_err(|_| unreadable())?;
        let heads = heads.lines().filter_map(|line| line.split_once(' '));
        let units: Vec<(String, String)> = heads
            .filter_map(|(commit, name)| Some((name.strip_prefix(UNITS)?.to_string(), commit.to_string())))
            .filter(|(unit, _)| is_unit_name(unit))
            .collect();
        if units.is_empty() {
            return Err(unreadable());
        }
        let refs: Vec<String> = units.iter().map(|(unit, _)| format!("+{UNITS}{unit}:{INCOMING}{unit}")).collect();
        let mut words = vec!["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", &name];
        words.extend(refs.iter().map(String::as_str));
        self.0.ask(&words)?;
        Ok(units)
    }

    fn forget_incoming(self, units: &[(String, String)]) -> Result<(), HubError> {
        let commands: Vec<String> = units.iter().map(|(unit, _)| format!("delete {INCOMING}{unit}\n")).collect();
        self.0.ask_with(&["update-ref", "--stdin"], &[], commands.concat().as_bytes()).map(drop)
    }
}

/// Whether a file has the result of a unit: then it has only what is new since the unit was written
/// (gitformat-bundle(5): a line with a prerequisite begins with a hyphen).
fn is_result(file: &Path) -> bool {
    let Ok(file) = File::open(file) else { return false };
    let lines = BufReader::new(file.take(HEADER)).split(b'\n').map_while(Result::ok);
    let mut header = lines.skip(1).take_while(|line| !line.is_empty());
    header.any(|line| line.starts_with(b"-"))
}
