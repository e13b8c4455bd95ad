//! Whether a hub can keep its promise: of two changes of a ref that know nothing of each other, it takes one.

use super::HubError;
use super::remote::HubRemote;
use super::store::Hub;

/// Tries two changes of a ref of its own, each on the condition that there is no such ref. Returns whether the
/// first was taken and the second was refused. Leaves nothing behind in the hub but two small objects.
///
/// # Errors
/// When the hub cannot be reached, or refuses both.
pub fn refuses_a_second_change(hub: &Hub, random: &str) -> Result<bool, HubError> {
    let name = format!("refs/forkhestra/probe/{random}");
    let tree = hub.git().ask_with(&["mktree"], &[], &[])?;
    let first = hub.commits().create(&tree, &[], &format!("first {random}"))?;
    let second = hub.commits().create(&tree, &[], &format!("second {random}"))?;
    let is_taken = HubRemote(hub.git()).swap_shared(&name, &first, None)?;
    let is_refused = !HubRemote(hub.git()).swap_shared(&name, &second, None)?;
    let found = if is_refused { first } else { second };
    match hub.git().url() {
        Some(url) => drop(HubRemote(hub.git()).push(url, &name, "", Some(&found))?),
        None => drop(hub.git().ask(&["update-ref", "-d", &name, &found])?),
    }
    Ok(is_taken && is_refused)
}
