// Server-sent events by fetch, because an EventSource sends no headers and so could not name its workspace.
import { address, faultOf, headersOf, type Query } from "./call";

export interface Event {
  type: string;
  data: string;
}

/** Reads events until the reader says stop. Ends by itself when the connection does. */
export async function follow(path: string, query: Query, onEvent: (event: Event) => void, isStopped: () => boolean): Promise<void> {
  const answer = await fetch(address(path, query), {
    headers: { ...headersOf("GET", {}), accept: "text/event-stream" },
    credentials: "same-origin",
  });
  if (!answer.ok || !answer.body) throw faultOf(answer, await answer.json().catch(() => null));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (isStopped()) {
      // The head has come long ago, and with it any new token of the session.
      await reader.cancel();
      return;
    }
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const lines = part.split("\n");
      const field = (name: string) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim());
      const data = field("data").join("\n");
      if (data) onEvent({ type: field("event")[0] ?? "message", data });
    }
  }
}
