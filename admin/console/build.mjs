// Bundles the console: every file but the page is named by a hash of its content, and nothing is written that is the same
// as before, so that cargo builds the program again only when something changed.
import { build, context } from "esbuild";
import { mkdir, readFile, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { basename } from "node:path";

const options = {
  entryPoints: { app: "src/main.tsx", theme: "src/theme.ts", style: "src/style/index.css", icon: "src/style/icon.svg" },
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  outdir: "dist",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".svg": "copy" },
  publicPath: "/console/assets/",
  metafile: true,
  write: false,
  logLevel: "warning",
  plugins: [{ name: "write", setup: (build) => build.onEnd(write) }],
};

async function write(result) {
  if (result.errors.length > 0) return;
  const files = new Map(result.outputFiles.map((file) => [basename(file.path), file.contents]));
  files.set("index.html", Buffer.from(await page(result.metafile.outputs)));
  await mkdir("dist", { recursive: true });
  for (const name of await readdir("dist")) {
    if (name !== ".gitignore" && !files.has(name)) await rm(`dist/${name}`);
  }
  for (const [name, contents] of files) {
    const before = await readFile(`dist/${name}`).catch(() => undefined);
    if (!before || Buffer.compare(before, contents) !== 0) await writeFile(`dist/${name}`, contents);
  }
  // `build` compares its time with those of the sources.
  const now = new Date();
  await utimes("dist/index.html", now, now);
}

/// The page, with the names of this build. What the first script imports is named too, so that it is loaded at once.
async function page(outputs) {
  const named = (entry) => Object.keys(outputs).find((path) => outputs[path].entryPoint === entry);
  const app = named("src/main.tsx");
  const imported = outputs[app].imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => path);
  const address = (path) => `/console/assets/${basename(path)}`;
  return (await readFile("index.html", "utf8"))
    .replace("{theme}", address(named("src/theme.ts")))
    .replace("{style}", address(named("src/style/index.css")))
    .replace("{app}", address(app))
    .replace("{icon}", address(named("src/style/icon.svg")))
    .replace("{imports}", imported.map((path) => `<link rel="modulepreload" href="${address(path)}">`).join("\n"));
}

if (process.argv.includes("--watch")) await (await context(options)).watch();
else await build(options);
