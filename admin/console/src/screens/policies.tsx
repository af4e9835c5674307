// Policies: limits that follow metadata, models or keys and count each group apart. Each is read as a sentence.
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { useLoaded } from "../api/loaded";
import type { Page } from "../api/page";
import { may, workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Tag } from "../kit/basics";
import { pageNumber, Pages } from "../kit/pages";
import { openRow } from "../kit/rows";
import { Denied, Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { visible } from "../kit/words";
import { param, screen, setParams, withParams } from "../nav/query";
import { place } from "../nav/router";
import { NewPolicy } from "./policies/new_policy";
import { PolicyView } from "./policies/policy";
import { sentence } from "./policies/sentence";
import { KINDS, type Kind, type Policy } from "./policies/types";

const PAGE = 50;

export default function Policies() {
  const texts = t().policies;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const asked = place.value.path.split("/")[1] || "budgets";
  const kind = Object.hasOwn(KINDS, asked) ? (asked as Kind) : null;
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
      </div>
      <nav class="tabs" aria-label={texts.title}>
        {(Object.keys(KINDS) as Kind[]).map((one) => (
          <a key={one} href={screen(`policies/${one}`)} aria-current={one === kind ? "page" : undefined}>
            {texts.kinds[one]}
          </a>
        ))}
      </nav>
      {may("policies.list") && kind ? <List key={kind} kind={kind} /> : kind ? <Denied /> : <Empty title={t().state.notFound}>{t().state.notFoundWhy}</Empty>}
    </>
  );
}

function List({ kind }: { kind: Kind }) {
  const texts = t().policies;
  const [open, isNew] = [param("policy"), param("new") === "1"];
  const path = KINDS[kind];
  const query = { page_size: PAGE, current_page: pageNumber() - 1 };
  const policies = useLoaded<Page<Policy>>(`policies ${kind} ${workspace.value} ${query.current_page}`, () => get(path, query));
  const create = may("policies.create") && (
    <a class="button main" href={withParams({ new: "1", policy: null })}>
      {texts.create}
    </a>
  );
  return (
    <>
      <div class="row">
        <AsText path={path} query={query} />
        {create}
      </div>
      <section class="panel">
        <Part state={policies.state.value} again={policies.reload}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={texts.empty} action={create}>
                {texts.emptyWhy}
              </Empty>
            ) : (
              <>
                <Table policies={found.data} open={open} />
                <Pages size={PAGE} number={found.data.length} total={found.total} />
              </>
            )
          }
        </Part>
      </section>
      {isNew && may("policies.create") && (
        <Side title={texts.create} close={() => setParams({ new: null })}>
          <NewPolicy
            kind={kind}
            done={(id) => {
              setParams({ new: null, policy: id });
              policies.reload();
            }}
          />
        </Side>
      )}
      {open && !isNew && (
        <Side title={texts.one} close={() => setParams({ policy: null })}>
          <PolicyView key={open} kind={kind} id={open} changed={policies.reload} />
        </Side>
      )}
    </>
  );
}

function Table({ policies, open }: { policies: Policy[]; open: string }) {
  const texts = t().policies;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{t().state.name}</th>
            <th scope="col">{texts.says}</th>
            <th scope="col">{t().menu.workspace}</th>
            <th scope="col">{t().state.status}</th>
          </tr>
        </thead>
        <tbody>
          {policies.map((policy) => (
            <tr key={policy.id} class={`can-open ${policy.id === open ? "is-open" : ""}`} onClick={openRow}>
              <td>
                <a class="row-link" href={withParams({ policy: policy.id, new: null })}>
                  {visible(policy.name || policy.id.slice(0, 8))}
                </a>
              </td>
              <td>{sentence(policy)}</td>
              <td>{visible(workspaceName(policy.workspace_id))}</td>
              <td>
                <Tag meaning={policy.dry_run ? "warn" : "ok"}>{policy.dry_run ? texts.dryRun : texts.holds}</Tag>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
