// `npm run build`: builds dist/PLUGIN_NAME.wasm from src/ and embeds the metadata of package.json.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { componentize } from "componentize-qjs";

const about = JSON.parse(await readFile("package.json", "utf8"));

const { component } = await componentize({
  witPath: "wit",
  world: "filter-plugin",
  jsSource: await readFile("src/plugin.js", "utf8"),
  jsPath: "src/plugin.js",
  moduleRoot: ".",
  sync: true,
});

// A custom section: the byte 0, the length of the rest, the length of the name, the name, the content.
function section(name, content) {
  const title = Buffer.from(name);
  const body = Buffer.concat([leb128(title.length), title, Buffer.from(content)]);
  return Buffer.concat([Buffer.of(0), leb128(body.length), body]);
}

// An unsigned LEB128 number.
function leb128(number) {
  const bytes = [];
  for (; number > 127; number >>>= 7) bytes.push((number & 127) | 128);
  return Buffer.from([...bytes, number]);
}

const sections = [
  section("version", about.version),
  section("description", about.description),
  section("licenses", about.license),
];
await mkdir("dist", { recursive: true });
await writeFile("dist/PLUGIN_NAME.wasm", Buffer.concat([component, ...sections]));
console.log("dist/PLUGIN_NAME.wasm");
