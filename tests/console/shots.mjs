// The pictures of docs/console.md: `make console-shots`. The same calls as in the tests, in a window of one size.
import { mkdir } from "node:fs/promises";
import { launch, ORIGIN, signIn, visit } from "./console.mjs";
import { ask, calls, catalogue, until } from "./seed.mjs";

const FOLDER = new URL("../../docs/console/", import.meta.url).pathname;
const PERIOD = "from=-15m";

await mkdir(FOLDER, { recursive: true });
const seeded = await catalogue();
// Some minutes of calls, so that there is a course of things to see.
for (let round = 0; round < 4; round += 1) await calls(seeded, 45);
const rescued = await until("a rescued call", async () => {
  const { json } = await ask("GET", "/logs?page_size=50&status_code=200&ai_model=gpt-4o");
  return json.data.find(({ last_used_option_index }) => last_used_option_index === "config.targets[1]")?.id;
});
await until("its texts", async () => (await ask("GET", `/logs/${rescued}`)).json.response.body);

// A config with a difference between its versions.
const target = (provider, weight) => ({ provider: `@${provider}`, weight, retry: { attempts: 2, on_status_codes: [429, 503] } });
const { json: config } = await ask("GET", `/configs/${seeded.config}`);
await ask("PUT", `/configs/${config.id}`, { config: { strategy: { mode: "fallback" }, targets: [{ strategy: { mode: "loadbalance" }, targets: [target("openai-eu", 3), target("openai-us", 1)] }, { provider: "@openai-away" }] } });

const browser = await launch();
for (const [theme, colorScheme] of [["light", "light"], ["dark", "dark"]]) {
  const { page, context } = await visit(browser, { colorScheme, viewport: { width: 1280, height: 800 }, timezoneId: "UTC" });
  await page.goto(`${ORIGIN}/console/login`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  if (theme === "light") await page.screenshot({ path: `${FOLDER}sign-in.png` });
  await signIn(page);
  for (const [name, path] of [["overview", `?${PERIOD}`], ["logs", `/logs?${PERIOD}`], ["log", `/logs?${PERIOD}&log=${rescued}`], ["keys", "/keys"], ["providers", `/providers?${PERIOD}`], ["analytics", `/analytics?${PERIOD}`], ["routing", `/routing/${config.id}`]]) {
    // In the dark a picture is enough.
    if (theme === "dark" && name !== "overview") continue;
    await page.goto(`${ORIGIN}/console${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await until(`${name} is loaded`, async () => (await page.locator('.lines, [aria-busy="true"]').count()) === 0);
    await page.waitForLoadState("networkidle");
    await page.screenshot({ path: `${FOLDER}${name}${theme === "dark" ? "-dark" : ""}.png` });
  }
  await context.close();
}
await browser.close();
