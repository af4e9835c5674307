// What was said, of every interface that has messages. All of it is text of strangers: it is shown as text and nothing else,
// and images only by their kind and size.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { short, visible } from "../../kit/words";
import type { Log } from "../logs/types";
import { Json } from "./json";

interface Piece {
  role: string;
  parts: Part[];
}

type Part = { text: string } | { tool: string; data: unknown } | { media: string; size: number } | { other: unknown };

const LONG = 4000;

export function Conversation({ log }: { log: Log }) {
  const texts = t().log;
  const [asked, answered] = [log.request.body, log.response.body];
  if (asked === undefined && answered === undefined) return <p class="fault note">{texts.bodyMissing}</p>;
  const pieces = [...requested(asked), ...replied(answered)];
  if (pieces.length === 0) {
    return (
      <>
        <h3>{texts.request}</h3>
        <Json value={asked ?? null} />
        <h3>{texts.response}</h3>
        <Json value={answered ?? null} />
      </>
    );
  }
  return (
    <>
      {pieces.map(({ role, parts }, index) => (
        <article key={index} class={`message ${role === "assistant" || role === "model" ? "assistant" : ""}`}>
          <header>{visible(role)}</header>
          {parts.map((part, at) => (
            <PartView key={at} part={part} />
          ))}
        </article>
      ))}
      {answered === undefined && <p class="quiet">{texts.noResponse}</p>}
    </>
  );
}

function PartView({ part }: { part: Part }) {
  const isWhole = useSignal(false);
  if ("text" in part) {
    const isCut = part.text.length > LONG && !isWhole.value;
    return (
      <div class="text">
        {visible(isCut ? part.text.slice(0, LONG) : part.text)}
        {isCut && (
          <p>
            <button type="button" class="button small" onClick={() => (isWhole.value = true)}>
              {t().log.longText(short(part.text.length))}
            </button>
          </p>
        )}
      </div>
    );
  }
  if ("media" in part) return <p class="text quiet">{t().log.media(visible(part.media), `${short(part.size / 1024)} KB`)}</p>;
  if ("tool" in part) {
    return (
      <details class="text">
        <summary>
          <code>{visible(part.tool)}</code>
        </summary>
        <Json value={part.data} />
      </details>
    );
  }
  return (
    <div class="text">
      <Json value={part.other} />
    </div>
  );
}

/** Messages of a request, as OpenAI, Anthropic and Google write them. */
export function requested(body: any): Piece[] {
  if (!body || typeof body !== "object") return [];
  const system = body.system ?? body.instructions ?? body.systemInstruction?.parts;
  const first: Piece[] = system ? [{ role: "system", parts: parts(system) }] : [];
  const messages = body.messages ?? body.contents ?? (Array.isArray(body.input) && typeof body.input[0] === "object" ? body.input : null);
  if (Array.isArray(messages)) return [...first, ...messages.map(message)];
  const text = body.prompt ?? body.input;
  return text === undefined ? first : [...first, { role: "user", parts: parts(text) }];
}

/** Messages of an answer; an error has none. */
export function replied(body: any): Piece[] {
  if (!body || typeof body !== "object") return [];
  if (Array.isArray(body.choices)) return body.choices.map((choice: any) => message(choice?.message ?? { role: "assistant", content: choice?.text }));
  if (Array.isArray(body.candidates)) return body.candidates.map((one: any) => message(one?.content));
  if (Array.isArray(body.output)) return body.output.map(message);
  if (body.role === "assistant") return [message(body)];
  const error = body.error?.message ?? body.message;
  return typeof error === "string" ? [{ role: "error", parts: [{ text: error }] }] : [];
}

function message(one: any): Piece {
  const calls = Array.isArray(one?.tool_calls) ? one.tool_calls : [];
  const found = parts(one?.content ?? one?.parts ?? (one?.type && !one?.role ? [one] : null));
  const tools: Part[] = calls.map((call: any) => ({ tool: word(call?.function?.name ?? call?.type), data: parsed(call?.function?.arguments ?? call) }));
  return { role: word(one?.role ?? one?.type ?? "assistant"), parts: [...found, ...tools] };
}

function parts(content: any): Part[] {
  if (content === null || content === undefined) return [];
  if (typeof content === "string") return content ? [{ text: content }] : [];
  if (!Array.isArray(content)) return [{ other: content }];
  return content.map((part: any): Part => {
    if (typeof part === "string") return { text: part };
    if (typeof part?.text === "string") return { text: part.text };
    if (part?.name && (part.input !== undefined || part.arguments !== undefined)) return { tool: word(part.name), data: parsed(part.input ?? part.arguments) };
    if (part?.functionCall) return { tool: word(part.functionCall.name), data: part.functionCall.args };
    const data = part?.image_url?.url ?? part?.source?.data ?? part?.inlineData?.data ?? part?.input_audio?.data;
    if (typeof data === "string") return { media: word(part.type ?? part.inlineData?.mimeType ?? "media"), size: (data.length * 3) / 4 };
    return { other: part };
  });
}

/** A text where one belongs. An object of a stranger may have a `toString` that is none, so it is written as JSON. */
const word = (value: unknown) => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""));

function parsed(text: unknown): unknown {
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
