//! The integrator of a shared hub: the one batch, wherever it runs, that works on the hub's tasks and lands them. Its
//! claim is a ref. It is renewed again and again, and whatever is changed is changed together with it, so that one that
//! has lost its claim changes nothing.

use super::HubError;
use super::hub_git::{HubGit, LINE, RefChange};
use super::remote::HubRemote;
use super::tasks::{HubTasks, Person};
use crate::unit::{UnitRecord, UnitStage};

/// The ref of the claim.
const INTEGRATOR: &str = "refs/forkhestra/integrator";
/// The prefix of the refs of commits that are sent before anything refers to them.
const SENT: &str = "refs/forkhestra/sent/";
/// The shared line, as a project's hub has it.
const SHARED: &str = "refs/forkhestra/shared-line";

/// The claim on a hub, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundIntegrator {
    /// The commit of its ref, which changes with each renewal.
    pub commit: String,
    /// The name of the integrator.
    pub name: String,
    /// The number of its batch; `None` if it has begun none.
    pub run: Option<i64>,
    /// When the claim was renewed last, by its clock, in seconds since 1970.
    pub at: i64,
    /// The name of the human who has started it.
    person: String,
    record: UnitRecord,
}

/// The trailer with the number of the batch.
const RUN: &str = "Forkhestra-Run: ";

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The hub has everything.
    Done,
    /// The claim still holds, but something else has changed in the meantime. Nothing was pushed.
    Changed,
    /// Somebody else has the claim. Nothing was pushed.
    Lost,
}

impl FoundIntegrator {
    /// Who holds the claim, in words.
    #[must_use]
    pub fn holder(&self) -> String {
        let machine = self.name.rsplit_once('@').map_or(self.name.as_str(), |(_, machine)| machine);
        format!("a batch of {} on {machine}", self.person)
    }

    /// Whether nobody holds the claim.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.record.stage == UnitStage::Done
    }
}

const FORMAT: &str = "--format=%(objectname)%00%(authorname)%00%(committerdate:unix)%00%(contents)";

/// The right to work on the tasks of a hub. It is given back when this is dropped.
#[derive(Debug)]
pub struct IntegratorClaim {
    hub: HubGit,
    name: String,
    person: Person,
    run: Option<i64>,
    fence: u32,
    beat: u64,
    /// The commit of the claim; `None` once it is lost or given back.
    commit: Option<String>,
}

/// A hub as several people share it: who works on its tasks, and its line.
#[derive(Debug, Clone, Copy)]
pub struct SharedHub<'a>(pub(super) &'a HubGit);

impl SharedHub<'_> {
    /// Returns who holds the claim on the tasks, or has held it last; `None` if nobody ever has.
    ///
    /// # Errors
    /// When the hub cannot be reached.
    pub fn integrator(self) -> Result<Option<FoundIntegrator>, HubError> {
        if !HubRemote(self.0).refresh_ref(INTEGRATOR)? {
            return Ok(None);
        }
        let told = self.0.ask(&["for-each-ref", FORMAT, INTEGRATOR])?;
        let parts: Vec<&str> = told.splitn(4, '\0').collect();
        let [commit, person, at, message] = parts.as_slice() else { return Ok(None) };
        let run = message.lines().find_map(|line| line.strip_prefix(RUN)).and_then(|run| run.parse().ok());
        let at = at.parse().unwrap_or(0);
        let name = UnitRecord::worker_of(message).to_string();
        let (commit, person) = (commit.to_string(), person.to_string());
        let found = |record| FoundIntegrator { commit, name, run, at, person, record };
        Ok(UnitRecord::parse(message).map(found))
    }

    /// Claims the tasks, if the claim is still as it was found. Returns `None` if somebody else was faster.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached.
    pub fn integrate(
        self,
        found: Option<&FoundIntegrator>,
        name: &str,
        person: &Person,
    ) -> Result<Option<IntegratorClaim>, HubError> {
        let fence = found.map_or(0, |found| found.record.fence).saturating_add(1);
        let commit = found.map(|found| found.commit.clone());
        let (hub, person, name) = (self.0.clone(), person.clone(), name.to_string());
        let run = found.filter(|found| found.name == name).and_then(|found| found.run);
        let mut claim = IntegratorClaim { hub, name, person, run, fence, beat: 0, commit };
        let pushed = claim.push_as(UnitStage::Claimed, &[])?;
        Ok((pushed == Pushed::Done).then_some(claim))
    }

    /// The change of the line of a hub from one commit to another.
    #[must_use]
    pub fn line_change(new: &str, old: Option<&str>) -> RefChange {
        (LINE.to_string(), new.to_string(), old.map(str::to_string))
    }

    /// Brings commits to the hub, each under a name of its own, without a claim: that may take long.
    ///
    /// # Errors
    /// When the hub cannot be reached, or rejects them.
    pub fn send(self, from: &str, commits: &[(&str, &str)]) -> Result<(), HubError> {
        let Some(url) = self.0.url().filter(|_| !commits.is_empty()) else { return Ok(()) };
        let refs = commits.iter().map(|(name, commit)| format!("+{commit}:{SENT}{from}/{name}"));
        let refs: Vec<String> = refs.collect();
        HubRemote(self.0).push_to(url, &[], &refs).map(drop)
    }

    /// Fetches the line of the hub that this is a copy of, next to its own. Returns its last commit; `None` if there is
    /// no line.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached.
    pub fn line(self) -> Result<Option<String>, HubError> {
        let Some(url) = self.0.url() else { return Ok(self.0.line()) };
        let refs = format!("+{LINE}:{SHARED}");
        match HubRemote(self.0)
            .with_person(url, &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", url, &refs])
        {
            Err(HubError::Remote { why, .. }) if why.contains("find remote ref") => Ok(None),
            fetched => fetched.and_then(|_| self.0.ask(&["rev-parse", "--verify", SHARED]).map(Some)),
        }
    }
}

impl IntegratorClaim {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The batch before this one, if it was one of the same root and nobody else has had the claim since.
    #[must_use]
    pub fn run_before(&self) -> Option<i64> {
        self.run
    }

    /// Whether somebody else has the claim, as far as we know.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.commit.is_none()
    }

    /// Says which batch has the claim.
    pub fn begin(&mut self, run: i64) {
        self.run = Some(run);
    }

    /// Pushes from this copy of the hub from now on.
    pub fn push_from(&mut self, copy: SharedHub<'_>) {
        self.hub = copy.0.clone();
    }

    /// Renews the claim, and changes these refs in the same step.
    ///
    /// # Errors
    /// When git fails, or the hub cannot be reached. The claim may still hold then.
    pub fn push(&mut self, changes: &[RefChange]) -> Result<Pushed, HubError> {
        self.push_as(UnitStage::Claimed, changes)
    }

    fn push_as(&mut self, stage: UnitStage, changes: &[RefChange]) -> Result<Pushed, HubError> {
        if self.beat > 0 && self.commit.is_none() {
            return Ok(Pushed::Lost);
        }
        self.beat += 1;
        let record = UnitRecord { fence: self.fence, stage, exit: None };
        let tree = self.hub.ask_with(&["mktree"], &[], &[])?;
        let run = self.run.map_or_else(String::new, |run| format!("{RUN}{run}\n"));
        let message = format!("{}{run}Forkhestra-Beat: {}\n", record.message("integrator", &self.name), self.beat);
        // No parent: nobody needs the renewals before, and each would stay for ever.
        let new = HubTasks(&self.hub).commit_by(&self.person, &tree, None, &message)?;
        let mut pushed = self.try_push(&new, changes)?;
        // The hub may have taken an earlier renewal, although its answer was lost.
        if pushed == Pushed::Lost && self.is_found_again()? {
            pushed = self.try_push(&new, changes)?;
        }
        match pushed {
            Pushed::Done => self.commit = Some(new).filter(|_| stage != UnitStage::Done),
            Pushed::Lost => self.commit = None,
            Pushed::Changed => {}
        }
        Ok(pushed)
    }

    fn try_push(&self, new: &str, changes: &[RefChange]) -> Result<Pushed, HubError> {
        let own = (INTEGRATOR.to_string(), new.to_string(), self.commit.clone());
        let all: Vec<RefChange> = std::iter::once(own).chain(changes.iter().cloned()).collect();
        if HubRemote(&self.hub).swap_all(&all)? {
            return Ok(Pushed::Done);
        }
        let found = SharedHub(&self.hub).integrator()?.map(|found| found.commit);
        Ok(if found == self.commit { Pushed::Changed } else { Pushed::Lost })
    }

    /// Takes over our own renewal that the hub has, and that we do not know of.
    fn is_found_again(&mut self) -> Result<bool, HubError> {
        let is_own =
            |found: &FoundIntegrator| !found.is_free() && (found.record.fence, &found.name) == (self.fence, &self.name);
        let found = SharedHub(&self.hub).integrator()?.filter(is_own).filter(|_| self.beat > 1);
        self.commit = found.map(|found| found.commit).or(self.commit.take());
        Ok(self.commit.is_some() && self.beat > 1)
    }
}

impl Drop for IntegratorClaim {
    fn drop(&mut self) {
        if self.commit.is_some() {
            // Otherwise another one takes over a little later.
            let _ = self.push_as(UnitStage::Done, &[]);
        }
    }
}
