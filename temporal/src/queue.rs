//! The names of queues and jobs in Temporal. Pure.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Returns the name of the queue for units that need these labels. Units of another version have another queue, so that
/// no worker gets what it would refuse.
pub(crate) fn queue_name(queue: &str, labels: &[String]) -> String {
    let version: Vec<&str> = env!("CARGO_PKG_VERSION").split('.').take(2).collect();
    let mut labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    labels.sort_unstable();
    labels.dedup();
    let labels: String = labels.iter().flat_map(|label| ["+", label]).collect();
    format!("{queue}-{}{labels}", version.join("."))
}

/// Returns the name of the job of a unit, if nobody has named it.
pub(crate) fn job_name(hub: &str, unit: &str) -> String {
    let mut digest = String::new();
    for byte in Sha256::digest(hub.as_bytes()).iter().take(4) {
        // Writing to a String cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    format!("forkhestra-{digest}-{unit}")
}

/// Returns the job of another unit of the same hub: `forkhestra-HUB-UNIT`. `None` if this is not the name of a job.
pub(crate) fn job_of_same_hub(job: &str, unit: &str) -> Option<String> {
    let (hub, _) = job.strip_prefix("forkhestra-")?.split_once('-')?;
    Some(format!("forkhestra-{hub}-{unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_need_the_same_labels_have_the_same_queue() {
        assert_eq!(queue_name("f", &[]), "f-0.1");
        assert_eq!(queue_name("f", &["b".into(), "a".into(), "a".into()]), "f-0.1+a+b");
    }

    #[test]
    fn the_jobs_of_a_hub_share_the_beginning_of_their_names() {
        assert_eq!(
            job_of_same_hub("forkhestra-0a1b2c3d-31-4-1", "31-verify-1").unwrap(),
            "forkhestra-0a1b2c3d-31-verify-1"
        );
        assert_eq!(job_of_same_hub("other", "1"), None);
        let job = job_name("/home/me/hub.git", "31-4-1");
        assert_eq!(job_of_same_hub(&job, "31-4-1").unwrap(), job);
    }
}
