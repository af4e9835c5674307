// Another amount for a budget: reviewed, tried without storing, and refused where somebody else was faster.
import { useSignal } from "@preact/signals";
import { call, getTagged, type Json } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import { workspace } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Field } from "../../kit/basics";
import { Review } from "../../kit/review";
import { Part } from "../../kit/states";
import { notify } from "../../kit/surfaces";
import { visible } from "../../kit/words";
import type { Budget } from "../overview/types";
import { ownerOf, queryOf } from "./owner";

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
  const before = owner.amount(object) ?? of.credit_limit;
  const amount = useSignal(String(before));
  const isReviewed = useSignal(false);
  const body = owner.body(object, Number(amount.value));
  const inWorkspace = queryOf(of);
  const send = (isTrial: boolean) => call("PUT", path, { body: { ...body, ...inWorkspace }, query: { dry_run: isTrial || undefined }, headers: { "if-match": tag } });
  const isMoney = of.type === "cost";
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        isReviewed.value = true;
      }}
    >
      <Field label={isMoney ? texts.dollars : texts.amount}>
        {(control) => <input {...control} type="number" required min={isMoney ? "0.01" : "1"} step={isMoney ? "0.01" : "1"} value={amount.value} onInput={(event) => (amount.value = event.currentTarget.value)} />}
      </Field>
      <div class="row">
        <button type="submit" class="button main" disabled={Number(amount.value) === before}>
          {t().routing.review}
        </button>
        <AsText method="PUT" path={path} body={{ ...body, ...inWorkspace }} />
      </div>
      {isReviewed.value && (
        <Review
          title={t().review.title(visible(of.name ?? ""))} of={[{ path: "credit_limit", before, after: Number(amount.value) }]} send={send} close={() => (isReviewed.value = false)}
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
