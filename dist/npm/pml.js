#!/usr/bin/env node
// Runs the binary of this platform. Clients are never registered with this file: `pml init` writes the path of the
// binary itself, because a node process in front of it costs 40 MB and 100 ms.
"use strict";

const { spawn } = require("node:child_process");

function library() {
  if (process.platform !== "linux") return "";
  const report = process.report?.getReport();
  return report?.header?.glibcVersionRuntime ? "" : "-musl";
}

function binary() {
  const name = `pml-mcp-${process.platform}-${process.arch}${library()}`;
  try {
    return require.resolve(`${name}/bin/pml`);
  } catch {
    console.error(`error: the package \`${name}\` is not installed

hint: pml-mcp brings it as an optional dependency; install again without --omit=optional. Where there is none for
this machine: cargo install --locked pml-mcp`);
    process.exit(2);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
// A signal of the terminal reaches both; one that was sent to this process alone is handed on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`error: pml cannot be started: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
