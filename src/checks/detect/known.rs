//! Kinds of projects whose commands follow from the files that are present, as data.

use super::Stack;

/// The files that identify a kind of project, and its commands. A command is empty if there is none.
pub(super) struct Known {
    pub(super) stack: Stack,
    /// Any of these files identifies it; `*.sln` matches every name with that ending.
    pub(super) files: &'static [&'static str],
    pub(super) build: &'static str,
    pub(super) test: &'static str,
    pub(super) lint: &'static str,
}

/// These kinds are tried in this order, after Node, Python, Go, Rust and the JVM. Make and just come last.
pub(super) const KNOWN: [Known; 10] = [
    Known {
        stack: Stack::Dotnet,
        files: &["*.sln", "*.slnx", "*.csproj", "*.fsproj"],
        build: "dotnet build",
        test: "dotnet test",
        lint: "",
    },
    Known { stack: Stack::Swift, files: &["Package.swift"], build: "swift build", test: "swift test", lint: "" },
    Known {
        stack: Stack::Mix,
        files: &["mix.exs"],
        build: "mix compile",
        test: "mix test",
        lint: "mix format --check-formatted",
    },
    Known { stack: Stack::Zig, files: &["build.zig"], build: "zig build", test: "zig build test", lint: "" },
    Known { stack: Stack::Dune, files: &["dune-project"], build: "dune build", test: "dune test", lint: "" },
    Known { stack: Stack::Stack, files: &["stack.yaml"], build: "stack build", test: "stack test", lint: "" },
    Known {
        stack: Stack::Cabal,
        files: &["cabal.project", "*.cabal"],
        build: "cabal build all",
        test: "cabal test all",
        lint: "",
    },
    Known {
        stack: Stack::Cmake,
        files: &["CMakeLists.txt"],
        build: "cmake -S . -B build && cmake --build build",
        test: "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure",
        lint: "",
    },
    Known {
        stack: Stack::Meson,
        files: &["meson.build"],
        build: "{ [ -d build ] || meson setup build; } && meson compile -C build",
        test: "{ [ -d build ] || meson setup build; } && meson test -C build --print-errorlogs",
        lint: "",
    },
    Known { stack: Stack::Sbt, files: &["build.sbt"], build: "sbt compile", test: "sbt test", lint: "" },
];
