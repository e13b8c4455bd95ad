//! The messages between a lifeline and its host: one line of text each, over a socket pair.

use crate::engine::{Exit, Leftover};

/// The largest number of files that come with an order: those of [`Order::Launch`].
pub(super) const MOST_FILES: usize = 5;

/// An order of the host. Each is answered when it is read, before it is carried out. A launch is answered by its
/// result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Start a program. Three files come with this: one that describes the program ([`super::Launch`]), and those for
    /// its standard output and standard error.
    Launch,
    /// Send this signal to the agent's group. Signal 9 goes to its whole tree.
    Signal(i32),
    /// Stop the agent's tree, and do not report that.
    Stop,
    /// Continue the agent's tree.
    Continue,
    /// The output is drained: kill what is left, and reap. If nothing is left, nothing is reported.
    Sweep,
    /// Only answer.
    Answer,
}

/// A report of a lifeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifelineReport {
    /// An order was read.
    Answered,
    /// The agent runs.
    Spawned {
        /// The agent's process id.
        pid: i32,
        /// The agent's start time, in clock ticks since boot.
        start_time: u64,
    },
    /// The agent could not be started, with this errno.
    Failed(i32),
    /// The agent was stopped by this signal. It is in the lifeline's session, so no shell continues it.
    Stopped(i32),
    /// The agent continues.
    Continued,
    /// The agent exited. It is not reaped yet.
    Exited(Exit),
    /// The whole tree has ended. These processes had outlived the agent.
    Swept(Vec<Leftover>),
    /// The lifeline itself is gone, without a sweep.
    Gone,
}

impl Order {
    pub(super) fn line(self) -> String {
        match self {
            Self::Launch => "launch\n".into(),
            Self::Signal(number) => format!("signal {number}\n"),
            Self::Stop => "stop\n".into(),
            Self::Continue => "continue\n".into(),
            Self::Sweep => "sweep\n".into(),
            Self::Answer => "answer\n".into(),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("signal", number)) => Some(Self::Signal(number.parse().ok()?)),
            None if line == "launch" => Some(Self::Launch),
            None if line == "stop" => Some(Self::Stop),
            None if line == "continue" => Some(Self::Continue),
            None if line == "sweep" => Some(Self::Sweep),
            None if line == "answer" => Some(Self::Answer),
            _ => None,
        }
    }
}

impl LifelineReport {
    pub(super) fn line(&self) -> String {
        match self {
            Self::Spawned { pid, start_time } => format!("spawned {pid} {start_time}\n"),
            Self::Failed(errno) => format!("failed {errno}\n"),
            Self::Stopped(signal) => format!("stopped {signal}\n"),
            Self::Continued => "continued\n".into(),
            Self::Answered => "answered\n".into(),
            Self::Exited(Exit::Code(code)) => format!("exited {code}\n"),
            Self::Exited(Exit::Signal(signal)) => format!("killed {signal}\n"),
            Self::Swept(leftovers) => {
                let words = leftovers.iter().map(|left| {
                    let running = if left.running { "!" } else { "" };
                    format!(" {running}{}:{}", left.pid, left.name.replace([' ', '\n'], "_"))
                });
                format!("swept{}\n", words.collect::<String>())
            }
            Self::Gone => String::new(),
        }
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let verb = words.next()?;
        let mut number = || words.next()?.parse::<i64>().ok();
        let small = |number: Option<i64>| number.and_then(|number| i32::try_from(number).ok());
        Some(match verb {
            "spawned" => Self::Spawned { pid: small(number())?, start_time: number()?.try_into().ok()? },
            "failed" => Self::Failed(small(number())?),
            "stopped" => Self::Stopped(small(number())?),
            "continued" => Self::Continued,
            "answered" => Self::Answered,
            "exited" => Self::Exited(Exit::Code(small(number())?)),
            "killed" => Self::Exited(Exit::Signal(small(number())?)),
            "swept" => Self::Swept(
                words
                    .filter_map(|word| {
                        let (pid, name) = word.split_once(':')?;
                        let (running, pid) = pid.strip_prefix('!').map_or((false, pid), |pid| (true, pid));
                        Some(Leftover { pid: pid.parse().ok()?, name: name.to_string(), running })
                    })
                    .collect(),
            ),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_parses_to_what_was_said() {
        let leftover = |pid, name: &str| Leftover { pid, name: name.into(), running: pid == 9 };
        for report in [
            LifelineReport::Spawned { pid: 7, start_time: 99 },
            LifelineReport::Failed(2),
            LifelineReport::Stopped(21),
            LifelineReport::Continued,
            LifelineReport::Answered,
            LifelineReport::Exited(Exit::Code(-1)),
            LifelineReport::Exited(Exit::Signal(9)),
            LifelineReport::Swept(vec![]),
            LifelineReport::Swept(vec![leftover(8, "sleep"), leftover(9, "a:b")]),
        ] {
            assert_eq!(LifelineReport::parse(report.line().trim_end()), Some(report));
        }
        for order in [Order::Launch, Order::Signal(15), Order::Stop, Order::Continue, Order::Sweep, Order::Answer] {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        assert_eq!((LifelineReport::parse("nonsense"), Order::parse("signal x")), (None, None));
    }
}
