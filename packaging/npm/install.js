// Replaces the launcher by the program itself, so that no start of it has to start node first.
const fs = require("node:fs");
const path = require("node:path");
const { program } = require("./program.js");

const launcher = path.join(__dirname, "launcher.js");
const fresh = `${launcher}.new`;
try {
  fs.rmSync(fresh, { force: true });
  try {
    fs.linkSync(program(), fresh);
  } catch {
    fs.copyFileSync(program(), fresh);
  }
  fs.chmodSync(fresh, 0o755);
  fs.renameSync(fresh, launcher);
} catch (error) {
  // The launcher works, too.
  console.error(`forkhestra: the launcher stays: ${error.message}`);
}
