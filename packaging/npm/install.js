// Replaces the launcher by the program itself, so that no start of it has to start node first. Only npm starts a bin
// file directly; other package managers start it with node.
const fs = require("node:fs");
const path = require("node:path");
const { program } = require("./program.js");

const launcher = path.join(__dirname, "launcher.js");
const fresh = `${launcher}.new`;

const replace = () => {
  fs.rmSync(fresh, { force: true });
  try {
    fs.linkSync(program(), fresh);
  } catch {
    fs.copyFileSync(program(), fresh);
  }
  fs.chmodSync(fresh, 0o755);
  fs.renameSync(fresh, launcher);
  // A second run renames a file to itself, which leaves both names.
  fs.rmSync(fresh, { force: true });
};

if ((process.env.npm_config_user_agent ?? "").startsWith("npm/")) {
  try {
    replace();
  } catch (error) {
    // The launcher works, too, or says what is missing.
    console.error(`forkhestra: the launcher stays: ${error.message}`);
  }
}
