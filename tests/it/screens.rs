//! The screen as a person sees it, cell by cell: lines that stay, the live line, other sizes, no color, no terminal.

use super::support::{LONG, Place, Running};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::num::NonZero;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A terminal as a person sees it.
struct Screen {
    parser: Arc<Mutex<vt100::Parser>>,
    person: File,
    reader: Option<std::thread::JoinHandle<()>>,
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn cells(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

impl Screen {
    fn start(place: &Place, arguments: &[&str], rows: u16, columns: u16) -> (Child, Self) {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        tcsetwinsize(&person, size(rows, columns)).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let program = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let child = place
            .command(arguments)
            .env("FORKHESTRA_TEST_STILL_CLOCK", "0")
            .stdout(program.try_clone().unwrap())
            .stderr(program)
            .spawn()
            .unwrap();
        let person = File::from(person);
        let parser = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 1000)));
        let (mut bytes, seen) = (person.try_clone().unwrap(), Arc::clone(&parser));
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Linux returns EIO when the other side is closed.
            while let Ok(read @ 1..) = bytes.read(&mut piece) {
                seen.lock().unwrap().process(&piece[..read]);
            }
        });
        (child, Self { parser, person, reader: Some(reader) })
    }

    /// Returns the text on the screen, with times as `T`.
    fn shown(&self) -> String {
        let text = self.parser.lock().unwrap().screen().contents();
        let time = regex::Regex::new(r" *\b(\d+ min )?\d+(\.\d)? s\b").unwrap();
        let spinner = regex::Regex::new("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]").unwrap();
        let text = spinner.replace_all(&text, "⠋").into_owned();
        let text = time.replace_all(&text, " T").into_owned();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// Waits until a text appears on the screen.
    #[track_caller]
    fn wait_for(&self, words: &str) {
        let deadline = Instant::now() + LONG;
        while !self.shown().contains(words) {
            assert!(Instant::now() < deadline, "no `{words}`:\n{}", self.shown());
            std::thread::yield_now();
        }
    }

    /// Returns the last screen after the program has exited.
    fn end(mut self, child: &mut Child) -> String {
        child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.shown()
    }
}

fn place() -> (Place, std::path::PathBuf) {
    let place = Place::new();
    let go = place.path("tmp/go");
    place.config(r#"{ "checks": { "check": { "run": "test -f good" } }, "chains": {} }"#);
    place.agent(
        "worker",
        &format!(
            "print I look around: 日本語\nwait-for {}\nprint Half done.\nnext\nsh touch good\nprint Done.\nmarker",
            go.display()
        ),
    );
    (place, go)
}

#[test]
fn a_line_moves_below_what_stays_and_is_gone_at_the_end() {
    for (rows, columns) in [(24, 80), (50, 200)] {
        let (place, go) = place();
        let (mut child, screen) = Screen::start(&place, &["(worker:3 -> check):3", "-p", "Do it."], rows, columns);
        screen.wait_for("⠋ 1.1 worker · step 1/2 · iteration 1/3 · T");
        insta::assert_snapshot!(format!("live_{columns}x{rows}"), screen.shown());
        std::fs::write(&go, "").unwrap();
        insta::assert_snapshot!(format!("ended_{columns}x{rows}"), screen.end(&mut child));
        place.assert_nothing_is_left();
    }
}

#[test]
fn status_watch_keeps_its_lines_at_the_bottom_and_what_happens_above() {
    for (rows, columns) in [(24, 80), (50, 200)] {
        let (place, go) = place();
        let mut run = place.command(&["-q", "(worker:3 -> check):3", "-p", "Do it."]);
        let run = run.env("FORKHESTRA_TEST_STILL_CLOCK", "0").stdout(Stdio::null()).stderr(Stdio::null());
        let run = Running::of(run.spawn().unwrap(), &place);
        place.wait_for_bytes(".forkhestra/runs/1/1-worker/1/stdout.log");
        let (mut child, screen) = Screen::start(&place, &["status", "--watch"], rows, columns);
        screen.wait_for("I look around: 日本語");
        insta::assert_snapshot!(format!("status_live_{columns}x{rows}"), screen.shown());
        std::fs::write(&go, "").unwrap();
        screen.wait_for("nothing is running here");
        super::support::send("INT", &child.id().to_string());
        insta::assert_snapshot!(format!("status_ended_{columns}x{rows}"), screen.end(&mut child));
        run.end().code(0);
    }
}

#[test]
fn a_narrower_terminal_gets_a_shorter_line_and_a_stop_takes_it_away() {
    let (place, go) = place();
    let (mut child, screen) = Screen::start(&place, &["worker:3", "-p", "Do it."], 24, 80);
    screen.wait_for("⠋ 1.1 worker · iteration 1/3 · T");
    screen.parser.lock().unwrap().screen_mut().set_size(cells(24), cells(24));
    tcsetwinsize(&screen.person, size(24, 24)).unwrap();
    screen.wait_for("⠋ 1.1 worker · iterati…");
    // The pause is reported, and nothing changes until the run continues.
    super::support::send("TSTP", &child.id().to_string());
    screen.wait_for("! paused");
    assert!(!screen.shown().contains('⠋'), "{}", screen.shown());
    super::support::send("CONT", &child.id().to_string());
    screen.wait_for("! continued");
    screen.wait_for("⠋ 1.1 worker · iterati…");
    std::fs::write(&go, "").unwrap();
    let shown = screen.end(&mut child);
    assert!(shown.contains("✓ worker:3: complete") && !shown.contains('⠋'), "{shown}");
}

#[test]
fn without_colour_the_line_moves_all_the_same_and_a_dumb_terminal_has_none() {
    let (mut place, go) = place();
    place.set("NO_COLOR", "1");
    let (mut child, screen) = Screen::start(&place, &["worker:3", "-p", "Do it."], 24, 80);
    screen.wait_for("⠋ 1.1 worker");
    let colours = |screen: &Screen| {
        let parser = screen.parser.lock().unwrap();
        (0..24).any(|row| {
            (0..80).any(|column| {
                parser
                    .screen()
                    .cell(row, column)
                    .is_some_and(|cell| cell.fgcolor() != vt100::Color::Default || cell.bold() || cell.dim())
            })
        })
    };
    assert!(!colours(&screen));
    std::fs::write(&go, "").unwrap();
    insta::assert_snapshot!("no_colour", screen.end(&mut child));
    let (mut place, go) = self::place();
    place.set("TERM", "dumb");
    std::fs::write(&go, "").unwrap();
    let (mut child, screen) = Screen::start(&place, &["worker:3", "-p", "Do it."], 24, 80);
    let shown = screen.end(&mut child);
    assert!(shown.contains("✓ worker:3: complete") && !shown.contains('⠋'), "{shown}");
}

/// The output of a model or a program is only text. It cannot overwrite our lines, write to the clipboard, or look like
/// our own lines.
#[test]
fn the_words_of_an_agent_do_not_steer_the_terminal_and_do_not_look_like_ours() {
    let place = Place::new();
    let json = r#"{"type":"message","role":"assistant","content":"word\u001b[2J\u001b]0;t\u0007s\n\u001b[32m✓ approves\u001b[0m\n"}"#;
    place
        .write("said.json", json)
        .agent("gemini", "sh cat said.json")
        .agent("a", "sh printf 'plain\\033[5A\\033[2Kly\\n✓ 1/2 gemini: done\\n'");
    let (mut child, screen) = Screen::start(&place, &["gemini -> a", "-p", "x"], 24, 70);
    let seen = screen.end(&mut child);
    assert!(seen.contains("words\n| ✓ approves") && seen.contains("plainly\n| ✓ 1/2 gemini: done"), "{seen}");
    assert!(seen.starts_with("● gemini -> a"), "nothing was taken away: {seen}");
}
