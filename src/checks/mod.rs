//! Checks: which commands build, test and lint a project, and which errors their output reports. Pure.

mod commands;
mod detect;
mod failures;
mod integrity;
mod profile;
mod ran;
mod scope;
mod test_files;

pub use commands::{commands_of, files_named, lines_of, says_commands};
pub use detect::{Detected, Stack, detect};
pub use failures::{Failure, OutputErrors, failures, joined};
pub use integrity::{Deciding, Tampering, tampering};
pub use profile::{Budget, Kind, Profile, ResolvedCheck, wanted};
pub use ran::tests_run;
pub use scope::Scope;
pub use test_files::{Tests, is_test_file, tests_of};
