// `npm test`: tests the strategies without WebAssembly, and the built component if there is one.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { leaveOut } from "../src/leave_out.js";

const input = (text) => ({ command: "make", exitCode: 0, text });

test("omits lines that begin with a word", () => {
  const apply = leaveOut.create({ begins: ["CC "] });
  const { pieces, notes, confidence } = apply(input("CC a.o\nwarning: x\nwarning: y\nCC b.o\ndone\n"));
  assert.deepEqual(pieces, [{ first: 1, count: 2 }, { first: 4, count: 1 }]);
  assert.deepEqual(notes, ["2 lines omitted"]);
  assert.equal(confidence, "full");
});

test("does not know an output without such lines", () => {
  assert.equal(leaveOut.create({ begins: ["CC "] })(input("done\n")).confidence, "fallback");
});

test("says what is wrong with its options", () => {
  assert.throws(() => leaveOut.create({}), { message: "`begins` is a list of words" });
  assert.throws(() => leaveOut.create({ begins: ["a"], colour: 1 }), { message: "there is no option `colour`" });
});

const built = "dist/PLUGIN_NAME.wasm";
test("the build is a component", { skip: !existsSync(built) && "`npm run build` first" }, () => {
  assert.equal(readFileSync(built).subarray(0, 8).toString("hex"), "0061736d0d000100");
});
