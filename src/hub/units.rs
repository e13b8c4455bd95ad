//! Units in the hub: one ref each, which only grows, and only by a compare-and-swap.

use super::HubError;
use super::commits::HubCommits;
use super::hub_git::HubGit;
use super::remote::HubRemote;
use crate::unit::{Bundle, UnitRecord, UnitStage};

/// The prefix of the refs of units.
pub(super) const UNITS: &str = "refs/forkhestra/units/";

/// How often a unit is looked for while its ref exists.
const LOOKS: u32 = 20;

/// The file of the bundle in the tree of a unit's commits.
pub(super) const BUNDLE: &str = "bundle.json";

/// A unit as the hub has it.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundUnit {
    /// The last commit on its ref.
    pub commit: String,
    /// What that commit says.
    pub record: UnitRecord,
    /// The commit with its work so far: the second parent; `None` before the first checkpoint.
    pub work: Option<String>,
    /// The name of the worker that made that commit.
    pub worker: String,
}

impl FoundUnit {
    /// The machine of the worker that made the last commit, as far as it is known.
    #[must_use]
    pub fn machine(&self) -> &str {
        self.worker.rsplit_once('@').map_or("", |(_, machine)| machine)
    }

    /// Whether a worker of this name has claimed it, and has not handed it over.
    #[must_use]
    pub fn is_claimed_by(&self, name: &str) -> bool {
        let is_its = self.worker.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        is_its && matches!(self.record.stage, UnitStage::Claimed | UnitStage::Checkpoint)
    }
}

/// The right to work on a unit. It is lost when somebody else claims the unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The name of the unit.
    pub unit: String,
    /// The number of the claim.
    pub fence: u32,
    worker: String,
    pub(super) commit: String,
    work: Option<String>,
}

/// The units in a hub: one ref each, to which every change is added as a commit.
#[derive(Debug, Clone, Copy)]
pub struct HubUnits<'a>(pub(super) &'a HubGit);

impl HubUnits<'_> {
    /// Adds a unit, which then waits for a worker. Returns `false` if there is another one of this name.
    ///
    /// # Errors
    /// When git fails.
    pub fn queue(self, bundle: &Bundle) -> Result<bool, HubError> {
        let blob = self.0.ask_with(&["hash-object", "-w", "--stdin"], &[], bundle.text().as_bytes())?;
        let tree = self.0.ask_with(&["mktree"], &[], format!("100644 blob {blob}\t{BUNDLE}\n").as_bytes())?;
        // As a parent, the commit with which the unit begins stays for as long as the unit is known.
        let commit =
            HubCommits(self.0).create(&tree, &[&bundle.start], &UnitRecord::queued().message(&bundle.unit, "none"))?;
        self.swap_unit(&bundle.unit, &commit, None)
    }

    /// Makes a unit wait for a worker again, with this tree.
    pub(super) fn offer(self, unit: &str, found: &FoundUnit, tree: &str) -> Result<bool, HubError> {
        let parents: Vec<&str> = std::iter::once(found.commit.as_str()).chain(found.work.as_deref()).collect();
        let record = UnitRecord { fence: found.record.fence, ..UnitRecord::queued() };
        let commit = HubCommits(self.0).create(tree, &parents, &record.message(unit, "none"))?;
        self.swap_unit(unit, &commit, Some(&found.commit))
    }

    /// Returns the last commit on the ref of a unit, as of the last refresh.
    #[must_use]
    pub fn last_commit(self, unit: &str) -> Option<String> {
        let name = format!("{UNITS}{unit}");
        // A file is read without a process. git may have packed the ref.
        let loose = crate::context::small(&self.0.path().join(&name)).map(|text| text.trim().to_string());
        let is_commit = |text: &String| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        loose.filter(is_commit).or_else(|| self.0.ask(&["rev-parse", "--verify", "--quiet", &name]).ok())
    }

    /// Sets the ref of a unit to `new`, if it is still `old`, in the hub itself.
    fn swap_unit(self, unit: &str, new: &str, old: Option<&str>) -> Result<bool, HubError> {
        let name = format!("{UNITS}{unit}");
        let is_ours = HubRemote(self.0).swap_shared(&name, new, old)?;
        if self.0.is_mirror() {
            // The mirror follows. What is in it is never trusted when it matters.
            let words = ["update-ref", "--no-deref", &name, new];
            let _ = if is_ours { self.0.ask(&words).map(drop) } else { HubRemote(self.0).fetch(&name) };
        }
        Ok(is_ours)
    }

    /// Brings what this machine knows about a unit up to date, or about all units (`*`). Of a hub of this machine,
    /// everything is known.
    ///
    /// # Errors
    /// When the hub cannot be reached, or has no such unit.
    pub fn refresh(self, unit: &str) -> Result<(), HubError> {
        HubRemote(self.0).fetch(&format!("{UNITS}{unit}")).map_err(|error| match error {
            HubError::Remote { why, .. } if why.contains("find remote ref") => self.unknown(unit),
            error => error,
        })
    }

    pub(super) fn unknown(self, unit: &str) -> HubError {
        let hub = self.0.name();
        HubError::Unknown { hub, unit: unit.to_string() }
    }

    /// Returns a unit, as of the last refresh; `None` if there is none of this name.
    ///
    /// # Errors
    /// When git fails.
    pub fn get(self, unit: &str) -> Result<Option<FoundUnit>, HubError> {
        let name = format!("{UNITS}{unit}");
        for _ in 0..LOOKS {
            if let Some((_, found)) = self.units_named(&name)?.into_iter().find(|(name, _)| name == unit) {
                return Ok(Some(found));
            }
            // git lists a directory, and may miss a ref that another process replaces at this moment.
            if self.0.ask(&["rev-parse", "--verify", "--quiet", &name]).is_err() {
                break;
            }
        }
        Ok(None)
    }

    /// Returns all units with their names, as of the last refresh, in the order of the numbers in their names.
    ///
    /// # Errors
    /// When git fails.
    pub fn all(self) -> Result<Vec<(String, FoundUnit)>, HubError> {
        self.units_named(UNITS)
    }

    fn units_named(self, refs: &str) -> Result<Vec<(String, FoundUnit)>, HubError> {
        let format = "--format=%(refname)%00%(objectname)%00%(parent)%00%(contents)%00";
        let told = self.0.ask(&["for-each-ref", "--sort=version:refname", format, refs])?;
        let mut parts = told.split('\0').map(|part| part.strip_prefix('\n').unwrap_or(part));
        let mut units = Vec::new();
        while let (Some(name), Some(commit), Some(parents), Some(message)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        {
            let Some((unit, record)) = name.strip_prefix(UNITS).zip(UnitRecord::parse(message)) else { continue };
            let work = parents.split(' ').nth(1).map(str::to_string);
            let worker = UnitRecord::worker_of(message).to_string();
            units.push((unit.to_string(), FoundUnit { commit: commit.to_string(), record, work, worker }));
        }
        Ok(units)
    }

    /// Forgets the units of all runs but these, with their work that has not landed, and compresses the hub. What
    /// nothing refers to is deleted once it is two weeks old (git-gc(1)).
    ///
    /// # Errors
    /// When git fails.
    pub fn forget_except(self, runs: &[i64]) -> Result<(), HubError> {
        let kept = "refs/forkhestra/kept/";
        let told = self.0.ask(&["for-each-ref", "--format=%(refname)", UNITS, kept])?;
        let run_of = |name: &str| {
            let unit = name.strip_prefix(UNITS).or_else(|| name.strip_prefix(kept))?;
            unit.split_once('-')?.0.parse::<i64>().ok()
        };
        let old = told.lines().filter(|name| run_of(name).is_some_and(|run| !runs.contains(&run)));
        let commands: Vec<String> = old.map(|name| format!("delete {name}\n")).collect();
        if commands.is_empty() {
            return Ok(());
        }
        self.0.ask_with(&["update-ref", "--stdin"], &[], commands.concat().as_bytes())?;
        self.0.ask(&["gc", "--quiet"]).map(drop)
    }

    /// Returns the bundle of a unit.
    ///
    /// # Errors
    /// When there is no such unit, or a newer version made it.
    pub fn bundle(self, unit: &str) -> Result<Bundle, HubError> {
        let name = format!("{UNITS}{unit}:{BUNDLE}");
        let text = self.0.ask(&["cat-file", "blob", &name]).map_err(|_| self.unknown(unit))?;
        Bundle::parse(&text).map_err(|cause| HubError::Bundle { unit: unit.to_string(), cause })
    }

    /// Claims a unit for a worker, whose name nobody else has. Returns `None` if its work is done, or if somebody else
    /// claims it at the same moment. An earlier claim is void from now on.
    ///
    /// # Errors
    /// When there is no such unit, or git fails.
    pub fn claim(self, unit: &str, worker: &str) -> Result<Option<Claim>, HubError> {
        let found = self.get(unit)?.ok_or_else(|| self.unknown(unit))?;
        self.claim_as(unit, found, worker)
    }

    /// Claims a unit as it was found. Returns `None` if its work is done, or if somebody else has changed it since.
    ///
    /// # Errors
    /// When git fails.
    pub fn claim_as(self, unit: &str, found: FoundUnit, worker: &str) -> Result<Option<Claim>, HubError> {
        if found.record.stage == UnitStage::Done {
            return Ok(None);
        }
        let fence = found.record.fence.saturating_add(1);
        let mut claim =
            Claim { unit: unit.to_string(), fence, worker: worker.to_string(), commit: found.commit, work: found.work };
        Ok(self.record(&mut claim, UnitStage::Claimed, (None, None), None)?.then_some(claim))
    }

    /// Adds a commit to the ref of a unit. Without a tree, it keeps the one that it has.
    pub(super) fn record(
        self,
        claim: &mut Claim,
        stage: UnitStage,
        (work, tree): (Option<&str>, Option<&str>),
        exit: Option<u8>,
    ) -> Result<bool, HubError> {
        let work = work.map(str::to_string).or_else(|| claim.work.clone());
        let record = UnitRecord { fence: claim.fence, stage, exit };
        loop {
            let parents: Vec<&str> = std::iter::once(claim.commit.as_str()).chain(work.as_deref()).collect();
            let tree = tree.map_or_else(|| format!("{}^{{tree}}", claim.commit), str::to_string);
            let commit = HubCommits(self.0).create(&tree, &parents, &record.message(&claim.unit, &claim.worker))?;
            if self.swap_unit(&claim.unit, &commit, Some(&claim.commit))? {
                (claim.commit, claim.work) = (commit, work);
                return Ok(true);
            }
            // The hub may have taken an earlier change, although its answer was lost.
            self.refresh(&claim.unit)?;
            let is_own = |found: &FoundUnit| {
                (found.record.fence, &found.worker) == (claim.fence, &claim.worker) && found.commit != claim.commit
            };
            let Some(own) = self.get(&claim.unit)?.filter(is_own) else { return Ok(false) };
            (claim.commit, claim.work) = (own.commit, own.work);
            if own.record.stage == UnitStage::Done {
                return Ok(true);
            }
        }
    }
}
