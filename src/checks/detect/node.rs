//! Projects with a package.json, and Deno projects.

use super::{Commands, Look, Stack};
use serde_json::Value;

pub(super) fn node(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let content = look.content("package.json")?;
    let package: Value = serde_json::from_str(content.trim_start_matches('\u{feff}')).ok()?;
    let named = package["packageManager"].as_str().and_then(|named| named.split('@').next()).unwrap_or_default();
    let (manager, run) = match named {
        "pnpm" => ("pnpm", "pnpm run"),
        "yarn" => ("yarn", "yarn"),
        "bun" => ("bun", "bun run"),
        "npm" => ("npm", "npm run"),
        _ if look.has_any(&["pnpm-lock.yaml", "pnpm-workspace.yaml"]) => ("pnpm", "pnpm run"),
        _ if look.has("yarn.lock") => ("yarn", "yarn"),
        _ if look.has_any(&["bun.lockb", "bun.lock"]) => ("bun", "bun run"),
        _ => ("npm", "npm run"),
    };
    let is_workspace =
        package["workspaces"].is_array() || package["workspaces"].is_object() || look.has("pnpm-workspace.yaml");
    let script = |name: &str| {
        let text = package["scripts"][name].as_str()?;
        // The placeholder that `npm init` writes is not a test.
        (!text.trim().is_empty() && !text.contains("no test specified")).then(|| match (name, manager) {
            ("test", "npm" | "yarn" | "pnpm") => format!("{manager} test"),
            _ => format!("{run} {name}"),
        })
    };
    let depends = |name: &str| ["dependencies", "devDependencies"].iter().any(|of| package[*of][name].is_string());
    let vite = depends("vite") || look.has_any(&["vite.config.js", "vite.config.ts", "vite.config.mjs"]);
    // A workspace without a script of its own runs those of its packages.
    let of_all = |name: &str| {
        let line = match () {
            () if look.has("turbo.json") => format!("npx turbo run {name}"),
            () if look.has("nx.json") => format!("npx nx run-many -t {name}"),
            () if manager == "pnpm" => format!("pnpm -r --if-present run {name}"),
            () if manager == "npm" => format!("npm run {name} --workspaces --if-present"),
            () if manager == "yarn" => format!("yarn workspaces run {name}"),
            () => return None,
        };
        (is_workspace || look.has_any(&["turbo.json", "nx.json"])).then_some(line)
    };
    let either = |name: &str| script(name).or_else(|| of_all(name));
    let (build, test, lint) = (either("build"), either("test"), script("lint"));
    let types = || look.has("tsconfig.json").then(|| "npx tsc --noEmit".to_string());
    let commands = Commands {
        diagnose: build.clone().or(test.clone()),
        syntax: lint.clone().or_else(types),
        smoke: script("dev").or(script("start")),
        build,
        test,
        lint,
    };
    Some((if vite { Stack::ViteFrontend } else { Stack::Node }, commands))
}

pub(super) fn deno(look: &Look<'_>) -> Option<(Stack, Commands)> {
    let config = ["deno.json", "deno.jsonc"].iter().find_map(|name| look.content(name))?;
    let task = |name: &str| config.contains(&format!("\"{name}\"")).then(|| format!("deno task {name}"));
    let test = task("test").or_else(|| Some("deno test".into()));
    let commands = Commands {
        diagnose: test.clone(),
        build: task("build"),
        test,
        lint: task("lint").or_else(|| Some("deno lint".into())),
        syntax: Some("deno check .".into()),
        smoke: task("dev").or(task("start")),
    };
    Some((Stack::Deno, commands))
}
