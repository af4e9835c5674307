// The same as a program would ask for it: the console uses the public interface alone, and shows how. Objects can be read as
// the file that the command line makes them from, too.
import { address, type Query } from "../api/call";
import { workspace } from "../api/session";
import { t } from "../i18n";
import { Copy } from "./basics";
import { yaml } from "./yaml";

interface AsTextProps {
  method?: string;
  path: string;
  query?: Query;
  body?: unknown;
  /** What the button says; without it, that this is the same as text. */
  label?: string;
  /** The object, as a document of the command line's files. */
  file?: ManifestFile;
}

export interface ManifestFile {
  kind: "api-key" | "config" | "policy-rate-limits" | "policy-usage-limits" | "provider" | "workspace";
  /** The slug of its workspace; none for what belongs to the organisation. */
  workspace?: string;
  name: string;
  spec: Record<string, unknown>;
}

/** For a shell: what stands in quotes stays what it is. */
const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const isOneWorkspace = ({ query }: AsTextProps) => workspace.value && workspace.value !== "*" && query?.workspace_slug === undefined;

export function curl(props: AsTextProps): string {
  const { method = "GET", path, query, body } = props;
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + address(path, query))}`,
    `-H "x-gateway-api-key: $GATEWAY_ADMIN_KEY"`,
    ...(isOneWorkspace(props) ? [`-H ${quoted(`x-gateway-workspace: ${workspace.value}`)}`] : []),
    ...(body === undefined ? [] : ["-H 'content-type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ];
  return lines.join(" \\\n  ");
}

export function command(props: AsTextProps): string {
  const { method = "GET", path, query, body } = props;
  const target = address(path, query).replace(/^\/v1/, "");
  const where = isOneWorkspace(props) ? ` -w ${quoted(workspace.value)}` : "";
  const call = `portcullis api ${method} ${quoted(target)}${where}`;
  return body === undefined ? call : `echo ${quoted(JSON.stringify(body))} |\n  ${call} --body -`;
}

export function AsText(props: AsTextProps) {
  const forms: [string, string][] = [["curl", curl(props)], ["portcullis", command(props)], ...(props.file ? [["YAML", yaml(props.file)] as [string, string]] : [])];
  return (
    <details class="as-text">
      <summary class="button">{props.label ?? t().state.asText}</summary>
      <div class="list">
        {forms.map(([name, text]) => (
          <section key={name} class="form">
            <div class="row wide">
              <strong>{name}</strong>
              <Copy text={text} />
            </div>
            <pre class="block" tabIndex={0} role="group" aria-label={`${t().state.asText}: ${name}`}>
              {text}
            </pre>
          </section>
        ))}
      </div>
    </details>
  );
}
