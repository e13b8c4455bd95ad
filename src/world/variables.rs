//! Environment variables that we set ourselves.

use super::World;
use std::ffi::OsString;

impl World {
    /// Sets the command line's choice of color. It outranks the environment for us, but not for the programs that we
    /// start.
    pub fn set_color(&mut self, choice: &str) {
        self.environment.push((crate::source::COLOR.into(), choice.into()));
    }

    /// Returns the same surroundings with these variables, for us and for the programs that we start.
    #[must_use]
    pub fn with_variables(&self, variables: &[(&str, OsString)]) -> Self {
        let mut environment = self.environment.clone();
        for (name, value) in variables {
            environment.retain(|(known, _)| known != name);
            environment.push(((*name).into(), value.clone()));
        }
        Self {
            cwd: self.cwd.clone(),
            environment,
            own_program: self.own_program.clone(),
            executable: self.executable.as_ref().and_then(|file| file.try_clone().ok()),
        }
    }
}
