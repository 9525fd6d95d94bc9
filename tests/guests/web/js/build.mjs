// Builds web.wasm from app.js: `fetch` is the one of the JavaScript runtime, over `wasi:http`.

import { writeFile } from "node:fs/promises";
import { componentize } from "@bytecodealliance/componentize-js";

const { component } = await componentize({ sourcePath: "app.js", witPath: "wit", worldName: "web" });
await writeFile("web.wasm", component);
