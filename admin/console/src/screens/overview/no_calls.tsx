// No calls in this period. Where there never was one, and the person may make what it takes, the way to it begins; else a
// longer time is offered.
import { useEffect } from "preact/hooks";
import { get } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import { may, workspace } from "../../api/session";
import { t } from "../../i18n";
import { Empty, Lines } from "../../kit/states";
import { param, setParams } from "../../nav/query";
import { mayMakeKeys } from "../keys/rights";
import { mayConnectProviders } from "../providers/rights";

const LONGEST = "-30d";

export function NoCalls({ begin }: { begin: () => void }) {
  const texts = t().logs;
  const isAble = may("logs.list") && mayMakeKeys() && mayConnectProviders();
  const logs = useLoaded<{ data: unknown[] }>(isAble ? `any log ${workspace.value}` : null, () => get("/logs", { page_size: 1 }));
  const { data, isLoading } = logs.state.value;
  useEffect(() => {
    if (!isLoading && data?.data.length === 0) begin();
  }, [data, isLoading]);
  if (isLoading) return <Lines />;
  const longer = (
    <button type="button" class="button" onClick={() => setParams({ from: LONGEST, to: null })}>
      {texts.longer}
    </button>
  );
  return (
    <Empty title={texts.empty} action={param("from") !== LONGEST && longer}>
      {texts.emptyWhy}
    </Empty>
  );
}
