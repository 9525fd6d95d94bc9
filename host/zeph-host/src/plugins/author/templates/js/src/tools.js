// The tools: what a model is told about each, and the function that runs it. Nothing here knows WebAssembly, so that
// `npm test` runs it in Node; what a tool needs of the host comes as the second argument.

/** What a failed call says: a category of the contract (wit/) and one plain sentence for the model. */
export class ToolError extends Error {
  constructor(category, message) {
    super(message);
    this.category = category;
  }
}

/** Changes nothing, twice is once, stays inside. A tool without these promises asks the user before it runs. */
const READ_ONLY = { readOnly: true, destructive: false, idempotent: true, openWorld: false };

function words(text) {
  return text.split(/\s+/u).filter((word) => word !== "").length;
}

export const tools = [
  {
    name: "count_words",
    description: "Counts the words of a text. Use it to judge whether a text fits.",
    kind: "other",
    annotations: READ_ONLY,
    parameters: {
      type: "object",
      properties: { text: { type: "string", description: "The text to count." } },
      required: ["text"],
      additionalProperties: false,
    },
    run: ({ text }) => `${words(text)} words`,
  },
  {
    name: "count_file",
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
      return `${words(host.readFile(path))} words`;
    },
  },
];
