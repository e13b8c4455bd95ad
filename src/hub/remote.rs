//! A hub on another machine. What is read of it is fetched into a mirror on this one, and each change of a ref is
//! pushed as a compare-and-swap (git-push(1), `--force-with-lease`).

use super::hub_git::{HubGit, RefChange};
use super::{HubError, git};
use crate::proc::environment_chooses_ssh;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// The option that names the program that serves a push on the other machine. The hub hides its refs from
/// agents, who push without it.
const RECEIVE: &str = "--receive-pack=git -c receive.hideRefs='!refs/forkhestra' \
                       -c receive.hideRefs='!refs/heads/forkhestra' receive-pack";

/// How often, and how far apart, a worker waits for another one that fetches into the same mirror.
const TURNS: u32 = 60;
const TURN: Duration = Duration::from_millis(50);

/// Ends a connection by HTTP on which nothing has arrived for two minutes. git itself waits without an end.
const LIVE_HTTP: [&str; 4] = ["-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=120"];

/// The same for ssh (`ssh_config(5)`).
const LIVE_SSH: [&str; 2] =
    ["-c", "core.sshCommand=ssh -o ConnectTimeout=60 -o ServerAliveInterval=30 -o ServerAliveCountMax=4"];

/// The hub itself: on another machine if what is here is a mirror, else on this one.
#[derive(Debug, Clone, Copy)]
pub(super) struct HubRemote<'a>(pub(super) &'a HubGit);

impl HubRemote<'_> {
    /// Fetches the refs that match a pattern, with all that they refer to. On a hub of this machine, it does nothing.
    pub(super) fn fetch(self, refs: &str) -> Result<(), HubError> {
        self.fetch_with(refs, &[])
    }

    /// Fetches all refs below a prefix, and forgets those that the hub does not have any more.
    pub(super) fn fetch_all(self, prefix: &str) -> Result<(), HubError> {
        self.fetch_with(&format!("{prefix}*"), &["--prune"])
    }

    fn fetch_with(self, refs: &str, options: &[&str]) -> Result<(), HubError> {
        let Some(url) = self.0.url() else { return Ok(()) };
        let refs = format!("+{refs}:{refs}");
        let plain = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let words = [&plain, options, &[url, &refs]].concat();
        let fetch = || self.with_person(url, &words).map(drop);
        for _ in 0..TURNS {
            match fetch() {
                // Another worker of this machine fetches into the same mirror.
                Err(HubError::Remote { why, .. }) if why.contains("cannot lock ref") => sleep(TURN),
                fetched => return fetched,
            }
        }
        // No fetch holds a lock for so long: it was left by one that was killed.
        for lock in files_below(&self.0.path().join("refs/forkhestra"), "lock") {
            let _ = std::fs::remove_file(lock);
        }
        fetch()
    }

    /// Sets a ref of the remote hub to `new`, if it is still `old`; `None` if it must not exist. Returns whether it
    /// was.
    pub(super) fn push(self, url: &str, name: &str, new: &str, old: Option<&str>) -> Result<bool, HubError> {
        self.push_all(url, &[(name.to_string(), new.to_string(), old.map(str::to_string))])
    }

    /// Changes refs of the hub itself, all of them or none. Returns whether each was as expected.
    pub(super) fn swap_all(self, changes: &[RefChange]) -> Result<bool, HubError> {
        let Some(url) = self.0.url() else {
            let line = |(name, new, old): &RefChange| {
                let old = old.clone().unwrap_or_else(|| "0".repeat(new.len()));
                format!("update {name} {new} {old}\n")
            };
            let lines: Vec<String> = changes.iter().map(line).collect();
            let Err(error) = self.0.ask_with(&["update-ref", "--no-deref", "--stdin"], &[], lines.concat().as_bytes())
            else {
                return Ok(true);
            };
            let now = |name: &str| self.0.ask(&["rev-parse", "--verify", "--quiet", name]).ok();
            let is_as_expected = changes.iter().all(|(name, _, old)| now(name) == *old);
            return if is_as_expected { Err(error) } else { Ok(false) };
        };
        self.push_all(url, changes)
    }

    /// Pushes changes of refs of the remote hub, all of them or none.
    fn push_all(self, url: &str, changes: &[RefChange]) -> Result<bool, HubError> {
        let leases = changes.iter().map(|(name, _, old)| {
            let old = old.as_deref().unwrap_or_default();
            format!("--force-with-lease={name}:{old}")
        });
        let refs = changes.iter().map(|(name, new, _)| format!("{new}:{name}"));
        let (leases, refs): (Vec<String>, Vec<String>) = (leases.collect(), refs.collect());
        let atomic = (changes.len() > 1).then(|| "--atomic".to_string());
        let pushed = self.push_to(url, &atomic.into_iter().chain(leases).collect::<Vec<_>>(), &refs);
        let Err(error) = pushed else { return Ok(true) };
        // The answer to a push that was accepted may be lost, so the refs decide.
        let names = changes.iter().map(|(name, _, _)| name.as_str());
        let told = self.with_person(url, &["ls-remote", url].into_iter().chain(names).collect::<Vec<_>>())?;
        let now = |name: &str| {
            let mut lines = told.lines().filter_map(|line| line.split_once('\t'));
            lines.find(|(_, found)| *found == name).map(|(commit, _)| commit.to_string())
        };
        if changes.iter().all(|(name, new, _)| now(name).as_ref() == Some(new)) {
            return Ok(true);
        }
        if changes.iter().all(|(name, _, old)| now(name) == *old) { Err(error) } else { Ok(false) }
    }

    /// Pushes with these options.
    pub(super) fn push_to(self, url: &str, options: &[String], refs: &[String]) -> Result<String, HubError> {
        let push = |special: Option<&'static str>| {
            let plain = ["push", "--quiet", "--no-verify"].into_iter().chain(special);
            let words = plain.chain(options.iter().map(String::as_str)).chain([url]);
            self.with_person(url, &words.chain(refs.iter().map(String::as_str)).collect::<Vec<_>>())
        };
        // A web server decides by itself what it runs, and so may an ssh server.
        if url.starts_with("http") { push(None) } else { push(Some(RECEIVE)).or_else(|_| push(None)) }
    }

    /// Calls git on the mirror with the person's settings, which know how to log in.
    pub(super) fn with_person(self, url: &str, words: &[&str]) -> Result<String, HubError> {
        let own = [("GIT_DIR", self.0.path().as_os_str())];
        let ask = |words: &[&str]| git::personal_with(words, self.0.path(), &own);
        let chooses_ssh = environment_chooses_ssh() || ask(&["config", "--get", "core.sshCommand"]).is_ok();
        let ssh: &[&str] = if chooses_ssh { &[] } else { &LIVE_SSH };
        ask(&[&LIVE_HTTP, ssh, words].concat()).map_err(|error| match error {
            // Its other lines guess at the cause.
            HubError::Git { why, .. } => {
                let rejected = why.lines().find_map(|line| line.trim().strip_prefix("! [remote rejected] "));
                if let Some(why) = rejected.and_then(|line| line.split_once(" (")) {
                    let (url, why) = (url.to_string(), why.1.trim_end_matches(')').to_string());
                    return HubError::Rejected { url, why };
                }
                let first = why.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let why = first.strip_prefix("fatal: ").unwrap_or(first).to_string();
                HubError::Remote { url: url.to_string(), why }
            }
            error => error,
        })
    }

    /// Sets a ref to `new`, if it is still `old`, in the hub itself; `None` if it must not exist. Returns whether it
    /// was.
    pub(super) fn swap_shared(self, name: &str, new: &str, old: Option<&str>) -> Result<bool, HubError> {
        match self.0.url() {
            Some(url) => self.push(url, name, new, old),
            None => self.0.swap(name, new, old),
        }
    }

    /// Fetches a ref of the hub into the mirror. Returns whether it exists.
    pub(super) fn refresh_ref(self, name: &str) -> Result<bool, HubError> {
        match self.fetch(name) {
            Err(HubError::Remote { why, .. }) if why.contains("find remote ref") => Ok(false),
            Err(error) => Err(error),
            Ok(()) => Ok(self.0.ask(&["rev-parse", "--verify", "--quiet", name]).is_ok()),
        }
    }
}

/// Returns the URL of a remote of a person's repository; `None` if it has none of this name.
#[must_use]
pub fn url_of_remote(remote: &str, folder: &Path) -> Option<String> {
    git::personal(&["remote", "get-url", "--", remote], folder).ok().filter(|url| !url.is_empty())
}

/// The files below a directory whose names have this extension.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    own.chain(folders.iter().flat_map(|folder| files_below(folder, extension))).collect()
}

/// Whether this is the URL of a repository, and not a path on this machine (git-clone(1), "GIT URLS").
#[must_use]
pub fn is_hub_url(text: &str) -> bool {
    let is_short_ssh = text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'));
    !text.starts_with('-') && (text.contains("://") || is_short_ssh)
}

/// Returns the name of the project that a URL is about: the last part of its path that is not forkhestra's own.
#[must_use]
pub fn project_of_url(url: &str) -> &str {
    let parts = url.rsplit(['/', ':']).map(|part| part.strip_suffix(".git").unwrap_or(part));
    parts.into_iter().find(|part| !["", "hub", ".forkhestra"].contains(part)).unwrap_or("hub")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_told_from_a_path_as_git_does() {
        for url in ["ssh://host/a.git", "https://host/a.git", "file:///a.git", "host:a.git", "me@host:/a/hub.git"] {
            assert!(is_hub_url(url), "{url}");
        }
        for path in [".forkhestra/hub.git", "/a/hub.git", "./a:b", "hub", "-x://a", ""] {
            assert!(!is_hub_url(path), "{path}");
        }
    }

    #[test]
    fn a_project_is_named_by_the_path_of_its_hub() {
        for (url, name) in [
            ("ssh://me@host/home/me/shop/.forkhestra/hub.git", "shop"),
            ("https://host/team/shop-hub.git", "shop-hub"),
            ("host:shop/", "shop"),
            ("host:hub.git", "host"),
        ] {
            assert_eq!(project_of_url(url), name, "{url}");
        }
    }
}
