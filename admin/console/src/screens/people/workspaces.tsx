// Workspaces: the teams of the organisation.
import { get } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
import { may, workspace } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Tag } from "../../kit/basics";
import { pageNumber, Pages } from "../../kit/pages";
import { openRow } from "../../kit/rows";
import { Empty, Part } from "../../kit/states";
import { Side } from "../../kit/surfaces";
import { day, visible } from "../../kit/words";
import { param, setParams, withParams } from "../../nav/query";
import { NewWorkspace } from "./new_workspace";
import type { WorkspaceRow } from "./types";
import { WorkspaceView } from "./workspace";

const PAGE = 50;

export function Workspaces() {
  const texts = t().people;
  const [page, open, isNew] = [pageNumber(), param("space"), param("new") === "1"];
  const query = { status: "active", page_size: PAGE, current_page: page - 1 };
  const workspaces = useLoaded<Page<WorkspaceRow>>(`workspaces ${workspace.value} ${page}`, () => get("/workspaces", query));
  const mayCreate = may("workspaces.create");
  const listed = workspaces.state.value.data?.data.find(({ id }) => id === open);
  /** An address may name one of another page. */
  const other = useLoaded<WorkspaceRow>(open && workspaces.state.value.data && !listed ? `workspace ${open}` : null, () => get(`/workspaces/${encodeURIComponent(open)}`));
  return (
    <>
      <div class="row">
        <AsText path="/workspaces" query={query} />
        {mayCreate && (
          <a class="button main" href={withParams({ new: "1", space: null })}>
            {texts.newWorkspace}
          </a>
        )}
      </div>
      <section class="panel">
        <Part state={workspaces.state.value} again={workspaces.reload}>
          {(list) =>
            list.total === 0 ? (
              <Empty title={texts.noWorkspaces}>{texts.noWorkspacesWhy}</Empty>
            ) : (
              <>
                <Table workspaces={list.data} open={open} />
                <Pages size={PAGE} number={list.data.length} total={list.total} />
              </>
            )
          }
        </Part>
      </section>
      {isNew && mayCreate && (
        <Side title={texts.newWorkspace} close={() => setParams({ new: null })}>
          <NewWorkspace
            done={() => {
              setParams({ new: null });
              workspaces.reload();
            }}
          />
        </Side>
      )}
      {open && !isNew && (
        <Side title={visible((listed ?? other.state.value.data)?.name ?? t().menu.workspace)} close={() => setParams({ space: null, members: null })}>
          <Part state={listed ? { data: listed, isLoading: false } : other.state.value}>{(found) => <WorkspaceView key={found.id} of={found} changed={workspaces.reload} />}</Part>
        </Side>
      )}
    </>
  );
}

function Table({ workspaces, open }: { workspaces: WorkspaceRow[]; open: string }) {
  const texts = t().people;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{t().state.name}</th>
            <th scope="col">{texts.slug}</th>
            <th scope="col">{texts.description}</th>
            <th scope="col">{texts.since}</th>
          </tr>
        </thead>
        <tbody>
          {workspaces.map((one) => (
            <tr key={one.id} class={`can-open ${one.id === open ? "is-open" : ""}`} onClick={openRow}>
              <td>
                <span class="row">
                  <a class="row-link" href={withParams({ space: one.id, new: null, members: null })}>
                    {visible(one.name)}
                  </a>
                  {one.is_default === 1 && <Tag>{texts.isDefault}</Tag>}
                </span>
              </td>
              <td>
                <code>{one.slug}</code>
              </td>
              <td>
                <span class="one-line">{visible(one.description ?? "")}</span>
              </td>
              <td class="nowrap">{day(new Date(one.created_at))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
