#!/usr/bin/env node
// Starts the program of this platform's package. `install.js` normally replaces this file by the program itself; with
// `--ignore-scripts` it stays, and costs the start of node each time.
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { program } = require("./program.js");

const fail = (error) => {
  console.error(`forkhestra: ${error.message}`);
  process.exit(1);
};

const start = () => {
  const child = spawn(program(), process.argv.slice(2), { stdio: "inherit", argv0: "forkhestra" });
  child.on("error", fail);
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
  // A terminal sends these to the program, too.
  for (const name of ["SIGINT", "SIGQUIT"]) process.on(name, () => {});
  for (const name of ["SIGTERM", "SIGHUP"]) process.on(name, () => child.kill(name));
};

try {
  start();
} catch (error) {
  fail(error);
}
