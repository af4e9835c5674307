// A form of settings: what differs is reviewed and tried before it is stored, and only that is sent.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { call } from "../../api/call";
import { may } from "../../api/session";
import { t } from "../../i18n";
import { differences } from "../../kit/difference";
import { Review } from "../../kit/review";
import { notify } from "../../kit/surfaces";

export type Values = Record<string, unknown>;

export interface FormProps {
  of: Record<string, any>;
  tag: string;
  path: string;
  again: () => void;
}

interface SettingsFormProps extends FormProps {
  before: Values;
  after: Values;
  /** The body of the change, from the values that differ. */
  body: (changed: Values) => Values;
  children: ComponentChildren;
}

export const mayChangeSettings = () => may("organisation_settings.update");

export function SettingsForm({ before, after, body, tag, path, again, children }: SettingsFormProps) {
  const isReviewed = useSignal(false);
  const found = differences(before, after);
  const changed = Object.fromEntries(Object.keys(after).flatMap((name) => (differences(before[name], after[name]).length > 0 ? [[name, after[name]]] : [])));
  const send = (isTrial: boolean) => call("PUT", path, { body: body(changed), query: { dry_run: isTrial || undefined }, headers: tag ? { "if-match": tag } : {} });
  return (
    <form
      class="form wide"
      onSubmit={(event) => {
        event.preventDefault();
        isReviewed.value = true;
      }}
    >
      {children}
      {mayChangeSettings() ? (
        <div>
          <button type="submit" class="button main" disabled={found.length === 0}>
            {t().review.look}
          </button>
        </div>
      ) : (
        <p class="quiet">{t().state.readOnly}</p>
      )}
      {isReviewed.value && (
        <Review
          title={t().review.title(t().settings.title)} of={found} send={send} close={() => (isReviewed.value = false)} again={again}
          done={() => {
            notify(t().review.saved);
            again();
          }}
        />
      )}
    </form>
  );
}
