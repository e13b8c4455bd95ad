//! An engine: an existing system that starts jobs on other machines. All of it is data: three commands of that system.

use crate::proc::{ProgramAnswer, capture_aside};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The pauses before a failed submission is repeated.
const AGAIN: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// An engine, ready for the units of one hub. Its commands contain `${JOB}`, `${UNIT}`, `${HUB}`, `${LABELS}` and
/// `${WORK}`.
#[derive(Debug)]
pub struct RemoteEngine {
    /// Its name, as `--on` takes it.
    pub name: String,
    /// The command that starts a job; empty if workers fetch units by themselves.
    pub submit: Vec<String>,
    /// The command that lists the jobs that have not ended; empty if that cannot be known.
    pub list: Vec<String>,
    /// The command that ends a job; empty if there is none.
    pub cancel: Vec<String>,
    /// Where the other machines find the hub.
    pub hub: String,
    /// The labels that a machine must have, separated by commas.
    pub labels: String,
    /// The command line of a worker for a shell, up to the name of its unit.
    pub work: String,
    /// What distinguishes the jobs of this hub from those of others.
    pub id: String,
    /// How often the jobs are listed.
    pub poll: Duration,
    /// The directory in which the commands run.
    pub folder: PathBuf,
    /// The last list.
    pub listing: RefCell<JobListing>,
}

/// The jobs of an engine that had not ended when they were listed.
#[derive(Debug, Default)]
pub struct JobListing {
    /// Whether they are being listed again.
    is_asking: bool,
    /// When they were listed, and what they were; `None` if the engine has not answered.
    last: Option<(Instant, HashSet<String>)>,
}

impl RemoteEngine {
    /// The name of the job of a unit.
    pub(super) fn job(&self, unit: &str) -> String {
        format!("forkhestra-{}-{unit}", self.id)
    }

    fn filled(&self, words: &[String], unit: &str) -> Vec<String> {
        let work = format!("{} --unit {unit}", self.work);
        let values = [
            ("${JOB}", self.job(unit)),
            ("${UNIT}", unit.into()),
            ("${HUB}", self.hub.clone()),
            ("${LABELS}", self.labels.clone()),
            ("${WORK}", work),
        ];
        let fill = |word: &String| values.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value));
        words.iter().map(fill).collect()
    }

    async fn run(&self, words: &[String], unit: &str) -> Result<ProgramAnswer, String> {
        let words = self.filled(words, unit);
        let Some((program, arguments)) = words.split_first() else { return Ok(ProgramAnswer::default()) };
        let answer = capture_aside(program.into(), arguments.to_vec(), self.folder.clone()).await;
        let answer = answer.ok_or_else(|| format!("{program} cannot be started, or does not answer"))?;
        if answer.code == Some(0) {
            return Ok(answer);
        }
        Err(failure(program, &answer))
    }

    /// Returns the number of its jobs that have not ended, of whatever project; `None` if it has no command for this.
    ///
    /// # Errors
    /// What the command says if it fails.
    pub async fn jobs(&self) -> Result<Option<usize>, String> {
        if self.list.is_empty() {
            return Ok(None);
        }
        self.run(&self.list, "none").await.map(|answer| Some(jobs_of(&answer.stdout).len()))
    }

    /// Starts the job of a unit.
    pub(super) async fn submit(&self, unit: &str) -> Result<(), String> {
        let mut waits = AGAIN.iter();
        loop {
            let Err(why) = self.run(&self.submit, unit).await else { return Ok(()) };
            match waits.next() {
                Some(wait) => sleep(*wait).await,
                None => return Err(why),
            }
        }
    }

    /// Ends the job of a unit.
    pub(super) async fn cancel(&self, unit: &str) -> Result<(), String> {
        self.run(&self.cancel, unit).await.map(drop)
    }

    /// Returns when the jobs were listed last, and whether that of a unit was among them; `None` if that is not known.
    /// Lists them again if that is longer ago than [`RemoteEngine::poll`].
    pub(super) async fn is_listed(&self, unit: &str) -> Option<(Instant, bool)> {
        let now = Instant::now();
        let is_old = |listing: &JobListing| listing.last.as_ref().is_none_or(|(asked, _)| now - *asked >= self.poll);
        let asks = {
            let mut listing = self.listing.borrow_mut();
            // The others use the list before until the new one is there.
            let asks = !self.list.is_empty() && !listing.is_asking && is_old(&listing);
            listing.is_asking |= asks;
            asks
        };
        if asks {
            let answer = self.run(&self.list, unit).await;
            let mut listing = self.listing.borrow_mut();
            (listing.is_asking, listing.last) = (false, answer.ok().map(|answer| (now, jobs_of(&answer.stdout))));
        }
        let listing = self.listing.borrow();
        let (asked, jobs) = listing.last.as_ref()?;
        Some((*asked, jobs.contains(&self.job(unit))))
    }
}

/// Why a command failed, in its own words if it has any.
fn failure(program: &str, answer: &ProgramAnswer) -> String {
    let Some(said) = answer.stderr.lines().map(str::trim).rfind(|line| !line.is_empty()) else {
        let how = answer.code.map_or_else(|| "was killed".into(), |code| format!("exited with code {code}"));
        return format!("`{program}` {how} and printed no error");
    };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    // Many programs begin their messages with their own name.
    let names_itself =
        [program, name].iter().any(|name| said.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')));
    if names_itself { said.to_string() } else { format!("{program}: {said}") }
}

/// Reads a list of jobs: one line each, which begins with the name.
fn jobs_of(text: &str) -> HashSet<String> {
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_string).collect()
}
