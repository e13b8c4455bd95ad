//! Whether this machine can start a sandbox: tested before a run that uses one.

use crate::plan::Plan;
use crate::proc::capture;
use crate::source::Diagnostic;
use std::path::Path;

/// The arguments for a sandbox around a program that does nothing.
const TRIAL: [&str; 11] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "true",
];

/// Reports a machine that cannot start the sandbox of the plan's steps.
pub(in crate::cli) fn sandbox_fault(plan: &Plan) -> Option<Diagnostic> {
    let sandbox = plan.steps.iter().find_map(|step| step.isolation.as_ref()?.sandbox.as_ref())?;
    let answer = capture(&sandbox.bubblewrap, &TRIAL.map(str::to_string), Path::new("/"));
    let words = match answer {
        Some(answer) if answer.code == Some(0) => return None,
        Some(answer) => answer.stderr.lines().next().unwrap_or_default().trim().to_string(),
        None => "bwrap does not respond".into(),
    };
    Some(Diagnostic::error("run/sandbox", format!("this machine cannot start the sandbox: {words}")).help(
        "bubblewrap needs user namespaces: see `sysctl kernel.apparmor_restrict_unprivileged_userns user.max_user_namespaces`; in a container, run it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or remove `sandbox`, because the container is one",
    ))
}
