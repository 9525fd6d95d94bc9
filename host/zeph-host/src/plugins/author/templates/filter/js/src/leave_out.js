// The strategies: what is left of an output. Pure functions, tested without WebAssembly.

/** Leaves out lines that begin with one of some words. Lines count from 0. */
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

  /** Fails with one sentence when the options are wrong. */
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
      // An output without such lines is not what this strategy is for: the host shows it as it is.
      return { pieces, notes: [`${nLeftOut} lines omitted`], confidence: nLeftOut ? "full" : "fallback" };
    };
  },
};

export const table = [leaveOut];
