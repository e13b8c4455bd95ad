//! A plan for people: what would run, from where, and with which prompts. The bytes shown are those that the run
//! delivers.

use crate::chain::{Delivery, Limit, Role, show_duration};
use crate::plan::{Found, Kind, MissingCommand, Plan, PlannedIsolation, PlannedStep, Root, digest};
use crate::prompt::{Late, Level, Segment, show};
use crate::report::paint::{Paint, printable};
use crate::report::text::earlier::EarlierRuns;
use crate::source::counted;
use std::fmt::Write;
use std::time::Duration;

/// The longest part of a prompt that is shown without `-v`, in characters.
const EXCERPT: usize = 300;

/// Returns the whole plan.
#[must_use]
pub fn dry_run(plan: &Plan, earlier: Option<&EarlierRuns>, paint: Paint, verbose: bool) -> String {
    let mut text = String::new();
    let title = plan.name.as_deref().map_or_else(|| plan.chain.clone(), |name| format!("{name}: {}", plan.chain));
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{} {}\n", paint.bold("Dry run of"), paint.bold(&title));
    let root = match &plan.root {
        Root::Folder(folder) => folder.display().to_string(),
        Root::Temporary => "a new temporary directory".into(),
    };
    row(&mut text, paint, "root", &root);
    let files = plan
        .files
        .iter()
        .map(|(layer, name)| if name == "built-in" { name.clone() } else { format!("{name} ({layer})") });
    row(&mut text, paint, "config", &files.collect::<Vec<_>>().join(", "));
    row(&mut text, paint, "marker", &plan.marker);
    row(&mut text, paint, "limits", &plan.limits.words());
    if plan.commits_tasks && plan.task.is_some() {
        row(&mut text, paint, "commit", "what the task has changed, when it is completed");
    }
    if let Some(earlier) = earlier {
        row(&mut text, paint, "earlier", &earlier.words());
    }
    row(&mut text, paint, "digest", &digest(plan));
    for hook in &plan.hooks {
        row(&mut text, paint, hook.kind.name(), &hook.line);
    }
    for step in &plan.steps {
        step_text(&mut text, plan, step, paint, verbose);
    }
    let _ = writeln!(text, "\n{}", paint.dim("Nothing was run and nothing was written."));
    text
}

fn row(text: &mut String, paint: Paint, name: &str, value: &str) {
    let _ = writeln!(text, "   {} {value}", paint.dim(&format!("{name:<12}")));
}

fn step_text(text: &mut String, plan: &Plan, step: &PlannedStep, paint: Paint, verbose: bool) {
    let how_often = match (&step.kind, step.limit) {
        (Kind::Check { skipped: Some(why), .. }, _) => format!("skipped: {why}"),
        (Kind::Check { absence: Some(MissingCommand::LookedForAgain), .. }, _) => {
            "a check without a command; forkhestra looks again when the check runs".into()
        }
        (Kind::Check { optional: true, .. }, _) => "an optional check".into(),
        (Kind::Check { .. }, _) => "a check, succeeds with exit code 0".into(),
        (Kind::Agent { role: Role::Judge, .. }, Limit::Once) => "a judge, succeeds when it approves".into(),
        (Kind::Agent { role: Role::Judge, .. }, _) => {
            "a judge, succeeds when it approves; a count has no effect on a judge".into()
        }
        (_, Limit::Once) => "once, succeeds with exit code 0".into(),
        (_, Limit::UpTo(count)) if count.get() == 1 => "a loop of 1 iteration, needs the marker".into(),
        (_, Limit::UpTo(count)) => format!("a loop of up to {count} iterations, until the marker"),
    };
    let _ = writeln!(
        text,
        "\n{}, {}{}",
        paint.bold(&format!("{}. {}", step.number, step.name)),
        how_often,
        rounds(plan, step)
    );
    row(text, paint, "found", &found(step));
    for hidden in &step.hides {
        row(text, paint, "", &format!("hides the program {}", hidden.display()));
    }
    row(text, paint, "program", &step.program.display().to_string());
    row(text, paint, "command", &command_line(step, verbose));
    if let Some(isolation) = &step.isolation {
        row(text, paint, "wrap", &wrap_line(isolation, verbose));
        if let Some(sandbox) = &isolation.sandbox {
            row(text, paint, "sandbox", &sandbox.words());
        }
    }
    for other in &step.variants {
        row(text, paint, "or by", &format!("{}: {}", other.run_by_words(), command_line(other, verbose)));
    }
    if let Some(continuation) = &step.continuation {
        let minutes = continuation.within.as_secs() / 60;
        let words = format!("continued in later rounds, up to {minutes} min after the attempt before");
        row(text, paint, "session", &words);
    }
    if let Some(permissions) = step.permissions() {
        row(text, paint, "permissions", permissions.name());
    }
    if let Kind::Agent { .. } = step.kind {
        text.push_str(&prompt_block(step, paint, verbose));
    }
    let time = |time: Option<Duration>| time.map_or_else(|| "none".into(), show_duration);
    // A check has no idle timeout.
    let idle = step.idle_timeout.map(|idle| format!("; {} when silent and idle", show_duration(idle)));
    let start = step.start_timeout.map(|start| format!("; {} to its first output", show_duration(start)));
    let timeouts = [Some(time(step.timeout)), idle, start].into_iter().flatten().collect::<String>();
    row(text, paint, "timeout", &timeouts);
    let others = step.env.set.iter().filter(|(name, _)| !step.env.settings.contains(name));
    let names = |names: Vec<&str>| names.join(" ");
    row(text, paint, "environment", &format!("sets {}", names(others.map(|(name, _)| name.as_str()).collect())));
    for (name, value) in step.env.shown_settings() {
        row(text, paint, "", &format!("sets {name}={}", quoted(&value)));
    }
    if !step.env.unset.is_empty() {
        row(text, paint, "", &format!("removes {}", names(step.env.unset.iter().map(String::as_str).collect())));
    }
}

fn rounds(plan: &Plan, step: &PlannedStep) -> String {
    let mut group = plan.program.step_group.get(step.number - 1).copied().flatten();
    let mut words = String::new();
    while let Some(span) = group.and_then(|index| plan.program.groups.get(index)) {
        let rounds = if span.rounds == 1 { "1 round".into() } else { format!("up to {} rounds", span.rounds) };
        let _ = write!(words, ", in a group of {rounds}");
        group = span.parent;
    }
    words
}

fn found(step: &PlannedStep) -> String {
    let place = match &step.found {
        Found::Path => "a program on PATH".to_string(),
        Found::Config(layer, at) if at.starts_with("built-in") => format!("{layer}"),
        Found::Config(layer, at) => format!("{at} ({layer})"),
    };
    match &step.kind {
        Kind::Agent { backend: Some(backend), .. } => format!("{place}, run by {backend}"),
        _ => place,
    }
}

/// Returns the command as a line for a shell. A prompt that is not shown in full appears as `$PROMPT`.
fn command_line(step: &PlannedStep, verbose: bool) -> String {
    let whole = |text: &str| verbose || text.chars().count() <= EXCERPT;
    let prompt = step.prompt.as_ref().map(|prompt| (prompt.deliver, prompt.show()));
    let argument = |arg: &Vec<Segment>| match &prompt {
        _ if *arg == [Segment::Late(Late::PromptFile)] => "\"$PROMPT_FILE\"".into(),
        Some((Delivery::Arg, text)) if show(arg) == *text && !whole(text) => "\"$PROMPT\"".into(),
        _ => quoted(&show(arg)),
    };
    let program = quoted(&step.program.to_string_lossy());
    let line = std::iter::once(program).chain(step.argv.iter().map(argument)).collect::<Vec<_>>().join(" ");
    match &prompt {
        Some((Delivery::Stdin, text)) if whole(text) => format!("printf %s {} | {line}", quoted(text)),
        Some((Delivery::Stdin, _)) => format!("printf %s \"$PROMPT\" | {line}"),
        _ => format!("{line} < /dev/null"),
    }
}

/// Returns the programs that wrap the command. The many arguments of a sandbox are shown only with `-v`.
fn wrap_line(isolation: &PlannedIsolation, verbose: bool) -> String {
    let program = quoted(&isolation.program.to_string_lossy());
    let words: Vec<String> = isolation.argv.iter().map(|word| quoted(&show(word))).collect();
    let line = std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ");
    match line.split_once(" --die-with-parent ") {
        Some((before, _)) if !verbose => format!("{before} … (all of it with -v)"),
        _ => line,
    }
}

/// Quotes an argument for a shell. Control characters are quoted in the `$'…'` form (POSIX 2024), so that the argument
/// can be pasted but cannot control the reader's terminal.
#[must_use]
pub fn quoted(word: &str) -> String {
    let turns = |next: char| matches!(next, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let wild = |next: char| turns(next) || next.is_control() && !matches!(next, '\n' | '\t');
    if !word.contains(wild) {
        return shlex::try_quote(word).map_or_else(|_| String::new(), std::borrow::Cow::into_owned);
    }
    let mut text = String::from("$'");
    for next in word.chars() {
        match next {
            '\'' | '\\' => text.extend(['\\', next]),
            _ if wild(next) => {
                let mut bytes = [0; 4];
                for byte in next.encode_utf8(&mut bytes).bytes() {
                    // Writing to a String cannot fail.
                    let _ = write!(text, "\\x{byte:02x}");
                }
            }
            _ => text.push(next),
        }
    }
    text + "'"
}

/// Returns where a step's prompt comes from, how it is delivered, and its text.
fn prompt_block(step: &PlannedStep, paint: Paint, verbose: bool) -> String {
    let mut block = prompt_rows(step, paint);
    let Some(prompt) = &step.prompt else { return block };
    let shown = prompt.show();
    let cut = shown.char_indices().nth(EXCERPT).filter(|_| !verbose).map(|(cut, _)| cut);
    block += &prompt_text(&shown[..cut.unwrap_or(shown.len())], paint);
    if cut.is_some() {
        let bar = paint.dim(paint.sign("│", "|"));
        // Writing to a String cannot fail.
        let _ = writeln!(block, "   {bar} {}", paint.dim("… the full text with -v"));
    }
    block
}

/// Returns the lines of a prompt.
pub(in crate::report) fn prompt_text(text: &str, paint: Paint) -> String {
    let bar = paint.dim(paint.sign("│", "|"));
    printable(text).lines().fold(String::new(), |lines, line| lines + &format!("   {bar} {line}\n"))
}

/// Returns where the prompt of a step comes from, and how it reaches the agent.
pub(in crate::report) fn prompt_rows(step: &PlannedStep, paint: Paint) -> String {
    let mut block = String::new();
    let text = &mut block;
    let Some(prompt) = &step.prompt else {
        let why = match step.level {
            Level::None => "none: not set on the command line, the step, the chain or the agent",
            _ => "none: an empty prompt masks the lower levels",
        };
        row(text, paint, "prompt", why);
        return block;
    };
    let how = match prompt.deliver {
        Delivery::Arg => "as the last argument",
        Delivery::Stdin => "on standard input",
        Delivery::File => "as a file, whose path is the last argument",
    };
    let (known, late) = (prompt.known_bytes(), prompt.late());
    row(text, paint, "prompt", &format!("from {} ({}), {how}", step.level, prompt.origin));
    let more = match (&prompt.around, late.as_slice()) {
        (_, []) => String::new(),
        (None, _) => ", plus the feedback from round 2 on".into(),
        (Some(_), late) => format!(", plus what is known only in a run: {}", late.join(", ")),
    };
    row(text, paint, "", &format!("{}, about {}{more}", counted(known, "byte"), counted(known.div_ceil(4), "token")));
    if let Some(around) = &prompt.around {
        let skills: Vec<&str> = around.template.skills().collect();
        let with = if skills.is_empty() { String::new() } else { format!(", with the skills {}", skills.join(", ")) };
        row(text, paint, "template", &format!("{}{with}", around.template.origin()));
    }
    if !prompt.stayed.is_empty() {
        let names = prompt.stayed.iter().map(|name| format!("${{{name}}}")).collect::<Vec<_>>().join(" ");
        row(text, paint, "", &format!("left as it is: {names}"));
    }
    block
}
