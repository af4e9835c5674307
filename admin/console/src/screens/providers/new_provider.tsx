// Connecting a provider: vendor, key, and whatever else the vendor's row asks for. What was entered is tried before it is
// stored, with the provider's own words when it does not work. The key leaves this part for the interface and nowhere else.
import { useSignal } from "@preact/signals";
import { Fault, get, post } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import { workspace } from "../../api/session";
import { t } from "../../i18n";
import { Field, Tag } from "../../kit/basics";
import { Failed, Part } from "../../kit/states";
import { duration, visible } from "../../kit/words";
import { WorkspaceField, workspaceChoices } from "../../kit/workspace_field";

export interface VendorField {
  name: string;
  required: boolean;
  allowed: string[];
  description: string;
}

export interface Vendor {
  slug: string;
  name: string;
  fields: VendorField[];
}

export interface Tested {
  is_tested: boolean;
  success: boolean;
  message: string;
  status: number | null;
  response_time: number | null;
}

/** Shown first, because most people look for them. */
const COMMON = ["openai", "anthropic", "google", "azure-openai", "bedrock", "vertex-ai", "mistral-ai", "groq", "deepseek", "openrouter", "together-ai", "ollama"];

export function NewProvider({ done }: { done: (slug: string) => void }) {
  const texts = t().providers;
  const vendors = useLoaded<Vendor[]>("vendors", async () => (await get<{ data: Vendor[] }>("/providers/types")).data);
  const chosen = useSignal<Vendor | null>(null);
  const search = useSignal("");
  return (
    <Part state={vendors.state.value} again={vendors.reload} lines={4}>
      {(all) => {
        if (chosen.value) return <Account vendor={chosen.value} back={() => (chosen.value = null)} done={done} />;
        const wanted = search.value.toLowerCase();
        const order = ({ slug }: Vendor) => (COMMON.includes(slug) ? COMMON.indexOf(slug) : COMMON.length);
        const found = all.filter(({ slug, name }) => `${slug} ${name}`.toLowerCase().includes(wanted)).sort((a, b) => order(a) - order(b));
        return (
          <div class="form">
            <Field label={texts.search}>
              {(control) => <input {...control} type="search" value={search.value} autocomplete="off" onInput={(event) => (search.value = event.currentTarget.value)} />}
            </Field>
            <div class="vendors" tabIndex={0} role="group" aria-label={texts.vendor}>
              {found.slice(0, 60).map((vendor) => (
                <button key={vendor.slug} type="button" class="button" onClick={() => (chosen.value = vendor)}>
                  {vendor.name}
                </button>
              ))}
            </div>
          </div>
        );
      }}
    </Part>
  );
}

/** `configurations.aws_region` → `{ configurations: { aws_region } }`; objects and lists are written as JSON. */
export function nested(values: Record<string, string>): Record<string, any> {
  const body: Record<string, any> = {};
  for (const [name, text] of Object.entries(values)) {
    if (!text) continue;
    const [first, second] = name.split(".", 2) as [string, string | undefined];
    const value = /^\s*[[{]/.test(text) ? JSON.parse(text) : text;
    if (second) (body[first] ??= {})[second] = value;
    else body[first] = value;
  }
  return body;
}

function Account({ vendor, back, done }: { vendor: Vendor; back: () => void; done: (slug: string) => void }) {
  const texts = t().providers;
  const name = useSignal(vendor.slug);
  const where = useSignal(workspaceChoices()[0]?.slug ?? "");
  const values = useSignal<Record<string, string>>({});
  const tested = useSignal<Tested | null>(null);
  const fault = useSignal<Fault | null>(null);
  const isBusy = useSignal(false);
  const needed = vendor.fields.filter((field) => field.required || field.name === "key");
  const others = vendor.fields.filter((field) => !needed.includes(field));
  const run = async (work: () => Promise<void>) => {
    isBusy.value = true;
    fault.value = null;
    try {
      await work();
    } catch (error) {
      fault.value = error instanceof Fault ? error : new Fault(-1, String(error), "", "", "", [], null);
    }
    isBusy.value = false;
  };
  const save = async () => {
    const slug = name.value.toLowerCase().replace(/[^a-z0-9_-]+/g, "-");
    await post("/integrations", {
      name: name.value, slug, ai_provider_id: vendor.slug, create_default_provider: true, default_provider_slug: slug,
      ...(where.value ? { workspace_id: where.value } : {}), ...nested(values.value),
    });
    forget();
    done(slug);
  };
  const test = async () => {
    tested.value = await post<Tested>(`/providers/types/${vendor.slug}/test`, nested(values.value));
  };
  const testAndSave = () =>
    run(async () => {
      await test();
      // What cannot be tried is stored; what was tried and failed is the person's to decide.
      if (tested.value!.success || !tested.value!.is_tested) await save();
    });
  const set = (field: string, value: string) => {
    values.value = { ...values.value, [field]: value };
    tested.value = null;
  };
  const control = (field: VendorField) => (
    <Field key={field.name} label={field.name.replace("configurations.", "")} hint={field.description} wrong={fault.value?.about(field.name)}>
      {(attributes) =>
        field.allowed.length > 0 ? (
          <select {...attributes} required={field.required} value={values.value[field.name] ?? ""} onChange={(event) => set(field.name, event.currentTarget.value)}>
            <option value="" />
            {field.allowed.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        ) : field.name === "key" ? (
          <input {...attributes} type="password" autocomplete="off" spellcheck={false} required={field.required} value={values.value.key ?? ""} onInput={(event) => set("key", event.currentTarget.value)} />
        ) : (
          <input {...attributes} type="text" autocomplete="off" spellcheck={false} required={field.required} value={values.value[field.name] ?? ""} onInput={(event) => set(field.name, event.currentTarget.value)} />
        )
      }
    </Field>
  );
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void testAndSave();
      }}
    >
      <div class="row">
        <strong>{vendor.name}</strong>
        <button type="button" class="button small" onClick={back}>
          {texts.vendor}
        </button>
      </div>
      <div class="two">
        <Field label={texts.name} hint={texts.addressed(name.value.toLowerCase().replace(/[^a-z0-9_-]+/g, "-"))} wrong={fault.value?.about("slug") ?? fault.value?.about("name")}>
          {(attributes) => <input {...attributes} required maxLength={100} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}
        </Field>
        <WorkspaceField value={where.value} wrong={fault.value?.about("workspace_id")} none={workspace.value === "*" ? texts.everyWorkspace : undefined} change={(slug) => (where.value = slug)} />
      </div>
      {needed.map(control)}
      <p class="quiet">{texts.notShown}</p>
      {others.length > 0 && (
        <details>
          <summary>{texts.more}</summary>
          <div class="form" style={{ marginBlockStart: "12px" }}>
            {others.map(control)}
          </div>
        </details>
      )}
      {tested.value && <TestResult result={tested.value} />}
      {fault.value && <Failed fault={fault.value} />}
      <div class="row">
        <button type="submit" class="button main" disabled={isBusy.value}>
          {isBusy.value ? texts.testing : texts.save}
        </button>
        {tested.value && !tested.value.success && (
          <button type="button" class="button" disabled={isBusy.value} onClick={() => void run(save)}>
            {texts.saveAnyway}
          </button>
        )}
      </div>
    </form>
  );
}

export function TestResult({ result }: { result: Tested }) {
  const texts = t().providers;
  return (
    <p role="status" class="row">
      <Tag meaning={result.success ? "ok" : result.is_tested ? "bad" : "warn"}>{result.success ? texts.tested : result.is_tested ? texts.notTested : texts.untested}</Tag>
      <span lang="en">{visible(result.message)}</span>
      {result.response_time !== null && <span class="quiet">{duration(result.response_time)}</span>}
    </p>
  );
}
