#!/usr/bin/env node
// Becomes the program of the package for this machine. npm installs only the one that fits.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `zeph-host-${process.platform}-${process.arch}`;

let program;
try {
  program = require.resolve(`${name}/bin/zeph-host`);
} catch {
  console.error(
    `error: the package \`${name}\` is not installed\n\n` +
      "hint: zeph-host is packaged for linux-x64. There, install again without `--omit=optional`; elsewhere, build it from source",
  );
  process.exit(1);
}

const args = process.argv.slice(2);
if (process.execve) {
  try {
    process.execve(program, [program, ...args], process.env);
  } catch {
    // Not on this system: the program becomes a child.
  }
}

const child = spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: cannot start \`${program}\`: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + constants.signals[signal]);
});
