// Between the contract (wit/) and the tools. A new tool needs no change here.

import log from "zeph:plugin/log@0.1.0";
import progress from "zeph:plugin/progress@0.1.0";
import { readFile } from "./files.js";
import { ToolError, tools as table } from "./tools.js";

/** What a tool gets besides its arguments. */
const host = {
  readFile,
  /** Tells the user how a long call is getting on: `host.progress("reading", 3, 10)`. */
  progress: (message, completed = null, total = null) => progress.report(message, completed, total),
  /** Writes for the operator, never for the model: `host.log("info", "…")`. */
  log: (level, message) => log.write(level, message),
};

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
      // What the contract calls `result<_, tool-error>` is a throw in JavaScript.
      const category = error instanceof ToolError ? error.category : "permanent-failure";
      throw { category, message: String(error.message ?? error), httpStatus: null, retryAfterMs: null };
    }
  },
};
