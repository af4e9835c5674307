// Those whom a policy counts apart, with what each has used; a budget of one of them can begin anew.
import { useSignal } from "@preact/signals";
import { get, post } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
import { may, workspace } from "../../api/session";
import { t } from "../../i18n";
import { Bar, Tag } from "../../kit/basics";
import { Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { count, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { amount } from "./sentence";
import type { Group, Kind, Policy } from "./types";

const MAX_GROUPS = 100;

export function Groups({ kind, policy, path }: { kind: Kind; policy: Policy; path: string }) {
  const texts = t().policies;
  const groups = useLoaded<Page<Group>>(may("policies.read") ? `groups ${policy.id} ${workspace.value}` : null, () => get(`${path}/entities`, { page_size: MAX_GROUPS }));
  return (
    <Part state={groups.state.value} again={groups.reload} lines={3}>
      {({ data, total }) =>
        data.length === 0 ? (
          <p class="quiet">{texts.noGroups}</p>
        ) : (
          <>
            <div class="scroll">
              <table class="table cards">
                <thead>
                  <tr>
                    <th scope="col">{texts.group}</th>
                    <th scope="col">{t().budgets.used}</th>
                    <th scope="col">
                      <span class="hidden-visually">{t().state.actions}</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {data.map((group) => (
                    <Row key={group.id} group={group} kind={kind} policy={policy} path={path} changed={groups.reload} />
                  ))}
                </tbody>
              </table>
            </div>
            {total > data.length && <p class="quiet">{t().state.ofMany(count(data.length), count(total), false)}</p>}
          </>
        )
      }
    </Part>
  );
}

interface RowProps {
  group: Group;
  kind: Kind;
  policy: Policy;
  path: string;
  changed: () => void;
}

function Row({ group, kind, policy, path, changed }: RowProps) {
  const texts = t().policies;
  const isAsked = useSignal(false);
  const work = useWork();
  const most = policy.credit_limit ?? policy.value ?? 0;
  const share = most > 0 ? group.current_usage / most : 1;
  const name = visible(group.name || group.value_key || texts.all);
  const reset = async () => {
    if (!(await work.run(() => post(`${path}/entities/reset`, { entity_id: group.id })))) return;
    isAsked.value = false;
    forget();
    notify(texts.isReset);
    changed();
  };
  return (
    <tr>
      <td>{name}</td>
      <td>
        <span class="row">
          <span class="nowrap">
            {amount(policy, group.current_usage)} / {amount(policy, most)}
          </span>
          <Bar share={share} meaning={share >= 1 ? "bad" : share > 0.8 ? "warn" : ""} />
          {group.status === "exhausted" && <Tag meaning="bad">{t().state.statuses.exhausted}</Tag>}
        </span>
      </td>
      <td>
        {kind === "budgets" && may("policies.update") && (
          <button type="button" class="button small" onClick={() => (isAsked.value = true)} aria-label={`${texts.reset}: ${name}`}>
            {texts.reset}
          </button>
        )}
        {isAsked.value && (
          <Confirm title={`${texts.reset}: ${name}`} text={texts.resetWhy} button={texts.reset} fault={work.fault.value} isBusy={work.isBusy.value} confirm={() => void reset()} close={() => (isAsked.value = false)} />
        )}
      </td>
    </tr>
  );
}
