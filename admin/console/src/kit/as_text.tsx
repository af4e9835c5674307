// The same as a program would ask for it: the console uses the public interface alone, and shows how.
import { address, type Query } from "../api/call";
import { workspace } from "../api/session";
import { t } from "../i18n";
import { Copy } from "./basics";

interface AsTextProps {
  method?: string;
  path: string;
  query?: Query;
  body?: unknown;
}

/** For a shell: what stands in quotes stays what it is. */
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

export function curl({ method = "GET", path, query, body }: AsTextProps): string {
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + address(path, query))}`,
    `-H "x-gateway-api-key: $GATEWAY_ADMIN_KEY"`,
    ...(workspace.value && workspace.value !== "*" && query?.workspace_slug === undefined ? [`-H ${quoted(`x-gateway-workspace: ${workspace.value}`)}`] : []),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ];
  return lines.join(" \\\n  ");
}

export function AsText(props: AsTextProps) {
  const text = curl(props);
  return (
    <details class="as-text">
      <summary class="button">{t().state.asText}</summary>
      <div class="list">
        <pre class="block" tabIndex={0} role="group" aria-label={t().state.asText}>
          {text}
        </pre>
        <Copy text={text} />
      </div>
    </details>
  );
}
