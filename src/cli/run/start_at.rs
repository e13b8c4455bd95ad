//! `--start-at`: when a run begins, and the wait until then.

use crate::cli::options::Common;
use crate::cli::respond::Stopped;
use crate::cli::run::execute::{event_queue, exit_of};
use crate::engine::RunOutcome;
use crate::proc::SleepInhibitor;
use crate::report::print_error;
use crate::runner::wait_until;
use crate::source::Diagnostic;
use crate::world::World;
use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

/// Parses a start time. A time of day means the next such time; a date and a time mean that moment.
///
/// # Errors
/// When it is not a time, or is in the past.
fn start_at(typed: &str, now: Timestamp, here: &TimeZone) -> Result<Timestamp, Diagnostic> {
    let local = now.to_zoned(here.clone());
    if let Ok(time) = typed.parse::<Time>()
        && !typed.contains(['T', 't', ' '])
    {
        let days = [local.date(), local.date().tomorrow().map_err(|_| no_time(typed))?];
        let mut moments = days.into_iter().filter_map(|day| day.to_datetime(time).to_zoned(here.clone()).ok());
        let next = moments.find(|moment| moment.timestamp() > now);
        return next.map(|moment| moment.timestamp()).ok_or_else(|| no_time(typed));
    }
    let moment = if let Ok(moment) = typed.parse::<Timestamp>() {
        moment
    } else {
        let local = typed.parse::<DateTime>().map_err(|_| no_time(typed))?;
        local.to_zoned(here.clone()).map_err(|_| no_time(typed))?.timestamp()
    };
    if moment > now { Ok(moment) } else { Err(past(typed, &local.strftime("%Y-%m-%d %H:%M").to_string())) }
}

/// Waits for the start time. Everything else has to be checked before: perhaps nobody is there when the time has come.
///
/// # Errors
/// When it cannot wait, or the exit code if a signal ended the wait.
pub(in crate::cli) fn wait_for_start(
    world: &World,
    common: &Common,
    typed: &str,
    keeps_awake: bool,
) -> Result<(), Stopped> {
    let here = world.time_zone();
    let start = start_at(typed, world.moment(), &here)?;
    if !common.quiet {
        let shown = start.to_zoned(here);
        let left = start.as_second().saturating_sub(world.moment().as_second()).max(0);
        let left = format!("{} h {} min", left / 3600, left % 3600 / 60);
        print_error(&format!("starts at {}, in {left}; press Ctrl-C to cancel\n", shown.strftime("%Y-%m-%d %H:%M %Z")));
    }
    let _awake = keeps_awake.then(|| SleepInhibitor::take("a run starts later", world.cwd()));
    let runtime = event_queue()?;
    match runtime.block_on(wait_until(world, start)) {
        Ok(None) => Ok(()),
        Ok(Some(signal)) => Err(Stopped::Ended(exit_of(RunOutcome::Interrupted { signal }))),
        Err(error) => Err(Diagnostic::error("run/failed", error.to_string()).into()),
    }
}

/// Checks that the start time can be waited for.
///
/// # Errors
/// When it is not a time, or is in the past.
pub(in crate::cli) fn check_start(world: &World, typed: Option<&String>) -> Result<(), Diagnostic> {
    typed.map_or(Ok(()), |typed| start_at(typed, world.moment(), &world.time_zone()).map(drop))
}

fn no_time(typed: &str) -> Diagnostic {
    Diagnostic::error("usage/start-at", format!("`{typed}` is not a time"))
        .help("write a time of day, --start-at 02:00, or a date and a time, --start-at 2026-11-23T02:00")
}

fn past(typed: &str, now: &str) -> Diagnostic {
    Diagnostic::error("usage/start-at", format!("`{typed}` is in the past: it is {now} now"))
        .help("leave out --start-at to start now")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(typed: &str) -> Option<String> {
        let now: Timestamp = "2026-11-22T23:00:00Z".parse().unwrap();
        start_at(typed, now, &TimeZone::UTC).ok().map(|moment| moment.to_string())
    }

    #[test]
    fn a_time_of_day_is_the_next_one_and_a_past_day_is_refused() {
        assert_eq!(at("02:00").as_deref(), Some("2026-11-23T02:00:00Z"));
        assert_eq!(at("23:30").as_deref(), Some("2026-11-22T23:30:00Z"));
        assert_eq!(at("2026-11-24T02:00").as_deref(), Some("2026-11-24T02:00:00Z"));
        assert_eq!(at("2026-11-24 02:00").as_deref(), Some("2026-11-24T02:00:00Z"));
        assert_eq!(at("2026-11-24T02:00:00+02:00").as_deref(), Some("2026-11-24T00:00:00Z"));
        for typed in ["2026-11-22T22:00", "2020-01-01T00:00:00Z", "25:00", "soon", "", "2"] {
            assert_eq!(at(typed), None, "{typed}");
        }
    }
}
