import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env.GATEWAY_BASE_URL,
  apiKey: process.env.GATEWAY_WORKSPACE_KEY,
});
const answer = await client.chat.completions.create({
  model: "@openai/gpt-4o-mini",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);
