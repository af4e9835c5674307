// A new config: a name, a workspace and a text, which the interface checks before it is stored.
import { useSignal } from "@preact/signals";
import { Fault, post } from "../../api/call";
import { forget } from "../../api/loaded";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { Failed } from "../../kit/states";
import { useWork } from "../../kit/work";
import { WorkspaceField, workspaceChoices } from "../../kit/workspace_field";
import { screen } from "../../nav/query";
import { go } from "../../nav/router";
import { Editor, type Mark } from "./editor";
import { marksOf, parsed } from "./marks";
import { written } from "./types";

const SAMPLE = { strategy: { mode: "fallback" }, targets: [{ provider: "@first", retry: { attempts: 2 } }, { provider: "@second" }] };

export function NewConfig() {
  const texts = t().routing;
  const name = useSignal("");
  const where = useSignal(workspaceChoices()[0]?.slug ?? "");
  const text = useSignal(written(SAMPLE));
  const marks = useSignal<Mark[]>([]);
  const work = useWork();
  const make = async () => {
    const { value, wrong } = parsed(text.value);
    marks.value = wrong;
    if (!value) return;
    await work.run(async () => {
      try {
        const { id } = await post<{ id: string }>("/configs", { name: name.value.trim(), config: value, workspace_id: where.value }, { workspace: where.value });
        forget();
        go(screen(`routing/${id}`));
      } catch (error) {
        if (error instanceof Fault) marks.value = marksOf(text.value, error);
        throw error;
      }
    });
  };
  const fault = work.fault.value;
  return (
    <>
      <div class="head">
        <h1>{texts.create}</h1>
        <a class="button" href={screen("routing")}>
          {texts.all}
        </a>
      </div>
      <form
        class="form wide"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <div class="two">
          <Field label={t().state.name} wrong={fault?.about("name")}>
            {(control) => <input {...control} required maxLength={255} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}
          </Field>
          <WorkspaceField value={where.value} wrong={fault?.about("workspace_id")} change={(slug) => (where.value = slug)} />
        </div>
        <Editor
          label={texts.text} text={text.value} marks={marks.value}
          change={(next) => {
            text.value = next;
            marks.value = [];
          }}
        />
        {fault && marks.value.length === 0 && <Failed fault={fault} />}
        <div>
          <button type="submit" class="button main" disabled={work.isBusy.value}>
            {texts.make}
          </button>
        </div>
      </form>
    </>
  );
}
