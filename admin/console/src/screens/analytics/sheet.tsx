// The table as a sheet for a spreadsheet: the interface writes it, page by page, in the order of the table.
import { useSignal } from "@preact/signals";
import { Fault, sheet } from "../../api/call";
import { t } from "../../i18n";
import { saveAs } from "../../kit/save_as";
import { notify } from "../../kit/surfaces";
import { count } from "../../kit/words";
import { toQuery, type Filter } from "../../nav/filters";
import { timeQuery } from "../../nav/period";
import type { Grouping } from "./measures";

const PAGE = 100;
const MAX_PAGES = 20;

/** The pages as one sheet, with the head of the first. A page that is not full is the last. */
export async function allPages(read: (page: number) => Promise<string>): Promise<{ text: string; isWhole: boolean }> {
  let text = "";
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const rows = rowsOf(await read(page));
    text += (page === 0 ? rows : rows.slice(1)).map((row) => (row.endsWith("\n") ? row : `${row}\n`)).join("");
    if (rows.length <= PAGE) return { text, isWhole: true };
  }
  return { text, isWhole: false };
}

/** Rows with their ends; a field in quotes may have lines of its own. */
const rowsOf = (text: string) => text.match(/(?:[^"\n]|"[^"]*")*(?:\n|$)/g)!.filter((row) => row !== "");

export function Sheet({ grouping, orderBy, filters, columns }: { grouping: Grouping; orderBy: string; filters: Filter[]; columns: string[] }) {
  const isBusy = useSignal(false);
  const download = async () => {
    isBusy.value = true;
    const path = `/analytics/groups/${grouping.group.split("/").map(encodeURIComponent).join("/")}`;
    const asked = grouping.name ? { columns: columns.join(",") } : {};
    const query = { ...timeQuery(), ...toQuery(filters), ...asked, order_by: orderBy, order_by_type: "desc", page_size: PAGE };
    try {
      const { text, isWhole } = await allPages((page) => sheet(path, { ...query, current_page: page }));
      if (!isWhole) notify(t().analytics.sheetCut(count(PAGE * MAX_PAGES)));
      saveAs(`${grouping.text.replace(/[^\w.-]/g, "_")}.csv`, "text/csv", text);
    } catch (error) {
      notify(error instanceof Fault && error.message ? error.message : t().state.failed);
    }
    isBusy.value = false;
  };
  return (
    <button type="button" class="button" disabled={isBusy.value} onClick={() => void download()}>
      {t().analytics.sheet}
    </button>
  );
}
