// The table as a sheet for a spreadsheet: the interface writes it, with as many groups as it gives.
import { useSignal } from "@preact/signals";
import { Fault, sheet } from "../../api/call";
import { t } from "../../i18n";
import { saveAs } from "../../kit/save_as";
import { notify } from "../../kit/surfaces";
import { toQuery, type Filter } from "../../nav/filters";
import { timeQuery } from "../../nav/period";
import type { Grouping } from "./measures";

const MAX_ROWS = 100;

export function Sheet({ grouping, filters, columns }: { grouping: Grouping; filters: Filter[]; columns: string[] }) {
  const isBusy = useSignal(false);
  const download = async () => {
    isBusy.value = true;
    const path = `/analytics/groups/${grouping.group.split("/").map(encodeURIComponent).join("/")}`;
    const asked = grouping.name ? { columns: columns.join(",") } : {};
    try {
      const text = await sheet(path, { ...timeQuery(), ...toQuery(filters), ...asked, page_size: MAX_ROWS });
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
