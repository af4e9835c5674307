// Whether a key is accepted, in a word and a shape.
import { t } from "../../i18n";
import { Tag } from "../../kit/basics";

export function KeyStatus({ status }: { status: string }) {
  return <Tag meaning={status === "active" ? "ok" : status === "suspended" ? "warn" : "bad"}>{t().state.statuses[status] ?? status}</Tag>;
}
