// Server-sent events by fetch, because an EventSource sends no headers and so could not name its workspace.
import { address, faultOf, headersOf, type Query } from "./call";

export interface Event {
  id: string;
  type: string;
  data: string;
}

interface Listener {
  /** The event behind which the stream goes on; empty for what comes from now on. */
  lastId: string;
  stop: AbortSignal;
  onOpen: () => void;
  onEvent: (event: Event) => void;
}

/** Reads events until it is stopped. Ends by itself when the connection does. */
export async function follow(path: string, query: Query, { lastId, stop, onOpen, onEvent }: Listener): Promise<void> {
  const answer = await fetch(address(path, query), {
    headers: { ...headersOf("GET", {}), accept: "text/event-stream", ...(lastId ? { "last-event-id": lastId } : {}) },
    credentials: "same-origin",
  });
  if (!answer.ok || !answer.body) throw faultOf(answer, await answer.json().catch(() => null));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  // The head has come, and with it any new token of the session: from here on the stream can be broken off.
  const cancel = () => void reader.cancel().catch(() => undefined);
  stop.addEventListener("abort", cancel, { once: true });
  if (stop.aborted) cancel();
  else onOpen();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done || stop.aborted) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const lines = part.split("\n");
      const field = (name: string) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim());
      const data = field("data").join("\n");
      if (data) onEvent({ id: field("id")[0] ?? "", type: field("event")[0] ?? "message", data });
    }
  }
}
