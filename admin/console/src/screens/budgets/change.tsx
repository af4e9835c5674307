// Other numbers for a budget: reviewed, tried without storing, and refused where somebody else was faster.
import { useSignal } from "@preact/signals";
import { call, getTagged, type Json } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import { workspace } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Field } from "../../kit/basics";
import { differences } from "../../kit/difference";
import { Review } from "../../kit/review";
import { Part } from "../../kit/states";
import { notify } from "../../kit/surfaces";
import { visible } from "../../kit/words";
import type { Amounts } from "../limits/types";
import type { Budget } from "../overview/types";
import { minAmount, ownerOf, queryOf } from "./owner";

export function ChangeBudget({ of, done }: { of: Budget; done: () => void }) {
  const path = ownerOf(of)!.path(of.id);
  const owner = useLoaded<{ data: Json; tag: string }>(`budget ${of.kind} ${of.id} ${workspace.value}`, () => getTagged(path, queryOf(of)));
  return (
    <Part state={owner.state.value} again={owner.reload} lines={3}>
      {({ data, tag }) => <AmountForm key={tag} of={of} object={data} tag={tag} path={path} done={done} again={owner.reload} />}
    </Part>
  );
}

interface AmountFormProps {
  of: Budget;
  object: Json;
  tag: string;
  path: string;
  done: () => void;
  again: () => void;
}

function AmountForm({ of, object, tag, path, done, again }: AmountFormProps) {
  const texts = t().limits;
  const owner = ownerOf(of)!;
  const before = owner.amounts(object);
  const form = useSignal({ amount: String(before.credit_limit ?? of.credit_limit), threshold: before.alert_threshold === null ? "" : String(before.alert_threshold) });
  const isReviewed = useSignal(false);
  const set = (change: Partial<typeof form.value>) => (form.value = { ...form.value, ...change });
  const { amount, threshold } = form.value;
  const after: Amounts = { credit_limit: Number(amount), alert_threshold: threshold.trim() === "" ? null : Number(threshold) };
  const found = differences(before, after);
  const body = owner.body(object, after);
  const inWorkspace = queryOf(of);
  const send = (isTrial: boolean) => call("PUT", path, { body: { ...body, ...inWorkspace }, query: { dry_run: isTrial || undefined }, headers: { "if-match": tag } });
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        isReviewed.value = true;
      }}
    >
      <Field label={of.type === "cost" ? texts.dollars : texts.amount}>
        {(control) => <input {...control} type="number" required min={minAmount(of)} step="any" value={amount} onInput={(event) => set({ amount: event.currentTarget.value })} />}
      </Field>
      <Field label={texts.threshold} hint={texts.noThreshold}>
        {(control) => <input {...control} type="number" min="1" step="any" value={threshold} onInput={(event) => set({ threshold: event.currentTarget.value })} />}
      </Field>
      <div class="row">
        <button type="submit" class="button main" disabled={found.length === 0}>
          {t().review.look}
        </button>
        <AsText method="PUT" path={path} body={{ ...body, ...inWorkspace }} />
      </div>
      {isReviewed.value && (
        <Review
          title={t().review.title(visible(of.name ?? ""))} of={found} send={send} close={() => (isReviewed.value = false)}
          done={() => {
            notify(t().review.saved);
            done();
          }}
          again={again}
        />
      )}
    </form>
  );
}
