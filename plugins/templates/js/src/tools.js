// The tools: each has a description for the model and a function. This file does not depend on WebAssembly, so that
// `npm test` can run it in Node; the second argument of a function provides access to the host.

/** The error of a failed call: a category from wit/ and one plain sentence for the model. */
export class ToolError extends Error {
  constructor(category, message) {
    super(message);
    this.category = category;
  }
}

/** Changes nothing, is idempotent, and stays within the granted directories. Other tools need the user's approval. */
const READ_ONLY = { readOnly: true, destructive: false, idempotent: true, openWorld: false };

function words(text) {
  return text.split(/\s+/u).filter((word) => word !== "").length;
}

function counted(number) {
  return `${number} ${number === 1 ? "word" : "words"}`;
}

function globs(text) {
  return text.split(" ").filter((glob) => glob !== "");
}

export const tools = [
  {
    name: "TOOL_PREFIX_words",
    description: "Counts the words of a text. Use it to judge whether a text fits.",
    kind: "other",
    annotations: READ_ONLY,
    parameters: {
      type: "object",
      properties: { text: { type: "string", description: "The text to count." } },
      required: ["text"],
      additionalProperties: false,
    },
    run: ({ text }) => counted(words(text)),
  },
  {
    name: "TOOL_PREFIX_file",
    description: "Counts the words of a text file.",
    kind: "read",
    annotations: READ_ONLY,
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "The file to count, as an absolute path." } },
      required: ["path"],
      additionalProperties: false,
    },
    run: ({ path }, host) => {
      host.progress(`reading ${path}`);
      return counted(words(host.readFile(path)));
    },
  },
  {
    name: "TOOL_PREFIX_tree",
    description: "Counts the words of all text files below a directory.",
    kind: "search",
    annotations: READ_ONLY,
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "The directory whose files to count, as an absolute path." } },
      required: ["path"],
      additionalProperties: false,
    },
    run: ({ path }, host) => {
      const { only = "*.md *.txt" } = host.settings();
      const skip = host.variable("WORDS_SKIP") ?? "";
      const files = host.walk(path, globs(only), globs(skip));
      const counts = files.map((file) => words(host.readFile(`${path}/${file}`)));
      return counted(counts.reduce((sum, count) => sum + count, 0));
    },
  },
];
