// The strategies: pure functions that select lines of an output, tested without WebAssembly.

/** Omits lines that begin with one of the given words. Lines count from 0. */
export const leaveOut = {
  name: "leave_out",
  description: "Leaves out lines that begin with one of the given words, and says how many there were.",
  options: {
    type: "object",
    required: ["begins"],
    additionalProperties: false,
    properties: {
      begins: { type: "array", items: { type: "string", minLength: 1 }, minItems: 1, description: "The words." },
    },
  },

  /** Fails with one sentence if the options are invalid. */
  create({ begins, ...others }) {
    if (Object.keys(others).length) throw new Error(`there is no option \`${Object.keys(others)[0]}\``);
    if (!Array.isArray(begins) || !begins.length || !begins.every((word) => typeof word === "string" && word)) {
      throw new Error("`begins` is a list of words");
    }
    return ({ text }) => {
      const lines = text.split("\n");
      if (lines.at(-1) === "") lines.pop();
      const pieces = [];
      let nLeftOut = 0;
      lines.forEach((line, first) => {
        const last = pieces.at(-1);
        if (begins.some((word) => line.startsWith(word))) nLeftOut += 1;
        else if (last && last.first + last.count === first) last.count += 1;
        else pieces.push({ first, count: 1 });
      });
      // The strategy is not meant for an output without such lines: the host shows it unchanged.
      return { pieces, notes: [`${nLeftOut} ${nLeftOut === 1 ? "line" : "lines"} omitted`], confidence: nLeftOut ? "full" : "fallback" };
    };
  },
};

export const table = [leaveOut];
