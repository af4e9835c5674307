// One line of the trail: the facts, what the object was before and after, and what was sent.
import { useKeyNames } from "../../api/names";
import { may, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { Status } from "../../kit/basics";
import { differences } from "../../kit/difference";
import { DifferenceTable } from "../../kit/difference_table";
import { clock, day, visible } from "../../kit/words";
import { screen } from "../../nav/query";
import { actorOf, objectOf, type Entry } from "./types";

/** The time of a change stands above already. */
const REPEATED = ["last_updated_at", "updated_at"];

function without(object: Record<string, unknown> | null): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object ?? {}).filter(([name]) => !REPEATED.includes(name)));
}

/** Where an object has a screen. */
function addressOf({ resource_type, resource_id }: Entry): string | null {
  if (!resource_id) return null;
  if (resource_type === "api_keys") return screen("keys", { key: resource_id });
  if (resource_type === "configs" && may("configs.read")) return screen(`routing/${encodeURIComponent(resource_id)}`);
  if (resource_type === "users" && may("organisation_users.list")) return screen("people/users", { person: resource_id });
  if (resource_type === "workspaces" && may("workspaces.list")) return screen("people/workspaces", { space: resource_id });
  return null;
}

export function EntryView({ of }: { of: Entry }) {
  const texts = t().audit;
  const keyName = useKeyNames();
  const at = new Date(of.timestamp);
  const address = of.action === "delete" ? null : addressOf(of);
  const hasStates = of.before !== null || of.after !== null;
  /** A name for an id that stands somewhere in the object, as far as the person knows it. */
  const named = (id: string) => [workspaceName(id), keyName(id)].find((name) => name && name !== id && !id.startsWith(name));
  return (
    <div class="log">
      <dl class="facts">
        <dt>{texts.time}</dt>
        <dd>
          {day(at)} {clock(at, { millis: true })} <span class="quiet">{of.timestamp}</span>
        </dd>
        <dt>{texts.who}</dt>
        <dd>
          {visible(actorOf(of))} {of.user_id && <a href={screen("audit", { by: of.user_id })}>{texts.allOf}</a>}
        </dd>
        <dt>{texts.object}</dt>
        <dd>
          {texts.types[of.resource_type] ?? of.resource_type} · {address ? <a href={address}>{visible(objectOf(of))}</a> : visible(objectOf(of))}{" "}
          {of.resource_id && <a href={screen("audit", { object: of.resource_id })}>{texts.history}</a>}
        </dd>
        <dt>{texts.action}</dt>
        <dd>
          {texts.actions[of.action] ?? of.action} <Status status={of.response_status_code} />
        </dd>
        {of.workspace_name && (
          <>
            <dt>{t().menu.workspace}</dt>
            <dd>{visible(of.workspace_name)}</dd>
          </>
        )}
        <dt>{texts.request}</dt>
        <dd>
          <code>
            {of.method} {visible(of.uri)}
          </code>
        </dd>
        <dt>{texts.from}</dt>
        <dd>
          {of.client_ip ?? "–"} {of.country}
        </dd>
        {of.error && (
          <>
            <dt>{texts.error}</dt>
            <dd lang="en">{visible(of.error)}</dd>
          </>
        )}
        {of.sequence !== null && (
          <>
            <dt>{texts.sequence}</dt>
            <dd>{of.sequence}</dd>
          </>
        )}
      </dl>
      <h3>{texts.difference}</h3>
      {hasStates ? <DifferenceTable of={differences(without(of.before), without(of.after))} named={named} /> : <p class="quiet">{texts.noDifference}</p>}
      {of.request_body && of.request_body !== "{}" && (
        <details>
          <summary>{texts.sent}</summary>
          <pre class="block" tabIndex={0} role="group" aria-label={texts.sent}>
            {visible(pretty(of.request_body))}
          </pre>
        </details>
      )}
    </div>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
