//! What a lifeline and its host tell each other: one line of text each, over a socket pair.

use crate::engine::{Exit, Leftover};

/// What the host asks for. Each is answered when it was read, before it is done; a launch by what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Start a program: with this come a file that says which ([`super::Launch`]), and what it writes its output and its errors to.
    Launch,
    /// Send this signal to the agent's group; 9 goes to its whole tree.
    Signal(i32),
    /// Stop the agent's tree, and say nothing of that.
    Stop,
    /// Let the agent's tree go on.
    Continue,
    /// The output is drained: end what is left, and reap. Nothing is said where nothing is left.
    Sweep,
    /// Nothing but an answer.
    Answer,
}

/// What a lifeline reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LifelineReport {
    /// An order was read.
    Answered,
    /// The agent runs.
    Spawned {
        /// Its process id.
        pid: i32,
        /// Its start time in clock ticks since boot.
        start_time: u64,
    },
    /// The agent could not be started: an errno.
    Failed(i32),
    /// The agent was stopped by this signal; nobody but us can wake it.
    Stopped(i32),
    /// It goes on.
    Continued,
    /// The agent exited; it is not reaped yet.
    Exited(Exit),
    /// The tree is ended; these had outlived its agent.
    Swept(Vec<Leftover>),
    /// The lifeline itself is gone without having swept.
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
