#!/usr/bin/env node
// Starts the program of this platform's package. `install.js` normally replaces this file by the program itself; with
// `--ignore-scripts` it stays, and costs the start of node each time.
const { spawnSync } = require("node:child_process");
const { constants } = require("node:os");
const { program } = require("./program.js");

// The program handles the terminal's signals itself, and ends with the exit code that says so.
for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP"]) process.on(name, () => {});
const { status, signal, error } = spawnSync(program(), process.argv.slice(2), { stdio: "inherit", argv0: "forkhestra" });
if (error) {
  console.error(`forkhestra: cannot start ${program()}: ${error.message}`);
  process.exit(1);
}
process.exit(status ?? 128 + (constants.signals[signal] ?? 0));
