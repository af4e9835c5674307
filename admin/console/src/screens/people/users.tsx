// The people of the organisation.
import { get } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
import { workspace, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Tag } from "../../kit/basics";
import { pageNumber, Pages } from "../../kit/pages";
import { openRow } from "../../kit/rows";
import { SearchField } from "../../kit/search_field";
import { Empty, Part } from "../../kit/states";
import { Side } from "../../kit/surfaces";
import { day, visible } from "../../kit/words";
import { param, setParams, withParams } from "../../nav/query";
import { fullName, type User } from "./types";
import { UserView } from "./user";

const PAGE = 50;

export function Users() {
  const texts = t().people;
  const [search, page, open] = [param("search"), pageNumber(), param("person")];
  const query = { search, status: "active", page_size: PAGE, current_page: page - 1 };
  const users = useLoaded<Page<User>>(`users ${workspace.value} ${search} ${page}`, () => get("/admin/users", query));
  return (
    <>
      <div class="row">
        <SearchField label={texts.search} />
        <AsText path="/admin/users" query={query} />
      </div>
      <section class="panel">
        <Part state={users.state.value} again={users.reload}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={texts.nobody} />
            ) : (
              <>
                <Table users={found.data} open={open} />
                <Pages size={PAGE} number={found.data.length} total={found.total} />
              </>
            )
          }
        </Part>
      </section>
      {open && (
        <Side title={texts.person} close={() => setParams({ person: null })}>
          <UserView key={open} id={open} changed={users.reload} />
        </Side>
      )}
    </>
  );
}

function Table({ users, open }: { users: User[]; open: string }) {
  const texts = t().people;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{texts.email}</th>
            <th scope="col">{t().state.name}</th>
            <th scope="col">{texts.role}</th>
            <th scope="col">{texts.parts.workspaces}</th>
            <th scope="col">{texts.since}</th>
          </tr>
        </thead>
        <tbody>
          {users.map((user) => (
            <tr key={user.id} class={`can-open ${user.id === open ? "is-open" : ""}`} onClick={openRow}>
              <td>
                <a class="row-link" href={withParams({ person: user.id })}>
                  {visible(user.email)}
                </a>
              </td>
              <td>{visible(fullName(user))}</td>
              <td>
                <Tag>{texts.roles[user.role] ?? user.role}</Tag>
              </td>
              <td>
                <span class="one-line" title={user.workspace_ids.join(", ")}>
                  {visible(user.workspace_ids.map(workspaceName).join(", "))}
                </span>
              </td>
              <td class="nowrap">{day(new Date(user.created_at))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
