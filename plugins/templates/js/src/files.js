// Reads a file in a granted directory through wasi:filesystem, because QuickJS has no `fs`.

import preopens from "wasi:filesystem/preopens@0.2.0";
import { ToolError } from "./tools.js";

/** Bytes per read; few enough to be passed as arguments of one function. */
const CHUNK = 16384;

const MESSAGES = {
  "no-entry": ["permanent-failure", "does not exist"],
  "is-directory": ["invalid-parameters", "is a directory"],
  "not-permitted": ["policy-blocked", "may not be read"],
  access: ["policy-blocked", "may not be read"],
};

/** The text of the file at `path`, an absolute path. */
export function readFile(path) {
  const trees = preopens.getDirectories().map(([directory, root]) => [directory, root.replace(/\/*$/, "/")]);
  // One may lie inside another, with rights of its own.
  trees.sort(([, one], [, other]) => other.length - one.length);
  const tree = trees.find(([, root]) => path.startsWith(root));
  if (!tree) throw new ToolError("policy-blocked", `\`${path}\` is outside the granted directories`);
  const [directory, root] = tree;
  return read(directory, path.slice(root.length), path);
}

function read(directory, relative, path) {
  let bytes = "";
  try {
    const file = directory.openAt({ symlinkFollow: true }, relative, {}, { read: true });
    for (let end = false; !end; ) {
      let chunk;
      [chunk, end] = file.read(CHUNK, bytes.length);
      bytes += String.fromCharCode.apply(null, chunk);
    }
  } catch (code) {
    const [category, problem] = MESSAGES[code] ?? ["permanent-failure", `cannot be read: ${code}`];
    throw new ToolError(category, `\`${path}\` ${problem}`);
  }
  try {
    // Decodes UTF-8 by percent-encoding the bytes, because there is no TextDecoder.
    return decodeURIComponent(escape(bytes));
  } catch {
    throw new ToolError("permanent-failure", `\`${path}\` is not UTF-8 text`);
  }
}
