// `npm test`: tests the tools without WebAssembly, and the built component if there is one.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { test } from "node:test";
import { ToolError, tools } from "../src/tools.js";

const host = {
  readFile: (path) => readFileSync(path, "utf8"),
  progress() {},
  log() {},
  settings: () => ({ only: "*.md" }),
  variable: () => undefined,
  walk: (root, only) => readdirSync(root).filter((name) => only.includes(`*${extname(name)}`)),
};

function call(name, args) {
  return tools.find((tool) => tool.name === name).run(args, host);
}

test("counts a text", () => {
  assert.equal(call("TOOL_PREFIX_words", { text: "one two  three\n" }), "3 words");
});

test("counts a file", () => {
  const path = join(mkdtempSync(join(tmpdir(), "PLUGIN_NAME-")), "text.txt");
  writeFileSync(path, "one two");
  assert.equal(call("TOOL_PREFIX_file", { path }), "2 words");
});

test("counts a tree", () => {
  const path = mkdtempSync(join(tmpdir(), "PLUGIN_NAME-"));
  writeFileSync(join(path, "a.md"), "one two");
  writeFileSync(join(path, "b.txt"), "three");
  assert.equal(call("TOOL_PREFIX_tree", { path }), "2 words");
});

test("passes on what is wrong", () => {
  const refuse = () => {
    throw new ToolError("policy-blocked", "no");
  };
  const tool = tools.find((tool) => tool.name === "TOOL_PREFIX_file");
  assert.throws(() => tool.run({ path: "/x" }, { ...host, readFile: refuse }), { category: "policy-blocked" });
});

const built = "dist/PLUGIN_NAME.wasm";
test("the build is a component", { skip: !existsSync(built) && "`npm run build` first" }, () => {
  assert.equal(readFileSync(built).subarray(0, 8).toString("hex"), "0061736d0d000100");
});
