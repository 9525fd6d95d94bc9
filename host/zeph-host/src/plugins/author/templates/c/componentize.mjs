// `node componentize.mjs MODULE COMPONENT`: makes a component of a module. It adds the contract, and the adapter between the
// WASI that the C library speaks and the one that components speak.

import { readFile, writeFile } from "node:fs/promises";
import { componentEmbed, componentNew, preview1AdapterReactorPath } from "@bytecodealliance/jco";

const [, , source, target] = process.argv;
const embedded = await componentEmbed({
  binary: await readFile(source),
  witSource: await readFile("wit/plugin.wit", "utf8"),
  world: "tool-plugin",
});
const adapter = await readFile(preview1AdapterReactorPath());
await writeFile(target, await componentNew(embedded, [["wasi_snapshot_preview1", adapter]]));
