// What the screens show in tests and pictures: two accounts of a provider, a fallback, keys, and calls of all sorts through
// the gateway to the mock provider. Faults ride in a header that the providers' accounts forward.
const { GATEWAY_ADMIN_KEY, GATEWAY_BASE_URL, GATEWAY_WORKSPACE_KEY, MOCK_PROVIDER_URL } = process.env;

/** A request to the gateway as an application makes it. */
export async function ask(method, path, body, headers = {}) {
  const answer = await fetch(GATEWAY_BASE_URL + path, {
    method,
    headers: { "content-type": "application/json", "x-gateway-api-key": GATEWAY_ADMIN_KEY, ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, json: text.startsWith("{") ? JSON.parse(text) : text };
}

export async function made(path, body) {
  const answer = await ask("POST", path, body);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.json)}`);
  return answer.json;
}

const as = (key) => ({ "x-gateway-api-key": key });
const chat = (model, text, more = {}) => ({ model, messages: [{ role: "user", content: text }], ...more });

/** Accounts, a config and keys. `suffix` tells one seeding from another in the same stack. */
export async function catalogue(suffix = "") {
  const workspaces = await ask("GET", "/workspaces");
  const workspace = workspaces.json.data[0].id;
  // Nobody listens at the last one.
  for (const [name, host] of [["openai-eu", MOCK_PROVIDER_URL], ["openai-us", MOCK_PROVIDER_URL], ["openai-away", "http://127.0.0.1:1/v1"]]) {
    await made("/integrations", {
      name: name + suffix, slug: name + suffix, ai_provider_id: "openai", key: "sk-mock", workspace_id: workspace,
      default_provider_slug: name + suffix, configurations: { custom_host: host },
    });
  }
  const fallback = (name, ...providers) => made("/configs", {
    name: name + suffix, workspace_id: workspace,
    config: {
      strategy: { mode: "fallback" },
      targets: providers.map((provider) => ({ provider: `@${provider}${suffix}`, retry: { attempts: 1, on_status_codes: [503] } })),
    },
  });
  const config = await fallback("main", "openai-eu", "openai-us");
  const rescue = await fallback("rescue", "openai-away", "openai-us");
  const keys = {};
  for (const [name, more] of [
    ["checkout", { usage_limits: { credit_limit: 50, periodic_reset: "monthly" }, defaults: { config_id: config.slug } }],
    ["support-bot", { rate_limits: [{ type: "requests", unit: "rpm", value: 600 }] }],
    ["search", { rate_limits: [{ type: "requests", unit: "rpm", value: 2 }] }],
  ]) {
    keys[name] = await made("/api-keys/workspace/service", {
      name: name + suffix, workspace_id: workspace, scopes: ["completions.write", "models.list", "logs.write"], ...more,
    });
  }
  for (const { key } of Object.values(keys)) {
    await until("the proxy knows the key", async () => (await ask("GET", "/models", undefined, as(key))).status === 200);
  }
  return { workspace, config: config.slug, rescue: rescue.slug, keys, suffix };
}

/** Calls of all sorts: good ones of several models and people, streams, tools, a fallback, and failures. All are logged at the end. */
export async function calls({ keys, suffix, rescue }, count) {
  const before = await logs();
  const models = ["gpt-4o-mini", "gpt-4o", "gpt-4.1", "gpt-4.1-mini"];
  const people = ["ada", "grace", "alan"];
  const questions = ["Where is my order 4711?", "Summarise this ticket in two sentences.", "Which shoes are waterproof?", "Translate the answer to German."];
  const headers = (key, index) => ({
    ...as(key.key),
    "x-gateway-metadata": JSON.stringify({ _user: people[index % 3], feature: index % 2 ? "chat" : "summary" }),
    "x-gateway-trace-id": `checkout-${index % 12}`,
  });
  const one = async (index) => {
    const [model, text] = [models[(index * 7) % 4], questions[index % 4]];
    const plain = `@openai-${index % 3 ? "eu" : "us"}${suffix}/${model}`;
    if (index % 9 === 4) {
      // Both accounts of the key's config fail.
      return ask("POST", "/chat/completions", chat("gpt-4o", `{"mock":{"status":503}}`), headers(keys.checkout, index));
    }
    if (index % 9 === 1) {
      // The first account cannot be reached, and the second rescues the call.
      return ask("POST", "/chat/completions", chat("gpt-4o", text), { ...headers(keys.checkout, index), "x-gateway-config": rescue });
    }
    if (index % 11 === 5) return ask("POST", "/chat/completions", chat(`@openai-eu${suffix}/fault/status=429,retry_after=2`, text), headers(keys["support-bot"], index));
    if (index % 23 === 7) return ask("POST", "/chat/completions", chat(`@openai-eu${suffix}/fault/status=500`, text), headers(keys["support-bot"], index));
    if (index % 17 === 6) return ask("POST", "/chat/completions", chat(plain, text), headers(keys.search, index));
    if (index % 13 === 8) return ask("POST", "/embeddings", { model: `@openai-us${suffix}/text-embedding-3-small`, input: text }, headers(keys["support-bot"], index));
    const stream = index % 5 === 0 ? { stream: true } : {};
    const tools = index % 7 === 0 ? { tools: [{ type: "function", function: { name: "find_order", parameters: { type: "object", properties: { id: { type: "string" } } } } }], tool_choice: "required" } : {};
    return ask("POST", "/chat/completions", chat(plain, text, { ...stream, ...tools }), headers(keys["support-bot"], index));
  };
  for (let index = 0; index < count; index += 8) {
    await Promise.all(Array.from({ length: Math.min(8, count - index) }, (_, offset) => one(index + offset)));
  }
  await until(`${count} more logs`, async () => (await logs()) >= before + count);
}

/** Somebody who accepted an invitation; `seats` are workspaces with a role in each. */
export async function person(email, seats, role = "member") {
  const { invite_link } = await made("/admin/users/invites", { email, role, workspaces: seats });
  return made("/admin/users/invites/accept", { token: invite_link.split("token=")[1], first_name: email.split("@")[0] });
}

/** A workspace of its own. */
export const workspaceNamed = async (name, more = {}) => made("/workspaces", { name, ...more });

/** Waits until a condition holds, and says what it waited for if it never does. */
export async function until(what, condition, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** How many logs there are. */
const logs = async () => (await ask("GET", "/logs?page_size=1")).json.total;

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const seeded = await catalogue(process.argv[2] ?? "");
  await calls(seeded, Number(process.argv[3] ?? 300));
  console.log(JSON.stringify(Object.fromEntries(Object.entries(seeded.keys).map(([name, { id }]) => [name, id]))), GATEWAY_WORKSPACE_KEY ? "" : "no workspace key");
}
