// Connects the strategies to the WIT interface. A new strategy needs no change here.

import { table } from "./leave_out.js";

class Strategy {
  #apply;

  static create(name, options) {
    try {
      const found = table.find((strategy) => strategy.name === name);
      if (!found) throw new Error(`there is no strategy \`${name}\``);
      const made = new Strategy();
      made.#apply = found.create(JSON.parse(options || "{}"));
      return made;
    } catch (error) {
      // An exception is the error of `result<_, string>`.
      throw String(error.message ?? error);
    }
  }

  apply(input) {
    const { pieces, notes, confidence } = this.#apply(input);
    const kept = pieces.map((lines) => ({ tag: "keep", val: lines }));
    const told = notes.map((note) => ({ tag: "note", val: note }));
    return { pieces: [...kept, ...told], confidence, told: [] };
  }
}

export const strategies = {
  Strategy,

  listStrategies() {
    return table.map(({ name, description, options }) => ({ name, description, options: JSON.stringify(options) }));
  },
};
