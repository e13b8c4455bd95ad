//! `completions` and `man`: printed, or installed where shells and man(1) look for them in a user's home.

use crate::cli::args::{Cli, CompletionsArgs, ManArgs};
use crate::cli::respond::{Answered, answer};
use crate::exit::Exit;
use crate::report::print_bytes;
use crate::source::{Diagnostic, Env};
use crate::world::World;
use clap::{Command, CommandFactory};
use std::path::{Path, PathBuf};

const BASH: &str = r#"_forkhestra() {
  # Split at spaces only: bash would also split at = and :.
  local line=${COMP_LINE:0:COMP_POINT} candidate
  local -a words
  IFS=$' \t' read -ra words <<< "$line"
  [ "${line: -1}" = ' ' ] && words+=('')
  local last=$((${#words[@]} - 1))
  local typed=${words[last]} head
  head=${typed%"${typed##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r candidate; do
    COMPREPLY+=("${candidate#"$head"}")
  done < <(forkhestra __complete "$last" "${words[@]}" 2>/dev/null | cut -f1)
}
complete -o bashdefault -o default -F _forkhestra forkhestra
"#;
const ZSH: &str = r#"#compdef forkhestra
_forkhestra() {
  local line
  local -a values
  for line in ${(f)"$(forkhestra __complete $((CURRENT - 1)) "${words[@]}" 2>/dev/null)"}; do
    values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe forkhestra values || _files
}
if [ "$funcstack[1]" = "_forkhestra" ]; then _forkhestra "$@"; else compdef _forkhestra forkhestra; fi
"#;
const FISH: &str = "complete -c forkhestra -a '(forkhestra __complete (count (commandline -opc)) (commandline -opc) (commandline -ct) 2>/dev/null)'\n";
const POWERSHELL: &str = r#"Register-ArgumentCompleter -Native -CommandName forkhestra -ScriptBlock {
  param($word, $ast, $cursor)
  $words = @($ast.CommandElements | ForEach-Object { $_.ToString() })
  if ($word -eq '') { $words += '' }
  & forkhestra __complete ($words.Count - 1) @words 2>$null | ForEach-Object {
    $value, $help = $_ -split "`t", 2
    if (-not $help) { $help = $value }
    [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
  }
}
"#;

/// Prints the completion script of a shell, or installs it.
pub(super) fn completions(world: &World, args: &CompletionsArgs) -> Answered {
    let shell = match &args.shell {
        Some(shell) => shell.clone(),
        None => own_shell(world)?,
    };
    let script = match shell.as_str() {
        "bash" => BASH,
        "zsh" => ZSH,
        "fish" => FISH,
        _ => POWERSHELL,
    };
    if !args.install {
        return Ok(answer(script));
    }
    let data = || world.data_home().ok_or_else(no_home);
    let at_once = "  new shells complete forkhestra\n";
    let (file, after) = match shell.as_str() {
        "bash" => (data()?.join("bash-completion/completions/forkhestra"), at_once.into()),
        "fish" => (world.config_home().ok_or_else(no_home)?.join("fish/completions/forkhestra.fish"), at_once.into()),
        "zsh" => {
            let folder = data()?.join("zsh/site-functions");
            let line = format!("  add to ~/.zshrc, before compinit: fpath=({} $fpath)\n", shown(world, &folder));
            (folder.join("_forkhestra"), line)
        }
        _ => return Err(no_place().into()),
    };
    install(world, &file, script)?;
    Ok(answer(&format!("wrote {}\n{after}", shown(world, &file))))
}

/// Returns the name of the user's shell, as `$SHELL` says.
fn own_shell(world: &World) -> Result<String, Diagnostic> {
    let shell = world.var("SHELL").map(PathBuf::from);
    let name = shell.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.filter(|name| ["bash", "zsh", "fish"].contains(&name.as_str())).ok_or_else(|| {
        let said = shell.map_or("$SHELL is not set".into(), |shell| format!("$SHELL is {}", shell.display()));
        Diagnostic::error("usage/completions", format!("it is unknown which shell you use: {said}"))
            .help("name it: `forkhestra completions bash --install` (or zsh, or fish)")
    })
}

/// Prints the manual page of the program, or of a command; with `--out` or `--install`, writes all of them.
pub(super) fn man(world: &World, args: &ManArgs) -> Answered {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    if let Some(folder) = &args.out {
        write_pages(world, &command, &world.cwd().join(folder)).map_err(|error| no_folder(folder, &error))?;
        return Ok(Exit::Success);
    }
    if args.install {
        let folder = world.data_home().ok_or_else(no_home)?.join("man/man1");
        let pages = write_pages(world, &command, &folder).map_err(|error| no_folder(&folder, &error))?;
        let said = format!("wrote {pages} pages to {}; `man forkhestra` shows the first\n", shown(world, &folder));
        return Ok(answer(&said));
    }
    let mut found = &command;
    for verb in &args.verb {
        let Some(next) = found.find_subcommand(verb) else {
            let verbs: Vec<&str> = found.get_subcommands().map(Command::get_name).collect();
            return Err(no_verb(verb, &verbs).into());
        };
        found = next;
    }
    let mut page = Vec::new();
    match clap_mangen::Man::new(found.clone()).render(&mut page).and_then(|()| print_bytes(&page)) {
        Ok(()) => Ok(Exit::Success),
        Err(_) => Ok(Exit::Incomplete),
    }
}

/// Writes the pages of a command and of all commands below it, hidden ones left out. Returns how many.
fn write_pages(world: &World, command: &Command, folder: &Path) -> std::io::Result<usize> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    world.disk().write(&folder.join(page.get_filename()), &String::from_utf8_lossy(&text))?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let below = shown.into_iter().map(|command| write_pages(world, command, folder)).sum::<std::io::Result<usize>>()?;
    Ok(below + 1)
}

fn install(world: &World, file: &Path, content: &str) -> Result<(), Diagnostic> {
    world.disk().write(file, content).map_err(|error| {
        Diagnostic::error("usage/completions", format!("cannot write {}: {error}", file.display()))
            .help("without --install, the script is printed: write it where your shell looks for completions")
    })
}

/// Returns a path in the user's home as `~/…`.
fn shown(world: &World, path: &Path) -> String {
    let home = world.var("HOME").map(PathBuf::from);
    let below = home.as_deref().and_then(|home| path.strip_prefix(home).ok());
    below.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display()))
}

fn no_home() -> Diagnostic {
    Diagnostic::error("usage/home", "it is unknown where your files are: $HOME is not set")
        .help("set HOME, or leave --install out")
}

fn no_place() -> Diagnostic {
    Diagnostic::error("usage/completions", "PowerShell has no directory for completions")
        .help("add the output of `forkhestra completions powershell` to the file that $PROFILE names")
}

fn no_verb(name: &str, verbs: &[&str]) -> Diagnostic {
    let found = Diagnostic::error("usage/man", format!("there is no command `{name}`"));
    if verbs.is_empty() { found } else { found.help(format!("the commands are {}", verbs.join(", "))) }
}

fn no_folder(folder: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("usage/man", format!("cannot write the manual pages into {}: {error}", folder.display()))
        .help("name a directory in which files can be created")
}
