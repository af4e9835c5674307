// A server of the protocol's own SDK with everything that its conformance suite asks servers for, in both eras: sessions up to
// 2025-11-25, and none since 2026-07-28. The names and texts are those that the suite's descriptions name.

import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  toWebRequest,
} from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  isLegacyRequest,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  Server,
} from "@modelcontextprotocol/server";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const INVALID_PARAMS = -32602;

const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const said = (...content) => ({ content });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

// State that goes through the client and comes back is signed.
const secret = randomBytes(32);
const signature = (state) => createHmac("sha256", secret).update(state).digest("base64url");
const signed = (state) => `${state}.${signature(state)}`;
const opened = (sent) => {
  const [state, proof] = String(sent ?? "").split(".");
  if (proof !== signature(state)) throw new ProtocolError(INVALID_PARAMS, "requestState was altered");
  return state;
};

const object = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required });
const elicit = (message, properties) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: object(properties) },
});
const sample = (words, maxTokens) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(words) }], maxTokens },
});
const roots = { method: "roots/list", params: {} };
const needed = (inputRequests, requestState) => ({
  resultType: "input_required",
  inputRequests,
  ...(requestState && { requestState }),
});
const accepted = (ctx, name) => {
  const response = ctx.mcpReq.inputResponses?.[name];
  return response?.action === "accept" && typeof response.content === "object" ? response.content : undefined;
};
const NAME = { name: { type: "string" } };

async function asked(ctx, message, properties) {
  const schema = object(properties, []);
  const { action, content } = await ctx.mcpReq.elicitInput({ mode: "form", message, requestedSchema: schema });
  return said(text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`));
}

// By name: what it says of itself, what it takes, what it does.
const TOOLS = {
  test_simple_text: { does: "Says something", call: () => said(text("This is a simple text response for testing.")) },
  test_image_content: { does: "Shows an image", call: () => said(image) },
  test_audio_content: { does: "Plays a sound", call: () => said({ type: "audio", data: WAV, mimeType: "audio/wav" }) },
  test_embedded_resource: {
    does: "Embeds a resource",
    call: () => {
      const resource = { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." };
      return said({ type: "resource", resource });
    },
  },
  test_multiple_content_types: {
    does: "Says, shows and embeds",
    call: () => {
      const data = JSON.stringify({ test: "data", value: 123 });
      const resource = { uri: "test://mixed-content-resource", mimeType: "application/json", text: data };
      return said(text("Multiple content types test:"), image, { type: "resource", resource });
    },
  },
  test_tool_with_logging: {
    does: "Logs while it works",
    call: async (_, ctx) => {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await ctx.mcpReq.log("info", data);
        await pause();
      }
      return said(text("Tool with logging executed"));
    },
  },
  test_tool_with_progress: {
    does: "Says how far it is",
    call: async (_, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        const params = { progressToken, progress, total: 100 };
        if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params });
        await pause();
      }
      return said(text("Tool with progress executed"));
    },
  },
  test_error_handling: {
    does: "Fails",
    call: () => ({ ...said(text("This tool intentionally returns an error for testing")), isError: true }),
  },
  test_sampling: {
    does: "Asks the client's model",
    takes: object({ prompt: { type: "string" } }),
    call: async ({ prompt }, ctx) => {
      const answer = await ctx.mcpReq.requestSampling(sample(prompt, 100).params);
      return said(text(`LLM response: ${answer.content.text}`));
    },
  },
  test_elicitation: {
    does: "Asks the person",
    takes: object({ message: { type: "string" } }),
    call: async ({ message }, ctx) => {
      const wanted = {
        username: { type: "string", description: "User's response" },
        email: { type: "string", description: "User's email address" },
      };
      const { action, content } = await ctx.mcpReq.elicitInput(elicit(message, wanted).params);
      return said(text(`User response: action: ${action}, content: ${JSON.stringify(content ?? {})}`));
    },
  },
  test_elicitation_sep1034_defaults: {
    does: "Asks the person, with defaults",
    call: (_, ctx) =>
      asked(ctx, "Please look at these", {
        name: { type: "string", default: "John Doe" },
        age: { type: "integer", default: 30 },
        score: { type: "number", default: 95.5 },
        status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
        verified: { type: "boolean", default: true },
      }),
  },
  test_elicitation_sep1330_enums: {
    does: "Asks the person to choose",
    call: (_, ctx) => {
      const plain = ["option1", "option2", "option3"];
      const titled = ["First", "Second", "Third"].map((title, n) => ({ const: `value${n + 1}`, title: `${title} Option` }));
      return asked(ctx, "Please choose", {
        untitledSingle: { type: "string", enum: plain },
        titledSingle: { type: "string", oneOf: titled },
        legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
        untitledMulti: { type: "array", items: { type: "string", enum: plain } },
        titledMulti: { type: "array", items: { anyOf: titled } },
      });
    },
  },
  test_input_required_result_elicitation: {
    does: "Needs a name",
    call: (_, ctx) => {
      const name = accepted(ctx, "user_name")?.name;
      if (typeof name !== "string") return needed({ user_name: elicit("What is your name?", NAME) });
      return said(text(`Hello, ${name}!`));
    },
  },
  test_input_required_result_sampling: {
    does: "Needs a model",
    call: (_, ctx) => {
      const answer = ctx.mcpReq.inputResponses?.capital_question;
      if (!answer) return needed({ capital_question: sample("What is the capital of France?", 100) });
      return said(text(`The model said: ${answer.content?.text}`));
    },
  },
  test_input_required_result_list_roots: {
    does: "Needs the client's roots",
    call: (_, ctx) => {
      const answer = ctx.mcpReq.inputResponses?.client_roots;
      return answer ? said(text(`Roots: ${JSON.stringify(answer.roots)}`)) : needed({ client_roots: roots });
    },
  },
  test_input_required_result_request_state: {
    does: "Needs a confirmation, and remembers it by the client",
    call: (_, ctx) => {
      if (!accepted(ctx, "confirm")) return needed({ confirm: elicit("Please confirm", { ok: { type: "boolean" } }) }, signed("confirm"));
      return said(text(opened(ctx.mcpReq.requestState()) === "confirm" ? "state-ok" : "another state"));
    },
  },
  test_input_required_result_multiple_inputs: {
    does: "Needs several things",
    call: (_, ctx) => {
      const { user_name, greeting, client_roots } = ctx.mcpReq.inputResponses ?? {};
      if (user_name && greeting && client_roots && opened(ctx.mcpReq.requestState())) return said(text("Everything is there"));
      const wanted = { user_name: elicit("What is your name?", NAME), greeting: sample("Generate a greeting", 50), client_roots: roots };
      return needed(wanted, signed("several"));
    },
  },
  test_input_required_result_multi_round: {
    does: "Needs one thing after the other",
    call: (_, ctx) => {
      const state = ctx.mcpReq.requestState() ? opened(ctx.mcpReq.requestState()) : "";
      if (accepted(ctx, "step2") && state === "second") return said(text("Both steps are done"));
      const color = { color: { type: "string" } };
      if (accepted(ctx, "step1") && state === "first") {
        return needed({ step2: elicit("Step 2: What is your favorite color?", color) }, signed("second"));
      }
      return needed({ step1: elicit("Step 1: What is your name?", NAME) }, signed("first"));
    },
  },
  test_input_required_result_tampered_state: {
    does: "Minds its state",
    call: (_, ctx) => {
      if (ctx.mcpReq.requestState()) return said(text(`state ${opened(ctx.mcpReq.requestState())}`));
      return needed({ confirm: elicit("Please confirm", { ok: { type: "boolean" } }) }, signed("mind"));
    },
  },
  test_missing_capability: {
    does: "Needs a model that not every client has",
    call: (_, ctx) => {
      const can = ctx.mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
      if (!can.sampling) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
      return said(text("The client has one"));
    },
  },
  test_logging_tool: {
    does: "Logs where that is wanted",
    call: async (_, ctx) => {
      await ctx.mcpReq.log("info", "A line for the log");
      return said(text("Logged"));
    },
  },
  test_streaming_elicitation: {
    does: "Says how far it is, and then needs a name",
    call: async (_, ctx) => {
      const progressToken = ctx.mcpReq._meta?.progressToken;
      const params = { progressToken, progress: 1, total: 2 };
      if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params });
      const name = accepted(ctx, "user_name")?.name;
      return name ? said(text(`Hello, ${name}!`)) : needed({ user_name: elicit("What is your name?", NAME) });
    },
  },
  test_input_required_result_capabilities: {
    does: "Needs what the client can give",
    call: (_, ctx) => {
      const can = ctx.mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
      if (ctx.mcpReq.inputResponses) return said(text("There it is"));
      const wanted = {
        ...(can.sampling && { question: sample("What is the capital of France?", 100) }),
        ...(can.elicitation && { user_name: elicit("What is your name?", NAME) }),
      };
      return Object.keys(wanted).length > 0 ? needed(wanted) : said(text("Nothing can be asked"));
    },
  },
};

const user = (content) => ({ role: "user", content });
const argument = (name) => ({ name, description: name, required: true });
const PROMPTS = {
  test_simple_prompt: { render: () => [user(text("This is a simple prompt for testing."))] },
  test_prompt_with_arguments: {
    takes: [argument("arg1"), argument("arg2")],
    render: ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  },
  test_prompt_with_embedded_resource: {
    takes: [argument("resourceUri")],
    render: ({ resourceUri: uri }) => {
      const resource = { uri, mimeType: "text/plain", text: "Embedded resource content for testing." };
      return [user({ type: "resource", resource }), user(text("Please process the embedded resource above."))];
    },
  },
  test_prompt_with_image: { render: () => [user(image), user(text("Please analyze the image above."))] },
  test_input_required_result_prompt: {
    needs: (ctx) => {
      const context = { context: { type: "string" } };
      return accepted(ctx, "user_context") ? undefined : needed({ user_context: elicit("What context should the prompt use?", context) });
    },
    render: () => [user(text("With the context that was given"))],
  },
};

const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};

function read(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  const data = id && { mimeType: "application/json", text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) };
  const found = RESOURCES[uri] ?? data;
  if (!found) throw new ProtocolError(INVALID_PARAMS, "Resource not found", { uri });
  return { contents: [{ uri, ...found }] };
}

function make({ era }) {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
  };
  const server = new Server({ name: "conformance", version: "1.0.0" }, { capabilities });
  const described = (all, shown) => Object.entries(all).map(([name, one]) => ({ name, ...shown(one) }));
  const tool = ({ does, takes }) => ({ description: does, inputSchema: takes ?? { type: "object" } });
  server.setRequestHandler("tools/list", () => ({ tools: described(TOOLS, tool) }));
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    const found = TOOLS[params.name];
    if (!found) throw new ProtocolError(INVALID_PARAMS, `Unknown tool: ${params.name}`);
    return found.call(params.arguments ?? {}, ctx);
  });
  const prompt = ({ takes }) => ({ description: "A prompt", ...(takes && { arguments: takes }) });
  server.setRequestHandler("prompts/list", () => ({ prompts: described(PROMPTS, prompt) }));
  server.setRequestHandler("prompts/get", ({ params }, ctx) => {
    const found = PROMPTS[params.name];
    if (!found) throw new ProtocolError(INVALID_PARAMS, `Unknown prompt: ${params.name}`);
    return found.needs?.(ctx) ?? { messages: found.render(params.arguments ?? {}) };
  });
  const resources = Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({ uri, name: uri.slice(7), description: "A resource", mimeType }));
  server.setRequestHandler("resources/list", () => ({ resources }));
  const template = { uriTemplate: "test://template/{id}/data", name: "template", description: "By its id", mimeType: "application/json" };
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [template] }));
  server.setRequestHandler("resources/read", ({ params }) => read(params.uri));
  const values = ["paris", "park", "party"];
  server.setRequestHandler("completion/complete", ({ params }) => {
    const fitting = values.filter((value) => value.startsWith(params.argument.value));
    return { completion: { values: fitting, total: fitting.length, hasMore: false } };
  });
  if (era === "legacy") {
    server.setRequestHandler("resources/subscribe", () => ({}));
    server.setRequestHandler("resources/unsubscribe", () => ({}));
  }
  return server;
}

const modern = toNodeHandler(createMcpHandler(make, { legacy: "reject" }));
const sessions = new Map();

async function legacy(request, response, body) {
  const id = request.headers["mcp-session-id"];
  let transport = sessions.get(id);
  if (!transport && id) {
    response.writeHead(404, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }));
    return;
  }
  if (!transport) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (given) => sessions.set(given, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await make({ era: "legacy" }).connect(transport);
  }
  await transport.handleRequest(request, response, body);
}

async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  try {
    return JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    return undefined;
  }
}

const [isHere, isOurs] = [localhostHostValidation(), localhostOriginValidation()];
const http = createServer(async (request, response) => {
  if (!isHere(request, response) || !isOurs(request, response)) return;
  try {
    const body = request.method === "POST" ? await bodyOf(request) : undefined;
    const isLegacy = await isLegacyRequest(await toWebRequest(request, body), body);
    await (isLegacy ? legacy(request, response, body) : modern(request, response, body));
  } catch (error) {
    console.error(error);
    if (!response.headersSent) response.writeHead(500);
    response.end();
  }
});
// Whoever started it reads where it listens.
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
