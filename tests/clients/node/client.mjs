// Clients of the gateway under test, and the mock provider's own endpoints.

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const { GATEWAY_BASE_URL, MOCK_PROVIDER_URL, GATEWAY_WORKSPACE_KEY } = process.env;

export const headers = (provider, key = GATEWAY_WORKSPACE_KEY) => ({
  "x-gateway-api-key": key,
  "x-gateway-provider": provider,
  "x-gateway-custom-host": MOCK_PROVIDER_URL,
});

// No retries unless a test is about them: they would hide what the gateway answered first.
export const openai = (options = {}) =>
  new OpenAI({
    baseURL: GATEWAY_BASE_URL,
    apiKey: "sk-mock",
    defaultHeaders: headers("openai"),
    maxRetries: 0,
    timeout: 60_000,
    ...options,
  });

export const anthropic = (options = {}) =>
  new Anthropic({
    baseURL: GATEWAY_BASE_URL.replace(/\/v1$/, ""),
    apiKey: "sk-ant-mock",
    defaultHeaders: headers("anthropic"),
    maxRetries: 0,
    timeout: 60_000,
    ...options,
  });

// What the mock shall do wrong stands in the message itself, so nothing on the way hides it.
export const ask = (fault) => ({
  model: "gpt-4o-mini",
  messages: [{ role: "user", content: fault ? JSON.stringify({ mock: fault }) : "Hello" }],
});

export async function textOf(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta?.content ?? "";
  return text;
}

const control = async (path, init) => {
  const answer = await fetch(`${MOCK_PROVIDER_URL.replace(/\/v1$/, "")}/__mock/${path}`, init);
  return answer.json();
};

export const mock = {
  counts: () => control("counts"),
  lastRequest: async () => (await control("requests?limit=1"))[0],
  script: (...faults) => control("script", { method: "POST", body: JSON.stringify(faults) }),
  // The counts, once they satisfy the condition.
  async until(condition) {
    const end = Date.now() + 30_000;
    for (;;) {
      const counts = await this.counts();
      if (condition(counts)) return counts;
      if (Date.now() > end) throw new Error(`waited in vain; the mock counts ${JSON.stringify(counts)}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },
};
