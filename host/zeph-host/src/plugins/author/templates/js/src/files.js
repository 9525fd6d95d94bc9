// Reads a file of a granted directory. QuickJS has no `fs`; this is what stands under it everywhere, wasi:filesystem.

import preopens from "wasi:filesystem/preopens@0.2.0";
import { ToolError } from "./tools.js";

/** Most bytes of one read; the host gives at most this many. */
const CHUNK = 65536;

const MESSAGES = {
  "no-entry": ["permanent-failure", "does not exist"],
  "is-directory": ["invalid-parameters", "is a directory"],
  "not-permitted": ["policy-blocked", "may not be read"],
  access: ["policy-blocked", "may not be read"],
};

/** The text of the file at `path`, an absolute path. */
export function readFile(path) {
  for (const [directory, root] of preopens.getDirectories()) {
    const base = root.endsWith("/") ? root : `${root}/`;
    if (path.startsWith(base)) return read(directory, path.slice(base.length), path);
  }
  throw new ToolError("policy-blocked", `\`${path}\` is outside the granted directories`);
}

function read(directory, relative, path) {
  const text = new TextDecoder();
  let content = "";
  try {
    const file = directory.openAt({ symlinkFollow: true }, relative, {}, { read: true });
    for (let offset = 0, end = false; !end; ) {
      let bytes;
      [bytes, end] = file.read(CHUNK, offset);
      content += text.decode(Uint8Array.from(bytes), { stream: !end });
      offset += bytes.length;
    }
  } catch (code) {
    const [category, problem] = MESSAGES[code] ?? ["permanent-failure", `cannot be read: ${code}`];
    throw new ToolError(category, `\`${path}\` ${problem}`);
  }
  return content;
}
