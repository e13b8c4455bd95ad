//! The time to load and render a template with very many skills: `benches/run.sh --bench skills`.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a bench, not the program")]

use forkhestra::prompt::{TemplateDirs, Value, load, render_template};
use forkhestra::source::{Files, Kind};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

const SKILLS: usize = 10_000;
const ROUNDS: usize = 5;

/// Files in memory, because the disk is not what is measured.
struct Memory(HashMap<PathBuf, Vec<u8>>);

impl Files for Memory {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn head(&self, path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
        self.read(path).map(|text| text[..bytes.min(text.len())].to_vec())
    }

    fn kind(&self, path: &Path) -> io::Result<Kind> {
        let file = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(Kind::File { executable: false, bytes: file.len() as u64 })
    }
}

/// Thirty levels of skills. Each skill names one of the next level, and the template names all of the first level. With
/// a cycle, the last level names the first.
fn files(circle: bool) -> Memory {
    let (levels, wide) = (30, SKILLS / 30);
    let name = |level: usize, at: usize| format!("s{level}-{at}");
    let mut files = HashMap::new();
    for level in 0..levels {
        for at in 0..wide {
            let next = match level + 1 == levels {
                true if circle && at == 0 => format!("{{{{skill:{}}}}}", name(0, 0)),
                true => "end".into(),
                false => format!("x {{{{skill:{}}}}}", name(level + 1, at)),
            };
            files.insert(PathBuf::from(format!("/t/a/skills/{}.md", name(level, at))), next.into_bytes());
        }
    }
    let lines: Vec<String> = (0..wide).map(|at| format!("{{{{skill:{}}}}}", name(0, at))).collect();
    files.insert("/t/a/prompt.md".into(), lines.join("\n").into_bytes());
    Memory(files)
}

fn main() {
    let places =
        TemplateDirs { templates: "/t".into(), shared: "/t/skills".into(), discovered: Vec::new(), root: "/".into() };
    let (good, circle) = (files(false), files(true));
    let best = |work: &dyn Fn()| {
        let times = (0..ROUNDS).map(|_| {
            let began = Instant::now();
            work();
            began.elapsed().as_secs_f64() * 1000.0
        });
        times.fold(f64::MAX, f64::min)
    };
    let floor = best(&|| {
        let bytes: usize = good.0.values().map(|text| memchr::memmem::find_iter(text, b"{{").count()).sum();
        assert!(bytes > 0);
    });
    let whole = best(&|| {
        let template = load("a", true, &places, true, &good).unwrap().unwrap();
        assert!(render_template(&template, &|_| Some(Value::default())).unwrap().text().contains("end"));
    });
    let refused = best(&|| {
        let faults = load("a", true, &places, true, &circle).unwrap_err();
        assert!(faults.iter().any(|fault| fault.message.starts_with("skill cycle: ")));
    });
    println!("{SKILLS} skills in 30 levels, best of {ROUNDS}");
    println!("  one search over their bytes  {floor:>7.2} ms");
    println!("  load and render              {whole:>7.2} ms  {:.0} x", whole / floor);
    println!("  find a circle                {refused:>7.2} ms");
}
