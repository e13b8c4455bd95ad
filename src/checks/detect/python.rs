//! Python projects.

use super::{Commands, Look, Stack};
use std::path::Path;

pub(super) fn python(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let mains = ["app.py", "main.py", "manage.py"];
    let declared = look.has_any(&["pyproject.toml", "setup.py", "setup.cfg", "Pipfile"]);
    // A requirements file alone may be only for the documentation.
    let is_code = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "py");
    if !declared && look.find(&is_code).is_none() {
        return None;
    }
    let of_other = look.has_any(&["Cargo.toml", "go.mod", "package.json", "pom.xml", "CMakeLists.txt"]);
    if !declared && of_other && !look.has_any(&mains) {
        return None;
    }
    // Debian has no `python`, and a virtual environment has its own.
    let venv = [".venv", "venv"].into_iter().find(|folder| look.has(&format!("{folder}/bin/python")));
    let python = match () {
        () if look.has("uv.lock") => "uv run python".to_string(),
        () if look.has("poetry.lock") => "poetry run python".into(),
        () if look.has("Pipfile") => "pipenv run python".into(),
        () => venv.map_or_else(|| "python3".into(), |folder| format!("{folder}/bin/python")),
    };
    let before = python.strip_suffix("python").filter(|_| !python.contains('/')).unwrap_or_default();
    let before =
        venv.filter(|_| before.is_empty()).map_or_else(|| before.to_string(), |folder| format!("{folder}/bin/"));
    let configured = look.content("pyproject.toml").unwrap_or_default();
    let says = |name: &str, word: &str| look.content(name).is_some_and(|text| text.contains(word));
    let named = ["setup.cfg", "tox.ini", "requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "Pipfile"];
    let of_pytest = look.has_any(&["pytest.ini", "conftest.py"])
        || configured.contains("pytest")
        || named.iter().any(|name| says(name, "pytest"));
    let is_test = |name: &str| is_code(name) && (name.starts_with("test_") || name.ends_with("_test.py"));
    let found = look.find(&is_test);
    let has_tests = of_pytest && look.has_any(&["tests", "test", "pytest.ini", "conftest.py"])
        || configured.contains("[tool.pytest");
    let of_unittest = || found.as_ref().is_some_and(|file| says(file, "unittest") && !says(file, "pytest"));
    let test = match () {
        () if says("manage.py", "django") && !of_pytest => Some(format!("{python} manage.py test")),
        () if !of_pytest && of_unittest() => Some(format!("{python} -m unittest discover")),
        // Exit code 5: no tests were collected.
        () if has_tests || found.is_some() || look.has("tests") => {
            Some(format!("{python} -m pytest -q || [ $? -eq 5 ]"))
        }
        () => None,
    };
    let syntax = Some(format!("{python} -m compileall -q -x '(^|/)(\\.|node_modules|venv|site-packages)' ."));
    let lint = match () {
        () if look.has("ruff.toml") || configured.contains("[tool.ruff") => Some(format!("{before}ruff check .")),
        () if look.has(".flake8") => Some(format!("{before}flake8")),
        () => None,
    };
    let smoke = mains.iter().find(|file| look.has(file)).map(|file| format!("{python} {file}"));
    let diagnose = test.clone().or(syntax.clone());
    Some((Stack::Python, Commands { build: syntax.clone(), test, lint, syntax, smoke, diagnose }))
}
