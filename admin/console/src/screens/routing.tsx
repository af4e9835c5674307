// Routing: the configs that say which provider answers, in which order and with which share. One of them is a page, with its
// text, its tree and its versions.
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
import { SearchField } from "../kit/search_field";
import { Denied, Empty, Part } from "../kit/states";
import { dateAndTime, visible } from "../kit/words";
import { param, screen, withParams } from "../nav/query";
import { place } from "../nav/router";
import { ConfigPage } from "./routing/config";
import { NewConfig } from "./routing/new_config";
import type { ConfigRow } from "./routing/types";

const PAGE = 50;

export default function Routing() {
  const [, id] = place.value.path.split("/");
  useEffect(() => {
    document.title = `${t().routing.title} · Portcullis`;
  }, []);
  if (!may("configs.list")) {
    return (
      <>
        <h1>{t().routing.title}</h1>
        <Denied />
      </>
    );
  }
  if (id) return <ConfigPage key={id} id={decoded(id)} />;
  return param("new") === "1" && may("configs.create") ? <NewConfig /> : <List />;
}

/** What is no text in an address is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function List() {
  const texts = t().routing;
  const search = param("search");
  const query = { search, status: "active", page_size: PAGE, current_page: pageNumber() - 1 };
  const configs = useLoaded<Page<ConfigRow>>(`configs ${workspace.value} ${search} ${query.current_page}`, () => get("/configs", query));
  const create = may("configs.create") && (
    <a class="button main" href={withParams({ new: "1" })}>
      {texts.create}
    </a>
  );
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <SearchField label={texts.search} />
        <AsText path="/configs" query={query} />
        {create}
      </div>
      <section class="panel">
        <Part state={configs.state.value} again={configs.reload}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={search ? texts.nothing : texts.empty} action={create}>
                {!search && texts.emptyWhy}
              </Empty>
            ) : (
              <>
                <Table configs={found.data} />
                <Pages size={PAGE} number={found.data.length} total={found.total} />
              </>
            )
          }
        </Part>
      </section>
    </>
  );
}

function Table({ configs }: { configs: ConfigRow[] }) {
  const texts = t().routing;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{t().state.name}</th>
            <th scope="col">{texts.slug}</th>
            <th scope="col">{t().menu.workspace}</th>
            <th scope="col">{texts.changed}</th>
          </tr>
        </thead>
        <tbody>
          {configs.map((one) => (
            <tr key={one.id} class="can-open" onClick={openRow}>
              <td>
                <span class="row">
                  <a class="row-link" href={screen(`routing/${one.id}`)}>
                    {visible(one.name)}
                  </a>
                  {one.is_default === 1 && <Tag>{t().people.isDefault}</Tag>}
                </span>
              </td>
              <td>
                <code>{one.slug}</code>
              </td>
              <td>{visible(workspaceName(one.workspace_id))}</td>
              <td class="nowrap">{dateAndTime(new Date(one.last_updated_at))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
