// A new workspace.
import { useSignal } from "@preact/signals";
import { post } from "../../api/call";
import { forget } from "../../api/loaded";
import { loadSession } from "../../api/session";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { Failed } from "../../kit/states";
import { useWork } from "../../kit/work";

export function NewWorkspace({ done }: { done: () => void }) {
  const texts = t().people;
  const form = useSignal({ name: "", slug: "", description: "" });
  const work = useWork();
  const set = (change: Partial<typeof form.value>) => (form.value = { ...form.value, ...change });
  const make = async () => {
    const { name, slug, description } = form.value;
    const isDone = await work.run(async () => {
      await post("/workspaces", { name: name.trim(), ...(slug ? { slug } : {}), ...(description ? { description } : {}) });
    });
    if (!isDone) return;
    forget();
    // The list of the bar knows it from now on, or after the next look.
    await loadSession().catch(() => undefined);
    done();
  };
  const fault = work.fault.value;
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <Field label={t().state.name} wrong={fault?.about("name")}>
        {(control) => <input {...control} required maxLength={255} value={form.value.name} onInput={(event) => set({ name: event.currentTarget.value })} />}
      </Field>
      <Field label={`${texts.slug} (${t().state.optional})`} hint={texts.slugHint} wrong={fault?.about("slug")}>
        {(control) => <input {...control} maxLength={100} autocomplete="off" spellcheck={false} value={form.value.slug} onInput={(event) => set({ slug: event.currentTarget.value })} />}
      </Field>
      <Field label={`${texts.description} (${t().state.optional})`} wrong={fault?.about("description")}>
        {(control) => <input {...control} maxLength={1000} value={form.value.description} onInput={(event) => set({ description: event.currentTarget.value })} />}
      </Field>
      {fault && <Failed fault={fault} />}
      <div>
        <button type="submit" class="button main" disabled={work.isBusy.value}>
          {texts.newWorkspace}
        </button>
      </div>
    </form>
  );
}
