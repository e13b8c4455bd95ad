//! A scripted agent for the tests, like the fake editors of other projects. It reads `$FAKE_AGENT_DIR/NAME.script`,
//! where NAME is the name by which it was called. Blocks of the script end at a line `next`. Each invocation plays and
//! removes the first block; the last block stays. Every invocation writes `NAME.N.call` with its arguments, its
//! standard input and its FORKHESTRA_ variables.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::format_push_string,
    reason = "an agent, not the program"
)]

use rustix::process::{Signal, Uid, getpid, kill_process, setsid};
use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match play() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("fake-agent: {error}");
            ExitCode::from(99)
        }
    }
}

fn play() -> Result<u8> {
    let arguments: Vec<String> = env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match arguments.get(1).map(String::as_str) {
        // A background process, and the two forks of a daemon.
        Some("--hang") => hang(&arguments[2]),
        // What sudo leaves: a process of another user, from a setuid file.
        Some("--as-root") => {
            rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?;
            hang(&arguments[2])
        }
        Some("--daemon") => {
            setsid()?;
            Command::new(env::current_exe()?).arg("--hang").arg(&arguments[2]).spawn()?;
            return Ok(0);
        }
        _ => {}
    }
    let folder = PathBuf::from(env::var("FAKE_AGENT_DIR")?);
    let name = Path::new(&arguments[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    leave_call(&folder, &name, &arguments[1..])?;
    for line in next_block(&folder, &name)?.lines() {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "" | "#" => {}
            "print" => say(&format!("{}\n", unescape(rest)))?,
            "write" => say(&unescape(rest))?,
            "eprint" => eprintln!("{}", unescape(rest)),
            "marker" => say("FORKHESTRA_COMPLETE\n")?,
            "hex" => io::stdout().write_all(&hex(rest)?)?,
            "echo" => say(&format!("{}\n", arguments.last().map_or("", String::as_str)))?,
            "flood" => flood(rest.parse()?)?,
            "touch" => drop(fs::write(rest, "")?),
            "wait-for" => wait_for(Path::new(rest)),
            "ignore" => drop(signal_hook::flag::register(signal(rest)?.as_raw(), Arc::new(AtomicBool::new(false)))?),
            "child" => drop(Command::new(env::current_exe()?).arg("--hang").arg(rest).spawn()?),
            "quiet-child" => {
                let mut child = Command::new(env::current_exe()?);
                child
                    .arg("--hang")
                    .arg(rest)
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()?;
            }
            "daemon" => {
                Command::new(env::current_exe()?).arg("--daemon").arg(rest).status()?;
                wait_for(Path::new(rest));
            }
            "hang" => hang(rest),
            "die" => {
                // The runtime's own handler returns from the first SIGSEGV.
                loop {
                    kill_process(getpid(), signal(rest)?)?;
                }
            }
            "sh" => drop(Command::new("/bin/sh").arg("-c").arg(rest).status()?),
            "exit" => return Ok(rest.parse()?),
            _ => return Err(format!("unknown verb in {name}.script: {line}").into()),
        }
    }
    Ok(0)
}

/// Touches the file, if one is named, and waits to be killed.
fn hang(touch: &str) -> ! {
    if !touch.is_empty() {
        let _ = fs::write(touch, getpid().as_raw_nonzero().to_string());
    }
    loop {
        std::thread::park();
    }
}

fn wait_for(path: &Path) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !path.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn flood(bytes: usize) -> io::Result<()> {
    let line = [b"x".repeat(79), b"\n".to_vec()].concat().repeat(820);
    let (mut stdout, mut left) = (io::stdout().lock(), bytes);
    while left > 0 {
        let piece = left.min(line.len());
        stdout.write_all(&line[..piece])?;
        left -= piece;
    }
    stdout.flush()
}

fn signal(name: &str) -> Result<Signal> {
    Ok(match name {
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "HUP" => Signal::HUP,
        "KILL" => Signal::KILL,
        "SEGV" => Signal::SEGV,
        _ => return Err(format!("unknown signal {name}").into()),
    })
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t").replace("\\e", "\x1b")
}

fn hex(text: &str) -> Result<Vec<u8>> {
    let byte = |pair: &str| u8::from_str_radix(pair, 16);
    Ok(text.split(' ').map(byte).collect::<std::result::Result<_, _>>()?)
}

fn next_block(folder: &Path, name: &str) -> Result<String> {
    let path = folder.join(format!("{name}.script"));
    let script = fs::read_to_string(&path)?;
    Ok(match script.split_once("\nnext\n") {
        Some((block, rest)) => {
            let new = folder.join(format!("{name}.script.new"));
            fs::write(&new, rest)?;
            fs::rename(&new, &path)?;
            block.to_string()
        }
        None => script,
    })
}

fn leave_call(folder: &Path, name: &str, arguments: &[String]) -> Result<()> {
    let mut stdin = Vec::new();
    io::stdin().read_to_end(&mut stdin)?;
    // Several may be called at the same moment.
    let claim = |number: &u32| fs::File::create_new(folder.join(format!("{name}.{number}.claim"))).is_ok();
    let number = (1..100_000).find(claim).unwrap_or(0);
    let mut call = String::new();
    for argument in arguments {
        call += &format!("arg {argument}\n");
    }
    let mut variables: Vec<(String, String)> =
        env::vars().filter(|(name, _)| name.starts_with("FORKHESTRA_")).collect();
    variables.sort();
    for (name, value) in variables.iter().filter(|(name, _)| !name.contains("TEST")) {
        call += &format!("env {name}={value}\n");
    }
    call += &format!("stdin {} bytes\n", stdin.len());
    fs::write(folder.join(format!("{name}.{number}.stdin")), stdin)?;
    fs::write(folder.join(format!("{name}.{number}.call")), call)?;
    Ok(())
}
