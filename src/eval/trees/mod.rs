//! Cases that are trees of files: a chain works in a copy of the tree, and what it has changed is judged.

mod store;
mod taken;
mod work;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub use store::CaseTreeStore;
pub use taken::CaseTrees;
pub(super) use work::{PATCH, TREES, WORK};
pub use work::{TreeAnswer, work_on_tree};

/// The directory of the project's config, which every tree gets.
pub(super) const FORGE: &str = "forge";

/// The tree of a case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CaseTree {
    /// Where its files come from.
    pub source: TreeSource,
    /// A directory whose files are added before commands judge the work. The chain never sees them.
    pub hidden: Option<PathBuf>,
}

/// Where the files of a tree come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TreeSource {
    /// A directory, without the files that git ignores in it.
    Folder(PathBuf),
    /// A commit of the project's repository, by any name that git knows.
    Commit(String),
}

/// The ids of the git trees of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeIds {
    /// The files that the chain begins with.
    pub start: String,
    /// The files that are added before the work is judged.
    pub hidden: Option<String>,
}

/// What a chain is asked to do in a tree. It is all that decides the answer, apart from chance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TreeRequest {
    /// The id of the git tree.
    pub(super) tree: String,
    /// The chain, by its name or in the chain language.
    pub(super) chain: String,
    /// The prompt of the chain.
    pub(super) prompt: String,
    /// A file that is written into the tree first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<MeasuredFile>,
}

/// A file of the tree that is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MeasuredFile {
    /// Its path in the tree.
    pub(super) path: String,
    pub(super) text: String,
}

/// What a chain has done in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TreeWork {
    /// How its run ended: a state of the summary, such as `complete`.
    pub(super) state: String,
    /// The number of attempts.
    pub(super) attempts: u32,
    /// The number of times that a judge has rejected the work.
    pub(super) rejections: u32,
    /// What it has changed, as git shows it, as far as it is text.
    pub(super) diff: String,
    /// Why its change is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}
