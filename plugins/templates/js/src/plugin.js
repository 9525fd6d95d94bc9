// Connects the tools to the WIT interface. A new tool needs no change here.

import environment from "wasi:cli/environment@0.2.0";
import call from "zeph:plugin/context@0.1.0";
import log from "zeph:plugin/log@0.1.0";
import progress from "zeph:plugin/progress@0.1.0";
import walk from "zeph:plugin/walk@0.1.0";
import { readFile } from "./files.js";
import { ToolError, tools as table } from "./tools.js";

/** The host, as tools see it. */
const host = {
  readFile,
  /** Reports the progress of a long call to the user: `host.progress("reading", 3, 10)`. */
  progress: (message, completed = null, total = null) => progress.report(message, completed, total),
  /** Writes to the operator's log, which the model never sees: `host.log("info", "…")`. */
  log: (level, message) => log.write(level, message),
  /** The settings from `[plugins.settings.PLUGIN_NAME]` of the host's configuration. */
  settings: () => JSON.parse(call.settings()),
  /** The context of the call: `host.call.remaining()` in milliseconds, `host.call.turn()`, `.goal()`, `.caller()`, … */
  call,
  /** An environment variable; undefined unless the operator has granted it. */
  variable: (name) => environment.getEnvironment().find(([known]) => known === name)?.[1],
  walk: files,
};

/** The files below a directory, relative to it. `only` and `skip` are globs; files ignored by .gitignore are omitted. */
function files(root, only, skip) {
  const found = [];
  try {
    const options = { maxDepth: null, only, skip, standardFilters: true, sizes: false };
    const walker = walk.Walker.open(root, options);
    for (let entries; (entries = walker.next(1000)).length > 0; ) {
      found.push(...entries.filter(({ kind }) => kind === "file").map(({ path }) => path));
    }
  } catch (error) {
    throw new ToolError("policy-blocked", `\`${root}\`: ${error}`);
  }
  return found;
}

export const tools = {
  listTools() {
    return table.map(({ name, description, kind, annotations, parameters }) => ({
      name,
      title: null,
      description,
      parameters: JSON.stringify(parameters),
      output: null,
      kind,
      annotations,
    }));
  },

  callTool(name, args, context) {
    try {
      const tool = table.find((tool) => tool.name === name);
      if (!tool) throw new ToolError("permanent-failure", `this plugin has no tool \`${name}\``);
      const text = tool.run(JSON.parse(args), { ...host, context });
      return { tag: "done", val: { content: [{ tag: "text", val: text }], structured: null, locations: [] } };
    } catch (error) {
      // An exception is the error of `result<_, tool-error>`.
      const category = error instanceof ToolError ? error.category : "permanent-failure";
      throw { category, message: String(error.message ?? error), httpStatus: null, retryAfterMs: null };
    }
  },
};
