import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.GATEWAY_BASE_URL,
  apiKey: "sk-mock", // the provider's own key
  defaultHeaders: {
    "x-gateway-api-key": process.env.GATEWAY_WORKSPACE_KEY,
    "x-gateway-provider": "openai",
    "x-gateway-custom-host": process.env.MOCK_PROVIDER_URL, // leave out to reach OpenAI itself
  },
});
const stream = await client.chat.completions.create({
  model: "gpt-4o-mini",
  messages: [{ role: "user", content: "Hello" }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
console.log();
