//! `status --watch`: the status as lines at the bottom of the terminal, which are drawn again every second. What has
//! happened since stays above them, as ordinary text.

use super::{at_work, gather, text};
use crate::cli::args::StatusArgs;
use crate::cli::config::project;
use crate::cli::options::Common;
use crate::cli::respond::Answered;
use crate::cli::run::output::verbosity;
use crate::cli::runs::broken;
use crate::exit::Exit;
use crate::journal::Journal;
use crate::report::{BatchLines, Console, Paint, print};
use crate::source::Diagnostic;
use crate::world::World;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The time between two drawings.
const FRAME: Duration = Duration::from_secs(1);

/// The terminal, with the lines that are drawn again.
struct Pinned<'a> {
    world: &'a World,
    common: &'a Common,
    args: &'a StatusArgs,
    paint: Paint,
    height: usize,
}

impl Pinned<'_> {
    /// Returns the status as it is now.
    fn status(&self) -> Result<String, Diagnostic> {
        Ok(text(&gather(self.world, self.common, self.args)?, self.args.all, self.paint))
    }

    /// Draws the status again, with `news` above it, and waits. Fails if the terminal is gone.
    fn draw(&mut self, news: &str, block: &str) -> io::Result<()> {
        let back = if self.height > 0 { format!("\x1b[{}A\x1b[J", self.height) } else { String::new() };
        self.height = block.lines().count();
        print(&format!("{back}{news}{block}"))?;
        std::thread::sleep(FRAME);
        Ok(())
    }

    /// Draws the status without news.
    fn draw_status(&mut self) -> Result<io::Result<()>, Diagnostic> {
        let block = self.status()?;
        Ok(self.draw("", &block))
    }
}

/// Carries out `status --watch`. It ends when the terminal is gone, or by a signal.
pub(super) fn watch(world: &World, common: &Common, args: &StatusArgs) -> Answered {
    let paint = Paint::for_stdout(world);
    if !paint.terminal {
        return Err(no_terminal().into());
    }
    let root = project(world, common).root;
    let mut pinned = Pinned { world, common, args, paint, height: 0 };
    let mut past = true;
    loop {
        let journal = if args.all { None } else { Journal::existing(&root).map_err(broken)? };
        let drawn = match journal {
            Some(journal) => follow(&mut pinned, &journal, past)?,
            None => pinned.draw_status()?,
        };
        past = false;
        if drawn.is_err() {
            return Ok(Exit::Success);
        }
    }
}

/// Shows what happens in a run until another one begins. `past` is whether what has happened in it so far is old.
fn follow(pinned: &mut Pinned<'_>, journal: &Journal, past: bool) -> Result<io::Result<()>, Diagnostic> {
    let running = at_work(journal)?.map(|active| active.row.id);
    let last = journal.runs().last().map_err(broken)?.map(|row| row.id);
    let Some(run) = running.or(last) else { return pinned.draw_status() };
    let Some(outline) = journal.runs().outline(run).map_err(broken)? else { return pinned.draw_status() };
    let folder = pinned.world.relative(&journal.files().run_folder(run));
    let verbosity = verbosity(pinned.common);
    let is_batch = journal.runs().batches().map_err(broken)?.contains(&run);
    let mut batch = is_batch.then(|| BatchLines::new(run, pinned.paint.still()));
    let mut console = Console::new(&outline, None, pinned.paint.still(), verbosity, Path::new(&folder));
    let (mut seq, mut old) = (0, past);
    loop {
        // Read before the events, so that the end of a run is never shown without its last lines.
        let block = pinned.status()?;
        let mut news = String::new();
        for event in journal.events().after(run, seq).map_err(broken)? {
            seq = event.seq;
            let lines = match &mut batch {
                Some(batch) => batch.event(&event.event),
                None => console.event(&event),
            };
            news.push_str(if old { "" } else { &lines });
        }
        old = false;
        if let Err(gone) = pinned.draw(&news, &block) {
            return Ok(Err(gone));
        }
        if at_work(journal)?.is_some_and(|active| active.row.id != run) {
            return Ok(Ok(()));
        }
    }
}

fn no_terminal() -> Diagnostic {
    Diagnostic::error("status/no-terminal", "--watch needs a terminal, and standard output is not one")
        .help("`forkhestra status` prints once, `forkhestra runs log -f` follows as text")
}
