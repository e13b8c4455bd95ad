//! Whether this machine lets us make a sandbox: tried before a run begins that wants one.

use crate::plan::Plan;
use crate::proc::ask;
use crate::source::Diagnostic;
use std::path::Path;

/// The namespaces of a sandbox, around a program that does nothing.
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

/// Why no step of the plan could run in its sandbox.
pub(in crate::cli) fn sandbox_fault(plan: &Plan) -> Option<Diagnostic> {
    let sandbox = plan.steps.iter().find_map(|step| step.isolation.as_ref()?.sandbox.as_ref())?;
    let answer = ask(&sandbox.bubblewrap, &TRIAL.map(str::to_string), Path::new("/"));
    let words = match answer {
        Some(answer) if answer.code == Some(0) => return None,
        Some(answer) => answer.stderr.lines().next().unwrap_or_default().trim().to_string(),
        None => "bwrap does not answer".into(),
    };
    Some(Diagnostic::error("run/sandbox", format!("this machine refuses the sandbox: {words}")).help(
        "bubblewrap needs user namespaces: see `sysctl kernel.apparmor_restrict_unprivileged_userns user.max_user_namespaces`; in a container, run it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or leave `sandbox` out, as the container is one",
    ))
}
