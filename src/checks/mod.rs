//! What JUDGES by its exit code: which commands build, test and lint a project, and what their failures say. Pure.

mod detect;
mod failures;
mod integrity;
mod profile;
mod scope;

pub use detect::{Detected, Stack, detect};
pub use failures::{Failure, error_digests, failures, signature, summary};
pub use integrity::{
    Deciding, Tampering, Tests, commands_of, is_test_file, says_commands, tampering, tests_of, tests_run,
};
pub use profile::{Budget, Kind, Profile, Wanted, wanted};
pub use scope::Scope;
