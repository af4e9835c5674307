import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const gateway = createOpenAICompatible({
  name: "gateway",
  baseURL: process.env.GATEWAY_BASE_URL,
  apiKey: process.env.GATEWAY_WORKSPACE_KEY,
  includeUsage: true, // of streams too, which this SDK does not ask for by itself
});
const { text } = await generateText({ model: gateway("@openai/gpt-4o-mini"), prompt: "Hello" });
console.log(text);
